package thread

import (
	"sort"
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/sched"
)

// threadPiece is one piece of a thread's story.
type Piece struct {
	Lo, Hi int64
	Leaf   books.Leaf
	TID    uint32        // whose time it is: the thread itself, or the one it waited for
	At     sched.Stretch // what that thread was in, cut to the piece; Doing is ThreadUnknown without records
	By     []sched.Share // of codeNoCPU: who held the CPU; adds up to hi-lo. Overwritten after emit
	Hops   []Hop         // the waits that were followed to tid, outermost first; overwritten after emit
}

// threadHop is one wait that was followed to who ended it.
type Hop struct {
	waiter, waker uint32
	wait          sched.Stretch // of waiter; the end of its Whole is the moment of the wake-up
	kind          hopKind
	Inferred      bool // waker held the lock by what is known of the lock's wake-ups, not by an event of its own
}

// hopKind says by what a wait was followed.
type hopKind uint8

const (
	hopMessage hopKind = iota // a condition, a note, a pipe: who woke it
	hopLock                   // a lock: who held it
	hopLife                   // the end of a thread
	hopMaker                  // it was not born yet, or has ended: who made it, or gives its stack back
)

// mostVisits is how many stretches are looked at for one unit.
const mostVisits = 1 << 16

// maxThreadHops is how many waits are followed in a row.
const mostHops = 7

// threadWalk explains threads one after the other. What it learns of stacks and addresses it keeps.
type Walk struct {
	k      *sched.Timeline
	Out    func(*Piece)
	stacks map[uint32]wakeStack
	known  *sched.Lives
	gotten map[uint64][]gotten // by futex, beside its releases
	joiner uint32              // who gives back the stack of the thread that is told of, after its end

	p       Piece
	Hops    []Hop
	visits  int
	buf     [mostHops + 2][]sched.Stretch
	got     []sched.Stretch
	shares  []sched.Share
	wakings []sched.Waking
}

func NewWalk(k *sched.Timeline) *Walk {
	return &Walk{k: k, stacks: map[uint32]wakeStack{}, gotten: map[uint64][]gotten{}}
}

// thread tells the story of tid in [lo,hi).
func (w *Walk) Thread(tid uint32, lo, hi int64) {
	w.Hops, w.visits = w.Hops[:0], 0
	w.walk(tid, lo, hi)
}

func (w *Walk) walk(tid uint32, lo, hi int64) {
	depth := len(w.Hops)
	list := w.k.Stretches(tid, lo, hi, w.buf[depth][:0])
	w.buf[depth] = list
	for i := range list {
		s := &list[i]
		if w.visits++; w.visits > mostVisits {
			w.emit(tid, s.Begin, hi, books.LeafLimit, s)
			return
		}
		leaf, _ := LeafOf(s)
		switch s.Doing {
		case sched.Blocked:
			w.blocked(tid, s, leaf)
			continue
		case sched.Gone:
			w.gone(tid, s)
			continue
		case sched.Queued:
			w.shares = w.k.Behind(tid, s.Begin, s.End, w.shares[:0])
		}
		w.emit(tid, s.Begin, s.End, leaf, s)
	}
}

func (w *Walk) emit(tid uint32, lo, hi int64, leaf books.Leaf, s *sched.Stretch) {
	if lo >= hi {
		return
	}
	w.p = Piece{Lo: lo, Hi: hi, Leaf: leaf, TID: tid, At: *s, Hops: w.Hops}
	w.p.At.Begin, w.p.At.End = lo, hi
	if leaf == books.LeafNoCPU {
		w.p.By = w.shares
	}
	w.Out(&w.p)
}

// blocked explains a wait: a leaf by what it waited in, or what who ended it did meanwhile.
func (w *Walk) blocked(tid uint32, s *sched.Stretch, leaf books.Leaf) {
	switch s.Block {
	case sched.BlockFutex, sched.BlockPipe, sched.BlockNetwork, sched.BlockChild, sched.BlockOther, sched.BlockUnknown:
	default:
		w.emit(tid, s.Begin, s.End, leaf, s)
		return
	}
	end := w.endOf(tid, s)
	kind, ok := w.releases(s, &end)
	switch {
	case !ok || w.onPath(tid, end.Waker) || len(w.Hops) >= mostHops:
		if w.isLock(s) {
			leaf = books.LeafLock
		}
		w.emit(tid, s.Begin, s.End, leaf, s)
	case kind == hopLock:
		w.lock(tid, s, &end)
	default:
		at := *s
		at.Whole.End = end.Whole.End
		w.follow(tid, end.Waker, &at, s.Begin, s.End, kind, false)
	}
}

