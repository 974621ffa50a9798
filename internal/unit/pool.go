package unit

import "github.com/whystall/whystall/internal/sched"

const (
	// leastReturns is how often members must have come back to their wait for work, all together.
	leastReturns = 8
	// usualMembers in mostMembers must have a place for it to be that of all.
	usualMembers, mostMembers = 9, 10
	// leastLives is how many lives must be seen from birth to end before they are units.
	leastLives = 3
)

// pool is the lives of one name none of which waited often enough to be judged by itself: the
// threads of a large pool, or a thread for each connection or job.
type pool struct {
	f     *finder
	lives []int32
	name  int32

	stackless map[poolKind]bool // kinds, without sig and addr, of which some wait has no whole stack
	sites     map[poolKind]*poolSite
	order     []poolKind // of sites, as they were seen
	whole     int        // lives seen from birth to end
	alive     int        // lives that had not ended with the recording
}

// poolKind is what the sites of several lives have in common.
type poolKind struct {
	block sched.Block
	multi multiplex
	sig   uint32
	addr  uint64
	made  bool // see siteKey
}

// poolSite is the sum of the members' sites of one kind.
type poolSite struct {
	site
	members uint32
	returns uint32 // waits that were not a member's first there
}

// judgeTogether decides on such lives. If most members have a place to which they come back, it is
// their wait for work. Else, if they are born and die, each life is one unit of work.
func (f *finder) judgeTogether(name int32, lives []int32, roles *roleTable) {
	p := &pool{f: f, lives: lives, name: name, stackless: map[poolKind]bool{}, sites: map[poolKind]*poolSite{}}
	p.count()
	if kind, ok := p.waitForWork(); ok {
		p.giveLoop(kind, roles)
	} else if p.whole >= leastLives && p.whole >= p.alive {
		p.giveWhole(roles)
	}
}

// kindOf is the kind of a member's site. Stacks tell places apart only if all waits have one: with
// half of them missing, one place would look like two.
func (p *pool) kindOf(s *site) poolKind {
	k := poolKind{block: s.key.block, multi: s.key.multi, made: s.key.made}
	if !p.stackless[k] {
		k.sig = s.key.sig
	}
	if k.block == sched.BlockFutex {
		k.addr = s.key.arg
	}
	return k
}

// count adds up the members' sites.
func (p *pool) count() {
	for _, i := range p.lives {
		for j := range p.f.set.lives[i].sites {
			if k := &p.f.set.lives[i].sites[j].key; k.sig == 0 {
				p.stackless[poolKind{block: k.block, multi: k.multi, made: k.made}] = true
			}
		}
	}
	for _, i := range p.lives {
		l := &p.f.set.lives[i]
		if l.born && l.died {
			p.whole++
		} else if !l.died {
			p.alive++
		}
		seen := map[poolKind]bool{}
		for j := range l.sites {
			s := &l.sites[j]
			k := p.kindOf(s)
			m := p.sites[k]
			if m == nil {
				m = &poolSite{site: site{key: s.key, giver: s.giver}}
				p.sites[k] = m
				p.order = append(p.order, k)
			}
			m.add(s)
			if seen[k] {
				m.returns += s.blocks
				continue
			}
			seen[k] = true
			m.members++
			m.returns += s.blocks - 1
		}
	}
}

// waitForWork finds the best place that nearly all members have and come back to.
func (p *pool) waitForWork() (kind poolKind, ok bool) {
	var best *poolSite
	for _, k := range p.order {
		m := p.sites[k]
		switch {
		case m.members*mostMembers < uint32(len(p.lives))*usualMembers:
		case m.returns < leastReturns || m.returns*3 < m.blocks: // most waited there but once
		case !m.canBeIdle() || m.tier() == tierTimer:
		case best == nil || p.f.betterSite(&m.site, &best.site):
			best, kind = m, k
		}
	}
	return kind, best != nil
}

// giveLoop gives the role of a wait for work to all members that have it.
func (p *pool) giveLoop(kind poolKind, roles *roleTable) {
	n := roles.number(roleKey{name: p.name, block: kind.block, multi: kind.multi, sig: kind.sig, addr: kind.addr,
		made: kind.made})
	r := &p.f.set.roles[n]
	r.site.add(&p.sites[kind].site)
	r.site.key = p.sites[kind].key
	for _, i := range p.lives {
		l := &p.f.set.lives[i]
		for j := range l.sites {
			if p.kindOf(&l.sites[j]) == kind {
				l.best, l.role = int32(j), n
			}
		}
		if l.role >= 0 {
			r.lives++
		}
	}
}

// giveWhole makes whole lives units. A life of which only one end was seen is one too, and is left
// out later as open.
func (p *pool) giveWhole(roles *roleTable) {
	n := roles.number(roleKey{name: p.name, whole: true})
	for _, i := range p.lives {
		if l := &p.f.set.lives[i]; l.born || l.died {
			l.role = n
			p.f.set.roles[n].lives++
		}
	}
}
