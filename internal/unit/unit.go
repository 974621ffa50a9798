package unit

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
)

// Units of work of native threads, whose kernel timeline is all that is known of them. In steps:
//  1. Each thread's life is cut into waits, and its waits are counted by site: what was waited in, the file descriptor or address,
//     and the stack where that is whole (site.go).
//  2. Each life that waited often enough is told by itself what its wait for work is; short lives are judged together with
//     those that look like them (role.go). Who waits for work in the same way is one group.
//  3. A unit of work is from the wake-up out of the wait for work to the next; or the whole life, for groups whose threads are born
//     and die and never wait for work twice; or from birth to the first wait for work.
//  4. Of threads that are woken all at once those that find nothing to do have no unit (herd.go).
//  5. Groups that only serve others' units are not requests (list.go).

// Unit is one unit of work of a thread: it was busy with it during [Begin, End), CLOCK_MONOTONIC. Those of one thread
// are disjoint.
type Unit struct {
	Begin, End int64
	TID        uint32
	Waker      uint32 // the thread of the target that gave it; 0 none
	Joiner     uint32 // of a whole life: the thread of the target that waited for its end and had its stack to give back; 0 none
	Group      request.GroupID
	LeftOut    request.LeftOut
}

// Threads is which units of work a program's threads have.
type Set struct {
	Groups []request.Group // the index is the GroupID
	Units  []Unit          // by thread, each in order of time
	Cause  string          // why no group is listed; "" when one is

	lives []life
	byTID map[uint32][]int32 // lives in order of time
	roles []role
}

// Bounds of what a stream from anywhere may make us hold.
const (
	maxLives = 1 << 17
	maxUnits = 1 << 21
)

// life is one thread from its creation, or the recording's begin, to its end.
type life struct {
	begin, end   int64
	birth        int64 // when its maker made it
	tid          uint32
	maker        uint32
	born, died   bool
	name         int32 // of nameOf: comm pattern and entry function
	sites        []lifeSite
	best         int32 // of sites; -1 none
	role         int32 // of roles; -1 none
	onNS, busyNS int64 // on a CPU; that, or wanting to be
	blocks       int32
	unsure       bool   // two sites could be its wait for work
	follows      uint64 // the condition at which it waits while another of its kind waits for events; 0 none
}

// FindThreads looks for units of work in what the target's threads did.
func Find(k *sched.Timeline, o request.Options) *Set {
	f := &finder{k: k, o: o, stacks: map[uint32]*threadStack{}, names: map[threadName]int32{}, sigs: map[string]uint32{}}
	f.t.byTID = map[uint32][]int32{}
	f.calls = multiplexes[cmp.Or(k.Header().Arch, "amd64")]
	f.stackCalls = stackCallsOf[cmp.Or(k.Header().Arch, "amd64")]
	f.lookAt()
	if f.goFrames {
		f.t.Cause = "a Go program: its requests are goroutines, which only its execution trace tells"
		return &f.t
	}
	f.nameAlike()
	f.judge()
	f.units()
	f.herds()
	f.list()
	return &f.t
}

// threadFinder is the state of FindThreads.
type finder struct {
	k        *sched.Timeline
	o        request.Options
	t        Set
	stacks   map[uint32]*threadStack
	names    map[threadName]int32
	nameOf   []threadName
	sigs     map[string]uint32
	dropped  int64    // lives beyond maxLives
	tooMany  int64    // units beyond maxUnits
	ofGroup  []int32  // role by group
	onNS     []uint32 // by unit: how long it was on a CPU, 4 s at most
	goFrames bool
	calls    map[int32]multiplex
	entry    string // of the life that is looked at
	tid      uint32 // whose stretch is looked at
	waits    int64
	unknown  int64 // of them, in nobody knows what
	wakings  []sched.Waking

	polls      map[uint64][]poll // by descriptor: who waited there for the events of many
	pollsN     int
	made       map[uint32][]int64 // by maker: when it made threads, in order
	stackCalls stackCalls
	making     []sched.Stretch
	joins      map[uint32][]joined // by who ended
}

// joined is the end of a thread, as who waited for it saw it.
type joined struct {
	at  int64
	tid uint32
}

// threadName is what threads are told apart by before anything is known of what they do.
type threadName struct{ comm, entry string }

// Name is what the thread tid is called at a time: its entry function where its stacks tell it, else its name.
func (t *Set) Name(tid uint32, at int64) string {
	l := t.life(tid, at)
	if l == nil || l.role < 0 {
		return ""
	}
	return t.roles[l.role].entry
}