// follow tells what waker did in [lo,hi), while tid waited for it in s.
func (w *Walk) follow(tid, waker uint32, s *sched.Stretch, lo, hi int64, kind hopKind, inferred bool) {
	if lo >= hi {
		return
	}
	w.Hops = append(w.Hops, Hop{waiter: tid, waker: waker, wait: *s, kind: kind, Inferred: inferred})
	w.walk(waker, lo, hi)
	w.Hops = w.Hops[:len(w.Hops)-1]
}

// onPath: to follow a wait to waker would meet a thread twice.
func (w *Walk) onPath(tid, waker uint32) bool {
	if waker == tid {
		return true
	}
	for i := range w.Hops {
		if h := &w.Hops[i]; h.waiter == waker || h.waker == waker {
			return true
		}
	}
	return false
}

// signalNS is how long after a signal a thread goes on with the wait that the signal interrupted: its handler runs, and
// where there is no CPU that takes a while.
const signalNS = 100e6

// againNS is how long after its time ran out a thread waits again for the same futex: it looked once whether it must.
const againNS = 1e6

// endOf is how the wait s ended. A signal ends no wait, nor does a time that runs out if the thread then waits for the same futex again: it is the
// next end of the same wait that counts.
func (w *Walk) endOf(tid uint32, s *sched.Stretch) sched.Stretch {
	end := *s
	for range 64 {
		if end.Block == sched.BlockFutex && end.ByInterrupt && !end.WakerSignal {
			next, ok := w.again(tid, &end)
			if !ok {
				return end
			}
			from := end.Whole.End
			end = next
			if !end.ByInterrupt {
				return w.letGo(tid, &end, from)
			}
			continue
		}
		if !end.WakerSignal {
			return end
		}
		next := sched.Stretch{}
		w.wakings = w.k.Woken(tid, end.Whole.End+1, end.Whole.End+signalNS, w.wakings[:0])
		for i := range w.wakings {
			at := w.k.At(tid, w.wakings[i].Time-1)
			if at.Doing == sched.Blocked {
				next = at
				break
			}
		}
		if next.Doing != sched.Blocked || next.Block != s.Block || next.Futex != s.Futex || next.Arg != s.Arg {
			break
		}
		end = next
	}
	return end
}

// again is the wait for the same futex that follows at once after s, whose time ran out.
func (w *Walk) again(tid uint32, s *sched.Stretch) (next sched.Stretch, ok bool) {
	at, on := s.Whole.End, int64(0)
	for range 16 { // between the two it may have been put off its CPU
		x := w.k.At(tid, at)
		switch x.Doing {
		case sched.OnCPU:
			if on += x.Whole.End - x.Whole.Begin; on > againNS {
				return x, false
			}
		case sched.Queued, sched.Throttled:
		case sched.Blocked:
			// The words of a condition take turns.
			return x, x.Block == sched.BlockFutex && x.Futex&^7 == s.Futex&^7 && s.Futex != 0
		default:
			return x, false
		}
		if x.Whole.End <= at {
			return x, false
		}
		at = x.Whole.End
	}
	return sched.Stretch{}, false
}

// letGo is the end of a wait that went on after from, when its time had run out: who let go next had up to then what is waited for, whoever got it.
func (w *Walk) letGo(tid uint32, s *sched.Stretch, from int64) sched.Stretch {
	end := *s
	for _, addr := range [2]uint64{s.Futex, s.Futex ^ 4} {
		f := w.k.Futex(addr)
		if f == nil {
			continue
		}
		for i := sort.Search(len(f.Releases), func(i int) bool { return f.Releases[i].Time >= from }); i < len(f.Releases); i++ {
			if r := &f.Releases[i]; r.Time >= end.Whole.End {
				break
			} else if r.TID != tid {
				end.Waker, end.Whole.End = r.TID, r.Time
			}
		}
	}
	return end
}

