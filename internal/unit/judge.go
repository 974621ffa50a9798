package unit

import (
	"slices"

	"github.com/whystall/whystall/internal/sched"
)

// judge gives lives their roles.
//  1. Lives that waited often are judged by themselves (choose.go, hand.go, lead.go) and get the
//     role of their wait for work.
//  2. Others are taken for one of those if they have the name of one and wait in such a place.
//  3. What is left is judged together, all of one name at a time (pool.go).
//  4. Last, roles of the network get the queues that they take work from besides (queue.go).
func (f *finder) judge() {
	f.hands()
	for i := range f.set.lives {
		l := &f.set.lives[i]
		l.best = f.choose(l)
	}
	f.leaders()
	roles := &roleTable{f: f, byKey: map[roleKey]int32{}, shared: map[uint64]int{}, byName: map[int32][]int32{}}
	for i := range f.set.lives {
		l := &f.set.lives[i]
		if l.best >= 0 && l.sites[l.best].key.block == sched.BlockFutex {
			roles.shared[l.sites[l.best].key.arg]++
		}
	}
	roles.giveChosen()
	pools := roles.giveAlike()
	names := make([]int32, 0, len(pools))
	for n := range pools {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		f.judgeTogether(n, pools[n], roles)
	}
	for i := range f.set.roles {
		r := &f.set.roles[i]
		r.tier = r.site.tier()
		if r.whole {
			r.tier = tierLife
		}
	}
	f.queues()
}

// giveChosen gives roles to the lives that were judged by themselves. Those whose stacks are not
// known come last: they are taken for the first of the others with the same name and kind of wait.
func (t *roleTable) giveChosen() {
	lives := t.f.set.lives
	var order []int32
	for _, whole := range []bool{true, false} {
		for i := range lives {
			l := &lives[i]
			if l.best >= 0 && (l.sites[l.best].key.sig != 0) == whole {
				order = append(order, int32(i))
			}
		}
	}
	alike := map[roleKey]roleKey{} // by the key without its stack
	for _, i := range order {
		l := &lives[i]
		s := &l.sites[l.best]
		k := t.keyOf(l, s)
		if blank := k; blank.sig != 0 {
			blank.sig = 0
			if _, ok := alike[blank]; !ok {
				alike[blank] = k
			}
		} else if like, ok := alike[k]; ok {
			k = like
		}
		l.role = t.number(k)
		r := &t.f.set.roles[l.role]
		r.lives++
		r.site.add(s)
		r.site.key = s.key
		if l.follows != 0 {
			r.addQueue(l.follows)
		}
		if !slices.Contains(t.byName[l.name], l.role) {
			t.byName[l.name] = append(t.byName[l.name], l.role)
		}
	}
}

// giveAlike gives lives too short to be judged by themselves the role of those with their name that
// wait for work in a place that they have, too. It returns what is left, by name: but for unsure
// lives, of which two places are known and neither is to be preferred.
func (t *roleTable) giveAlike() map[int32][]int32 {
	pools := map[int32][]int32{}
	for i := range t.f.set.lives {
		l := &t.f.set.lives[i]
		if l.best >= 0 || l.unsure {
			continue
		}
		for _, n := range t.byName[l.name] {
			k := &t.f.set.roles[n].key
			for j := range l.sites {
				if l.sites[j].fits(k) {
					l.best, l.role = int32(j), n
				}
			}
		}
		if l.role >= 0 {
			t.f.set.roles[l.role].lives++
		} else {
			pools[l.name] = append(pools[l.name], int32(i))
		}
	}
	return pools
}

// fits reports whether s can be the wait for work of a role.
func (s *site) fits(k *roleKey) bool {
	return s.key.block == k.block && s.key.multi == k.multi && s.key.made == k.made && (s.key.sig == k.sig || s.key.sig == 0) &&
		(k.addr == 0 || k.addr == s.key.arg) && s.bad == 0
}
