package unit

import (
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// blockOf is what a wait is in. If the kernel's side was not recorded, as without privilege, the C
// library's function that asked for the wait says it.
func (f *finder) blockOf(s *sched.Stretch) sched.Block {
	if s.Block != sched.BlockUnknown {
		return s.Block
	}
	return f.stack(s.User).asks
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
			k.multi = f.multiplexes[s.Syscall]
		case s.Kernel != 0:
			k.multi = f.stack(s.Kernel).multi
		default:
			k.multi = f.stack(s.User).multi
		}
		k.made = k.single() && f.timeline.Made(k.arg)
	}
	return k
}

// mostDescriptors is more than a process may have open: a larger argument is a pointer.
const mostDescriptors = 1 << 20

// ending is what ended a wait.
type ending uint8

const (
	endOther  ending = iota // none of these, as a disk
	endNet                  // something from outside: the network, another process
	endTimer                // its time was up
	endThread               // a thread of the target
	endSignal               // a signal, or room to write: the thread goes back to its wait
	endUnseen               // not known: the waking was not recorded
)

// endOf decides what ended a wait. An interrupt on its own says little: network packets and timers
// both arrive in one, and whichever thread the interrupt found on the CPU is a bystander. The stack
// of the waking, or the record of a timer that went off, tells them apart.
func (f *finder) endOf(s *sched.Stretch) ending {
	if s.WakerSignal {
		return endSignal
	}
	block := f.blockOf(s)
	if s.WakerReads && block == sched.BlockNetwork {
		return endSignal
	}
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
		case s.Waker != 0: // another process, which shares the memory
			return endNet
		}
	case sched.BlockTimer:
		return endTimer
	}
	return endOther
}

// timerDue reports whether a timer of the waiter's own went off right before its wait ended.
func (f *finder) timerDue(s *sched.Stretch) (yes bool) {
	f.timeline.EventsOf(f.tid, s.Whole.End-dueNS, s.Whole.End+1, func(*sched.Event) bool {
		yes = true
		return false
	}, kernel.TimerDue)
	return yes
}

// dueNS is the most time between a timer that goes off and the waking that it causes: both happen
// in one interrupt.
const dueNS = 20e3

// isLock reports whether a futex is a lock or another kind by which no work arrives. A futex of
// unknown kind counts as one: to take a lock for a queue would make units of work out of
// contention.
func (f *finder) isLock(s *sched.Stretch) bool {
	u := f.timeline.FutexOf(s)
	return u == nil || u.Kind != sched.FutexCondition && u.Kind != sched.FutexSemaphore
}

// answered reports whether the thread that ended the wait s of tid had itself been woken by tid
// shortly before: then it brings an answer, not new work.
func (f *finder) answered(s *sched.Stretch, tid uint32) bool {
	f.wakings = f.timeline.Woken(s.Waker, s.Whole.Begin-answerNS, s.Whole.End, f.wakings[:0])
	for i := range f.wakings {
		if w := &f.wakings[i]; w.Waker == tid && !w.Interrupt {
			return true
		}
	}
	return false
}

// answerNS is the most time between a thread's question, which wakes another, and its wait for the
// answer.
const answerNS = 1e6

// kin reports whether two threads have one name but for its numbers.
func (f *finder) kin(a, b uint32, at int64) bool {
	x, ok := f.timeline.Name(a, at)
	y, known := f.timeline.Name(b, at)
	return ok && known && x.Comm != "" && CommPattern(x.Comm) == CommPattern(y.Comm)
}