// releases tells whether who ended a wait let go of what was waited for, and of what kind that is.
func (w *Walk) releases(s, end *sched.Stretch) (hopKind, bool) {
	if end.Waker == 0 || !end.WakerTarget || end.ByInterrupt || end.WakerSignal {
		return 0, false
	}
	user, kern := w.stack(end.WakerUser), w.stack(end.WakerKernel)
	if user.goFrames {
		// The runtime wakes threads for many reasons; only these let go of what was waited for.
		if !user.goRelease {
			return 0, false
		}
		if user.goUnlock {
			return hopLock, true
		}
		return hopMessage, true
	}
	switch s.Block {
	case sched.BlockFutex:
		switch {
		case kern.exit, w.k.Exits(end.WakerCall):
			return hopLife, true
		case kern.futex, end.WakerCall >= 0 && end.WakerArg != 0 && end.WakerArg&^7 == s.Futex&^7:
		default:
			return 0, false // by whom and out of what is not known
		}
		if w.isLock(s) {
			return hopLock, true
		}
		return hopMessage, true
	case sched.BlockChild:
		return hopLife, kern.exit
	case sched.BlockPipe, sched.BlockNetwork:
		// Without a kernel stack the call that it was in must do: who is in none was interrupted.
		return hopMessage, kern.write || end.WakerKernel == 0 && end.WakerCall >= 0
	case sched.BlockOther, sched.BlockUnknown:
		if kind, ok := w.letsGo(s, end); ok {
			return kind, true
		}
	}
	return hopMessage, kern.futex || kern.write
}

// lock explains a wait for a lock by who held it. While somebody waits each release shows: it wakes. So who released it first
// after the wait began held it until then, and had it when the wait began; who released it next got it after that, and so on to the one that ended the wait.
func (w *Walk) lock(tid uint32, s, end *sched.Stretch) {
	at, to := s.Begin, s.End
	from := s.Whole.Begin
	var releases []sched.Release
	var known []gotten
	if f := w.k.Futex(s.Futex); f != nil {
		i := sort.Search(len(f.Releases), func(i int) bool { return f.Releases[i].Time >= from })
		j := i + sort.Search(len(f.Releases)-i, func(j int) bool { return f.Releases[i+j].Time > end.Whole.End })
		releases = f.Releases[i:min(j, i+mostReleased)]
		known = w.gottenOf(f)[i:]
	}
	first := true
	for i := range releases {
		r := &releases[i]
		if r.TID == tid {
			continue
		}
		until := min(r.Time, to)
		if i == len(releases)-1 && r.TID == end.Waker {
			until = to // it is in the call that ends the wait
		}
		if until > at {
			w.held(tid, r.TID, s, at, until, from, first, &known[i])
			at = until
		}
		first, from = false, r.Time
	}
	if at < to {
		w.held(tid, end.Waker, s, at, to, from, first, &gotten{})
	}
}

// mostReleased bounds how many holders of one wait are told apart; the last stands for those beyond.
const mostReleased = 4096

// held tells what holder did in [lo,hi), which it ended by its release. Unless it was the first to release, it got the lock after from: a wait for something
// else before that was none with the lock.
func (w *Walk) held(tid, holder uint32, s *sched.Stretch, lo, hi, from int64, first bool, known *gotten) {
	if w.onPath(tid, holder) || len(w.Hops) >= mostHops {
		w.emit(tid, lo, hi, books.LeafLock, w.cut(s, lo, hi))
		return
	}
	if !first {
		if known.from != from || known.until != hi {
			*known = gotten{from, hi, w.acquired(holder, s, from, hi)}
		}
		if got := known.moment; got > lo {
			w.emit(tid, lo, min(got, hi), books.LeafLockBetween, w.cut(s, lo, min(got, hi)))
			lo = min(got, hi)
		}
	}
	w.follow(tid, holder, s, lo, hi, hopLock, !first || s.Futex == 0)
}

func (w *Walk) cut(s *sched.Stretch, lo, hi int64) *sched.Stretch {
	c := *s
	c.Begin, c.End = lo, hi
	return &c
}

// gotten is what acquired said of a release: many wait for the same, and each of them is told who held it.
type gotten struct{ from, until, moment int64 }

