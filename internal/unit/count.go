package unit

import (
	"cmp"

	"github.com/whystall/whystall/internal/sched"
)

// countWaits makes the lives of all threads and counts each wait of each by its site. Lives follow
// from the stretches alone: a thread that is gone has ended, and what follows under its number is
// another life.
func (f *finder) countWaits() {
	f.lives, f.joins = sched.NewLives(f.timeline), map[uint32][]joined{}
	lo, hi := f.timeline.Span()
	var l *life // the one whose stretches come at present
	var w tally
	finish := func() {
		if l != nil {
			w.finish(l)
			f.keepLife(l, w.entry)
			l = nil
		}
	}
	f.timeline.Each(lo, hi, func(tid uint32, s *sched.Stretch) {
		f.tid = tid
		if l != nil && l.tid != tid {
			finish()
		}
		if s.Doing == sched.Gone {
			if l != nil {
				l.died = true
			}
			finish()
			return
		}
		if l == nil {
			l = &life{begin: s.Begin, tid: tid, best: -1, role: -1}
			for _, x := range f.lives.Of[tid] {
				if x.Birth != 0 && x.Birth <= s.End && (x.Exit == 0 || x.Exit >= s.Begin) {
					l.born, l.maker, l.birth = true, x.Maker, x.Birth
				}
			}
			w.reset()
		}
		l.end = s.End
		switch s.Doing {
		case sched.OnCPU:
			l.busyNS += s.End - s.Begin
		case sched.Queued, sched.Throttled:
			l.busyNS += s.End - s.Begin
		case sched.Blocked:
			f.waits++
			if f.blockOf(s) == sched.BlockUnknown {
				f.unknown++
			}
			if s.End == s.Whole.End && s.End < hi { // else nothing ended it yet
				w.add(f, l, s)
				if s.WakerTarget && s.Block == sched.BlockFutex && f.timeline.Exits(s.WakerCall) {
					f.joins[s.Waker] = append(f.joins[s.Waker], joined{s.End, tid})
				}
			}
		}
	})
	finish()
}

// tally counts the waits of one life. It is used again for the next, since most programs have many
// threads.
type tally struct {
	sites []site
	index map[siteKey]int
	entry string // the first that a stack showed
	full  bool   // more than maxSites
}

// maxSites bounds the places of one life. A thread that waits in ever new places has no wait for
// work.
const maxSites = 256

func (w *tally) reset() {
	w.sites, w.entry, w.full = w.sites[:0], "", false
	clear(w.index)
}

// mostExamined bounds how many wakings by other threads are looked at closely for one site: each
// needs a search in the waker's own past.
const mostExamined = 64

// add counts the wait s of l.
func (w *tally) add(f *finder, l *life, s *sched.Stretch) {
	key := f.keyOf(s)
	st := f.stack(s.User)
	if st.goFrames {
		f.goFrames = true
	}
	if st.entry != "" && w.entry == "" {
		w.entry = st.entry
	}
	n, ok := w.index[key]
	if !ok {
		if len(w.sites) >= maxSites {
			w.full = true
			return
		}
		if w.index == nil {
			w.index = map[siteKey]int{}
		}
		n = len(w.sites)
		w.index[key] = n
		w.sites = append(w.sites, site{key: key})
	}
	if key.multi == multiMany && key.block == sched.BlockNetwork {
		f.polls.add(l.tid, key.arg, s.Whole)
	}
	if key.single() {
		f.reads.add(l.tid, key.arg, s.Whole)
	}
	x := &w.sites[n]
	x.blocks++
	if x.user == 0 || x.kernel == 0 {
		x.user, x.kernel = s.User, s.Kernel
	}
	switch f.endOf(s) {
	case endNet:
		x.net++
	case endTimer:
		x.timer++
		if s.Whole.End-s.Whole.Begin < shortSleepNS {
			x.short++
		}
	case endThread:
		// A thread that releases a lock gives no work.
		if s.Block == sched.BlockFutex && f.isLock(s) {
			x.bad++
			break
		}
		x.other++
		switch {
		case x.giver == s.Waker:
			x.given++
		case x.given > 0:
			x.given--
		default:
			x.giver, x.given = s.Waker, 1
		}
		if x.other <= mostExamined {
			x.examined++
			if f.answered(s, l.tid) {
				x.replies++
			}
			if f.kin(l.tid, s.Waker, s.End) {
				x.kin++
			}
		}
	case endSignal, endUnseen:
	default:
		x.bad++
	}
}

// finish gives l its sites. A site of which less is known, since its waits had no stack, is taken
// for the most frequent one that it may be.
func (w *tally) finish(l *life) {
	if w.full {
		return
	}
	for i := range w.sites {
		s := &w.sites[i]
		most := -1
		for j := range w.sites {
			if o := &w.sites[j]; j != i && s.key.vaguerThan(&o.key) && (most < 0 || o.blocks > w.sites[most].blocks) {
				most = j
			}
		}
		if most >= 0 {
			w.sites[most].add(s)
			s.blocks = 0
		}
	}
	for i := range w.sites {
		if w.sites[i].blocks > 0 {
			l.sites = append(l.sites, w.sites[i])
		}
	}
}

// keepLife names a life and keeps it.
func (f *finder) keepLife(l *life, entry string) {
	if len(f.set.lives) >= maxLives {
		return
	}
	th, ok := f.timeline.Name(l.tid, l.begin+(l.end-l.begin)/2)
	if !ok || th.Comm == "" { // it ended before it was named: a thread starts with its maker's name
		th, _ = f.timeline.Name(cmp.Or(l.maker, f.timeline.Header().PID), l.begin)
	}
	n := nameKey{comm: CommPattern(th.Comm), entry: entry}
	id, ok := f.names[n]
	if !ok {
		id = int32(len(f.nameOf))
		f.names[n] = id
		f.nameOf = append(f.nameOf, n)
	}
	l.name = id
	f.set.byTID[l.tid] = append(f.set.byTID[l.tid], int32(len(f.set.lives)))
	f.set.lives = append(f.set.lives, *l)
}

// nameAlike gives an entry function to lives of which no stack showed one: that of the others with
// their thread name, if at least four in five of those share it, and half of all show one: those
// with large frames never do, as their stacks are cut off. Threads that were born during the
// recording and threads that were there before are not compared with each other. The main thread is
// left out: other threads may have its name, but none has its entry function.
func (f *finder) nameAlike() {
	type kin struct {
		comm string
		born bool
	}
	entries, all := map[kin]map[int32]int{}, map[kin]int{}
	for i := range f.set.lives {
		l := &f.set.lives[i]
		n := f.nameOf[l.name]
		if l.tid == f.timeline.Header().PID {
			continue
		}
		k := kin{n.comm, l.born}
		all[k]++
		if n.entry != "" {
			if entries[k] == nil {
				entries[k] = map[int32]int{}
			}
			entries[k][l.name]++
		}
	}
	usual := map[kin]int32{}
	for k, lives := range entries {
		most, sum := int32(-1), 0
		for n, count := range lives {
			sum += count
			if most < 0 || count > lives[most] || count == lives[most] && n < most {
				most = n
			}
		}
		if lives[most]*5 >= sum*4 && sum*2 >= all[k] {
			usual[k] = most
		}
	}
	for i := range f.set.lives {
		l := &f.set.lives[i]
		n := f.nameOf[l.name]
		if like, ok := usual[kin{n.comm, l.born}]; ok && n.entry == "" && l.tid != f.timeline.Header().PID {
			l.name = like
		}
	}
}