// life is tid's at a time, nil without one.
func (t *Set) life(tid uint32, at int64) *life {
	for _, n := range t.byTID[tid] {
		if l := &t.lives[n]; at >= l.begin && at <= l.end {
			return l
		}
	}
	return nil
}

// lookAt counts every wait of every thread.
func (f *finder) lookAt() {
	births := map[uint32][]sched.Life{}
	f.made, f.joins = map[uint32][]int64{}, map[uint32][]joined{}
	for _, x := range f.k.Threads() {
		if x.Birth != 0 {
			births[x.TID] = append(births[x.TID], x)
			f.made[x.Maker] = append(f.made[x.Maker], x.Birth)
		}
	}
	for _, m := range f.made {
		slices.Sort(m)
	}
	lo, hi := f.k.Span()
	var l *life
	var w lifeWaits
	finish := func() {
		if l != nil {
			w.into(f, l)
			f.keepLife(l)
			l = nil
		}
	}
	f.k.Each(lo, hi, func(tid uint32, s *sched.Stretch) {
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
			for _, x := range births[tid] {
				if x.Birth <= s.End && (x.Exit == 0 || x.Exit >= s.Begin) {
					l.born, l.maker, l.birth = true, x.Maker, x.Birth
				}
			}
			w.reset()
		}
		l.end = s.End
		switch s.Doing {
		case sched.OnCPU:
			l.onNS += s.End - s.Begin
			l.busyNS += s.End - s.Begin
		case sched.Queued, sched.Throttled:
			l.busyNS += s.End - s.Begin
		case sched.Blocked:
			f.waits++
			if f.blockOf(s) == sched.BlockUnknown {
				f.unknown++
			}
			if s.End == s.Whole.End && s.End < hi { // else nobody ended it
				w.add(f, l, s)
				if s.WakerTarget && s.Block == sched.BlockFutex && f.k.Exits(s.WakerCall) {
					f.joins[s.Waker] = append(f.joins[s.Waker], joined{s.End, tid})
				}
			}
		}
	})
	finish()
}

func (f *finder) keepLife(l *life) {
	if len(f.t.lives) >= maxLives {
		f.dropped++
		return
	}
	th, ok := f.k.Name(l.tid, l.begin+(l.end-l.begin)/2)
	if !ok || th.Comm == "" { // it ended before it was named: threads begin with their maker's name
		th, _ = f.k.Name(cmp.Or(l.maker, f.k.Header().PID), l.begin)
	}
	n := threadName{comm: CommPattern(th.Comm), entry: f.entry}
	id, ok := f.names[n]
	if !ok {
		id = int32(len(f.nameOf))
		f.names[n] = id
		f.nameOf = append(f.nameOf, n)
	}
	l.name = id
	f.t.byTID[l.tid] = append(f.t.byTID[l.tid], int32(len(f.t.lives)))
	f.t.lives = append(f.t.lives, *l)
}

// nameAlike gives lives whose entry function no stack told that of the others with their name, born or found, where nearly all
// of those have the same.
func (f *finder) nameAlike() {
	type kin struct {
		comm string
		born bool
	}
	entries := map[kin]map[int32]int{}
	for i := range f.t.lives {
		l := &f.t.lives[i]
		if n := f.nameOf[l.name]; n.entry != "" && l.tid != f.k.Header().PID {
			k := kin{n.comm, l.born}
			if entries[k] == nil {
				entries[k] = map[int32]int{}
			}
			entries[k][l.name]++
		}
	}
	usual := map[kin]int32{}
	for k, by := range entries {
		most, sum := int32(-1), 0
		for n, c := range by {
			sum += c
			if most < 0 || c > by[most] || c == by[most] && n < most {
				most = n
			}
		}
		if by[most]*5 >= sum*4 {
			usual[k] = most
		}
	}
	for i := range f.t.lives {
		l := &f.t.lives[i]
		n := f.nameOf[l.name]
		if like, ok := usual[kin{n.comm, l.born}]; ok && n.entry == "" && l.tid != f.k.Header().PID {
			l.name = like
		}
	}
}

// CommPattern is a thread's name with its numbers left out: "worker-12" and "worker-3" do the same.
func CommPattern(comm string) string {
	b := make([]byte, 0, len(comm))
	for i := 0; i < len(comm); i++ {
		c := comm[i]
		if c >= '0' && c <= '9' {
			if len(b) > 0 && i > 0 && comm[i-1] >= '0' && comm[i-1] <= '9' {
				continue
			}
			c = '#'
		}
		b = append(b, c)
	}
	return string(b)
}