// gottenOf is what was asked of f's releases, one each.
func (w *Walk) gottenOf(f *sched.Futex) []gotten {
	l := w.gotten[f.Addr]
	if l == nil {
		l = make([]gotten, len(f.Releases))
		w.gotten[f.Addr] = l
	}
	return l
}

// acquired is the earliest moment at which holder can have got the lock that s waits for, given up by another at from: after its own
// wait for it; else, for one that never waited, after its last wait for something from outside.
func (w *Walk) acquired(holder uint32, s *sched.Stretch, from, hi int64) int64 {
	got := from
	w.got = w.k.Stretches(holder, from-1, hi, w.got[:0]) // its own wait may end at that very moment
	for i := len(w.got) - 1; i >= 0; i-- {
		x := &w.got[i]
		if x.Doing != sched.Blocked {
			continue
		}
		switch x.Block {
		case sched.BlockFutex:
			if x.Futex == s.Futex {
				return x.End
			}
		case sched.BlockNetwork, sched.BlockPipe, sched.BlockTimer:
			got = max(got, x.End)
		}
	}
	return got
}

// lives is read once it is asked for.
func (w *Walk) lives() *sched.Lives {
	if w.known == nil {
		w.known = sched.NewLives(w.k)
	}
	return w.known
}

// gone explains the time of a thread before its birth by who made it.
func (w *Walk) gone(tid uint32, s *sched.Stretch) {
	for _, l := range w.lives().Of[tid] {
		if l.Birth == 0 {
			continue
		}
		// born at the end of this time, or shortly before: between its creation and its first run queue it is not there either
		if l.Birth < s.Whole.Begin || l.Birth > s.Whole.End {
			continue
		}
		if l.Maker == 0 || w.onPath(tid, l.Maker) || len(w.Hops) >= mostHops {
			break
		}
		w.follow(tid, l.Maker, s, s.Begin, s.End, hopMaker, false)
		return
	}
	if w.joiner != 0 && len(w.Hops) == 0 && w.joiner != tid {
		w.follow(tid, w.joiner, s, s.Begin, s.End, hopMaker, false)
		return
	}
	leaf, _ := LeafOf(s)
	w.emit(tid, s.Begin, s.End, leaf, s)
}

// wakeStack is what a stack says of a waker.
type wakeStack struct {
	goFrames  bool // of Go's runtime
	goRelease bool
	goUnlock  bool
	futex     bool // the kernel's call to wake
	exit      bool
	write     bool
}

func (w *Walk) stack(id uint32) wakeStack {
	st, ok := w.stacks[id]
	if ok || id == 0 {
		return st
	}
	frames := w.k.Stack(id)
	for i := range frames {
		st.learn(&frames[i])
	}
	w.stacks[id] = st
	return st
}

func (st *wakeStack) learn(f *kernel.Frame) {
	name := f.Func
	if f.Inferred {
		return // it may never have been called
	}
	if rest, ok := strings.CutPrefix(name, "runtime."); ok {
		st.goFrames = true
		switch strings.TrimSuffix(rest, ".abi0") {
		case "unlock", "unlock2", "unlock2Wake", "unlockWithRank":
			st.goRelease, st.goUnlock = true, true
		case "semrelease", "semrelease1", "notewakeup":
			st.goRelease = true
		}
		return
	}
	switch name {
	case "futex_wake", "do_futex", "futex_wake_op", "futex_requeue", "futex_unlock_pi", "__x64_sys_futex", "__arm64_sys_futex", "__ia32_sys_futex":
		st.futex = true
	case "do_exit", "mm_release", "exit_mm_release", "exec_mm_release":
		st.exit = true
	case "pipe_write", "anon_pipe_write", "eventfd_write", "vfs_write", "ksys_write", "do_writev", "__sys_sendto", "__sys_sendmsg", "___sys_sendmsg",
		"unix_stream_sendmsg", "unix_dgram_sendmsg", "sock_write_iter", "eventfd_signal", "eventfd_signal_mask":
		st.write = true
	}
}

// isLock tells whether a wait is for a lock, a futex's or a file's: its holder is who matters.
func (w *Walk) isLock(s *sched.Stretch) bool {
	if s.Block != sched.BlockFutex {
		return w.fileLock(s)
	}
	f := w.k.Futex(s.Futex)
	return f != nil && f.Kind.Lock()
}
