package sched

import (
	"sort"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// Name is what tid was called at a time; false if it was never named.
func (k *Timeline) Name(tid uint32, at int64) (kernel.Thread, bool) {
	l := k.names[tid]
	if len(l) == 0 {
		return kernel.Thread{TID: tid}, false
	}
	i := sort.Search(len(l), func(i int) bool { return l[i].Since > at })
	return l[max(i-1, 0)], true
}

// Named is how long tid has the name that it has at a time. Before and after, its number may be
// another thread's, or it runs another program.
func (k *Timeline) Named(tid uint32, at int64) Span {
	l := k.names[tid]
	i := sort.Search(len(l), func(i int) bool { return l[i].Since > at })
	s := Span{-maxTimeNS, maxTimeNS}
	if i > 1 {
		s.Begin = l[i-1].Since // its first name holds for all time before
	}
	if i = max(i, 1); i < len(l) {
		s.End = l[i].Since
	}
	return s
}

// FromNS is the thread of the target that the target itself, in its pid namespace, calls nstid; 0
// if none is known. If no thread's number in that namespace was recorded, nstid is taken for a TID.
func (k *Timeline) FromNS(nstid uint32) uint32 {
	if len(k.byNS) > 0 {
		return k.byNS[nstid]
	}
	if k.find(nstid) != nil {
		return nstid
	}
	return 0
}

// Life is one life of a thread of the target.
type Life struct {
	TID                uint32
	Birth, First, Exit int64  // creation, first time on a CPU after it, exit; 0 not seen
	Maker              uint32 // TID; 0 not seen
	User               uint32 // StackID of the maker
}

// Threads lists the threads of the target that were seen, one entry for each life.
func (k *Timeline) Threads() []Life {
	l := make([]Life, 0, len(k.threads))
	for i := range k.threads {
		th := &k.threads[i]
		if len(th.lives) == 0 {
			l = append(l, Life{TID: th.tid})
		}
		for _, x := range th.lives {
			l = append(l, Life{th.tid, x.birth, x.first, x.exit, x.maker, x.user})
		}
	}
	return l
}
