package unit

import (
	"cmp"

	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
)

// Find looks for units of work in what the target's threads did. In steps:
//  1. Each thread's life is a row of waits. They are counted by site: what was waited in, the file
//     descriptor or futex address, and the user stack where it is whole (count.go).
//  2. Lives without a known entry function get that of the others with their name (count.go).
//  3. A life that waited often shows by itself which site is its wait for work (choose.go). Short
//     lives are judged by those that look like them, or all together (pool.go). Lives that wait for
//     work in the same way have one role (judge.go).
//  4. Lives are cut (cut.go). A unit of work goes from the end of one wait for work to the start of
//     the next, or to where a loop around many sockets goes on to another one. For a role whose
//     threads are born and die without coming back to a wait for work it is the whole life. From a
//     thread's birth to its first wait for work is a unit of its own group.
//  5. Where threads are woken all at once, those that found nothing to do have no unit (herd.go).
//  6. Groups that only serve other groups' units are not requests (list.go).
//  7. A unit starts when its data came, though the loop read it later (unread.go).
//
// A Go program has no units here: its requests are goroutines, which move between threads.
func Find(k *sched.Timeline, o request.Options) *Set {
	arch := cmp.Or(k.Header().Arch, "amd64")
	f := &finder{
		timeline: k, options: o,
		stacks: map[uint32]*stackFacts{}, names: map[nameKey]int32{}, sigs: map[string]uint32{},
		multiplexes: multiplexesOf[arch], stackCalls: stackCallsOf[arch],
	}
	f.set.byTID = map[uint32][]int32{}
	f.countWaits()
	if f.goFrames {
		f.set.Cause = "a Go program: its requests are goroutines, which only its execution trace tells"
		return &f.set
	}
	f.nameAlike()
	f.judge()
	f.units()
	f.herds()
	f.list()
	f.loop()
	f.unread()
	return &f.set
}

// loop finds out whether one thread has all requests, and takes them from many sockets.
func (f *finder) loop() {
	t := &f.set
	var tid uint32
	for i := range t.Units {
		u := &t.Units[i]
		r := &t.roles[f.groupRole[u.Group]]
		switch {
		case !t.Groups[u.Group].Listed:
		case r.tier != tierNet || r.site.key.multi != multiMany || tid != 0 && u.TID != tid:
			t.Loop = Loop{}
			return
		default:
			tid = u.TID
		}
	}
	if t.Loop.TID = tid; tid == 0 {
		t.Loop = Loop{}
	}
}
