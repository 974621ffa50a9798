package unit

import (
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// siteKey is a place where one thread waits. A wait's first argument is part of it where that tells places apart: a file
// descriptor or a futex's address, not a pointer to the caller's stack.
type siteKey struct {
	arg   uint64
	sig   uint32 // of the whole user stack; 0 not known
	call  int32
	block sched.Block
	multi multiplex
}

// multiplex is how a wait for events takes them.
type multiplex uint8

const (
	multiNone   multiplex = iota
	multiRead             // one descriptor's bytes
	multiAccept           // connections
	multiMany             // poll, select and epoll: the events of many
)

// lifeSite is a place where one thread waits, and who ended those waits.
type lifeSite struct {
	key     siteKey
	blocks  uint32
	net     uint32
	timer   uint32
	short   uint32 // of timer: for less than shortSleepNS
	other   uint32 // another thread of the target
	replies uint32 // of other: one that the waiter itself had woken since: an answer
	asked   uint32 // of other, how many were looked at for that and for kin
	kin     uint32 // of asked: one of the waiter's own name
	bad     uint32 // what no wait for work ends with, or a wait that cannot be one
	user    uint32 // a stack, for its name
	kern    uint32
	giver   uint32 // who ended most of other, where somebody ended most
	given   int32
}

func (s *lifeSite) all() uint32  { return s.net + s.timer + s.other + s.bad }
func (s *lifeSite) good() uint32 { return s.net + s.other - min(s.other, s.replies) }

func (s *lifeSite) tier() tier {
	switch {
	case s.good() == 0:
		return tierTimer
	case s.net >= s.other:
		return tierNet
	}
	return tierChan
}

// shortSleepNS: who sleeps for less waits for nothing that takes time, it looks again.
const shortSleepNS = 1e6

// polls: its members wake by themselves to look whether there is work, and sleep again.
func (s *lifeSite) polls() bool {
	return s.blocks > 0 && s.tier() == tierTimer && s.short*10 >= s.blocks*9
}

func (s *lifeSite) add(o *lifeSite) {
	s.blocks += o.blocks
	s.net += o.net
	s.timer += o.timer
	s.short += o.short
	s.other += o.other
	s.replies += o.replies
	s.asked += o.asked
	s.kin += o.kin
	s.bad += o.bad
	if s.user == 0 {
		s.user = o.user
	}
	if s.kern == 0 {
		s.kern = o.kern
	}
}

// mostDescriptors: a larger argument is no file descriptor.
const mostDescriptors = 1 << 20

// multiplexes are the calls that take several events, or connections, by their numbers.
var multiplexes = map[string]map[int32]multiplex{
	"amd64": {7: multiMany, 23: multiMany, 232: multiMany, 270: multiMany, 271: multiMany, 281: multiMany, 441: multiMany, 43: multiAccept, 288: multiAccept},
	"arm64": {22: multiMany, 72: multiMany, 73: multiMany, 441: multiMany, 202: multiAccept, 242: multiAccept},
}

// maxSites bounds the places of one life: a thread that waits in ever new ones has no wait for work.
const maxSites = 256

// lifeWaits collects the waits of one life.
type lifeWaits struct {
	sites []lifeSite
	index map[siteKey]int
	entry string
	full  bool
}

func (w *lifeWaits) reset() {
	w.sites, w.entry, w.full = w.sites[:0], "", false
	clear(w.index)
}

func (w *lifeWaits) add(f *finder, l *life, s *sched.Stretch) {
	l.blocks++
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
		w.sites = append(w.sites, lifeSite{key: key})
	}
	if key.multi == multiMany && key.block == sched.BlockNetwork {
		f.polled(l.tid, key.arg, s.Whole)
	}
	x := &w.sites[n]
	x.blocks++
	if x.user == 0 || x.kern == 0 {
		x.user, x.kern = s.User, s.Kernel
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
		// Who is on the other side of a lock does not give work.
		if s.Block == sched.BlockFutex && f.isLock(s.Futex) {
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
		if x.other <= 64 {
			x.asked++
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

// isLock tells whether a futex is a lock, or another that no work comes by: what is not known gives none.
func (f *finder) isLock(addr uint64) bool {
	u := f.k.Futex(addr)
	return u == nil || u.Kind != sched.FutexCondition && u.Kind != sched.FutexSemaphore
}

// answered tells whether who ended the wait s of tid had itself been woken by tid since the wait before.
func (f *finder) answered(s *sched.Stretch, tid uint32) bool {
	f.wakings = f.k.Woken(s.Waker, s.Whole.Begin-answerNS, s.Whole.End, f.wakings[:0])
	for i := range f.wakings {
		if w := &f.wakings[i]; w.Waker == tid && !w.Interrupt {
			return true
		}
	}
	return false
}

// kin tells whether two threads are of one name.
func (f *finder) kin(a, b uint32, at int64) bool {
	x, ok := f.k.Name(a, at)
	y, known := f.k.Name(b, at)
	return ok && known && x.Comm != "" && CommPattern(x.Comm) == CommPattern(y.Comm)
}

// answerNS is how long before its wait a thread asked for what it waits for.
const answerNS = 1e6

// into gives the life its sites. A wait whose stack is not known was at the place that has most of those with the same argument.
func (w *lifeWaits) into(f *finder, l *life) {
	f.entry = w.entry
	if w.full {
		return
	}
	for i := range w.sites {
		s := &w.sites[i]
		most := -1
		for j := range w.sites {
			if o := &w.sites[j]; j != i && s.key.lessThan(&o.key) && (most < 0 || o.blocks > w.sites[most].blocks) {
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

// lessThan: k may be the place o, of which more is known.
func (k *siteKey) lessThan(o *siteKey) bool {
	if k.arg != o.arg || k.call != o.call {
		return false
	}
	blocks := k.block == o.block || k.block == sched.BlockUnknown
	sigs := k.sig == o.sig || k.sig == 0
	return blocks && sigs && *k != *o
}

// keyOf is the place of a wait.
func (f *finder) keyOf(s *sched.Stretch) siteKey {
	k := siteKey{block: f.blockOf(s), sig: f.stack(s.User).sig, call: s.Syscall}
	switch k.block {
	case sched.BlockFutex:
		k.arg = s.Futex &^ 7 // a condition's two words lie side by side and take turns
	case sched.BlockNetwork, sched.BlockPipe, sched.BlockUnknown:
		if s.Arg < mostDescriptors {
			k.arg = s.Arg
		}
		switch {
		case s.Syscall >= 0:
			k.multi = f.calls[s.Syscall]
		case s.Kernel != 0:
			k.multi = f.stack(s.Kernel).multi
		default:
			k.multi = f.stack(s.User).multi
		}
	}
	return k
}

// blockOf is what a wait is in: where the kernel's side was not recorded, by the function that asked for it.
func (f *finder) blockOf(s *sched.Stretch) sched.Block {
	if s.Block != sched.BlockUnknown {
		return s.Block
	}
	return f.stack(s.User).asks
}

// asksFor tells by a function of the C library what its caller waits for.
func asksFor(name string) (sched.Block, multiplex) {
	name = strings.TrimPrefix(strings.TrimLeft(name, "_"), "GI_")
	name = strings.TrimPrefix(strings.TrimLeft(name, "_"), "libc_")
	switch name {
	case "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect":
		return sched.BlockNetwork, multiMany
	case "accept", "accept4":
		return sched.BlockNetwork, multiAccept
	case "recv", "recvfrom", "recvmsg", "recvmmsg":
		return sched.BlockNetwork, multiNone
	case "nanosleep", "clock_nanosleep", "clock_nanosleep_time64":
		return sched.BlockTimer, multiNone
	}
	return sched.BlockUnknown, multiNone
}

// ending is what ended a wait.
type ending uint8

const (
	endOther  ending = iota
	endNet           // from outside: the network, another process
	endTimer         // it was long enough
	endThread        // a thread of the target
	endSignal        // not its end
	endUnseen        // the waking was not recorded
)

func (f *finder) endOf(s *sched.Stretch) ending {
	if s.WakerSignal {
		return endSignal
	}
	block := f.blockOf(s)
	if s.Waker == 0 && !s.ByInterrupt && block != sched.BlockTimer && block != sched.BlockNetwork {
		return endUnseen
	}
	byThread := s.WakerTarget && !s.ByInterrupt && s.Waker != 0
	byTimer := s.ByInterrupt && (f.stack(s.WakerKernel).timer || f.timerDue(s))
	switch block {
	case sched.BlockNetwork, sched.BlockPipe:
		switch {
		case byTimer:
			return endTimer
		case byThread:
			return endThread
		}
		return endNet
	case sched.BlockFutex:
		switch {
		case byThread:
			return endThread
		case s.ByInterrupt:
			return endTimer
		case s.Waker != 0: // another process shares the memory
			return endNet
		}
	case sched.BlockTimer:
		return endTimer
	}
	return endOther
}

// timerDue tells that a timer of the waiter's own went off when its wait ended.
func (f *finder) timerDue(s *sched.Stretch) (yes bool) {
	f.k.EventsOf(f.tid, s.Whole.End-dueNS, s.Whole.End+1, func(*sched.Event) bool {
		yes = true
		return false
	}, kernel.TimerDue)
	return yes
}

// dueNS is how long before a waking the timer went off that causes it: both happen in one interrupt.
const dueNS = 20e3

// threadStack is what a stack means.
type threadStack struct {
	sig      uint32 // 0: not whole
	depth    int
	entry    string
	timer    bool // a timer's interrupt
	asks     sched.Block
	goFrames bool
	stacks   bool // in what makes threads, or takes and gives back the stacks that the C library keeps
	multi    multiplex
}

func (f *finder) stack(id uint32) *threadStack {
	if st, ok := f.stacks[id]; ok {
		return st
	}
	st := &threadStack{}
	if id != 0 {
		frames := f.k.Stack(id)
		f.learnStack(st, frames)
	}
	f.stacks[id] = st
	return st
}

func (f *finder) learnStack(st *threadStack, frames []kernel.Frame) {
	var b strings.Builder
	for i := range frames {
		fr := &frames[i]
		if fr.Inferred {
			break // it may never have been called: no place to tell others from
		}
		name := fr.Func
		switch plain, _, _ := strings.Cut(name, "@"); strings.TrimLeft(plain, "_") {
		case "pthread_create", "pthread_create_2_1", "thrd_create", "allocate_stack", "get_cached_stack", "nptl_free_stacks", "nptl_deallocate_stack",
			"nptl_free_tcb", "deallocate_stack", "free_stacks", "queue_stack":
			st.stacks = true
		}
		switch {
		case strings.HasPrefix(name, "hrtimer_") || name == "process_timeout" || name == "it_real_fn":
			st.timer = true
		case strings.HasPrefix(name, "ep_poll") || name == "do_epoll_wait" || strings.HasPrefix(name, "do_sys_poll") || name == "do_poll" ||
			name == "do_select" || name == "core_sys_select":
			st.multi = multiMany
		case strings.HasSuffix(name, "_accept") || strings.HasPrefix(name, "do_accept") || strings.HasPrefix(name, "__sys_accept"):
			st.multi = multiAccept
		case name == "runtime.mcall" || name == "runtime.findRunnable" || name == "runtime.schedule" || name == "runtime.mstart" || name == "runtime.goexit":
			st.goFrames = true
		}
		if i < 2 && st.asks == sched.BlockUnknown {
			if b, m := asksFor(name); b != sched.BlockUnknown {
				st.asks, st.multi = b, m
			}
		}
		if sched.ThreadRoot(name) {
			if i > 0 {
				st.depth = i
				sig, ok := f.sigs[b.String()]
				if !ok && len(f.sigs) < 1<<16 {
					sig = uint32(len(f.sigs) + 1)
					f.sigs[b.String()] = sig
				}
				st.sig = sig
				st.entry = entryBelow(frames[:i])
			}
			return
		}
		if name == "" && fr.Module == "" {
			return // nothing stands below what is not code
		}
		b.WriteString(name)
		if name == "" {
			b.WriteString(fr.Module)
			for v := fr.Offset; v != 0; v >>= 8 {
				b.WriteByte(byte(v))
			}
		}
		b.WriteByte(0)
	}
}

// entryBelow is the outermost function that is the program's own.
func entryBelow(frames []kernel.Frame) string {
	for i := len(frames) - 1; i >= 0; i-- {
		name := frames[i].Func
		switch {
		case strings.Contains(frames[i].Module, "libc.so"), strings.Contains(frames[i].Module, "ld-"):
			continue // the library's own work at a thread's begin or end
		case name == "":
			return ""
		case sched.LanguageFunc(name), strings.HasPrefix(name, "execute_native_thread_routine"), strings.HasPrefix(name, "thread_native_entry"),
			strings.HasPrefix(name, "Thread::call_run"):
			continue
		}
		return name
	}
	return ""
}
