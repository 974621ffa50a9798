package timeline

import "github.com/whystall/whystall/exectrace"

// FuncID names a function of the trace's program; 0 is none.
type FuncID uint32

// Stack is what a stack means.
type Stack struct {
	known    bool
	socket   bool // reads or writes a socket: the runtime parks rather than let such a call block
	sends    bool // writes to a socket
	deadline bool // sets a socket's deadline, or closes it: its goroutine really is the ender
	kind     frameKind
	classed  bool             // reason and wait are set
	reason   exectrace.Reason // the last that the stack was met with
	wait     Wait             // the class that follows from it
	Site     FuncID           // innermost function that is no plumbing
	LockSite FuncID           // first above sync and wrappers of locks
	Entry    FuncID           // outermost: the goroutine's entry function, unless the stack was cut
	cut      bool             // it may have been
	alone    bool             // it is one function: perhaps a goroutine's start, and no stack of its own
}

// wholeFrames is fewer frames than the least number at which Go cuts a stack.
const wholeFrames = 100

// Stacks says what the stacks of one source mean. Each is worked out once and kept by its id.
type Stacks struct {
	src    Source
	infos  []Stack
	names  []string
	byName map[string]FuncID
	traits []trait // by FuncID

	launchers FuncID // functions up to this one are launchers, see [Options]
	frames    []exectrace.Frame
	funcs     map[exectrace.StackID][]FuncID
}

// NewStacks resolves stacks with src.
func NewStacks(src Source) *Stacks {
	return &Stacks{
		src: src, names: []string{""}, traits: []trait{0}, byName: map[string]FuncID{"": 0},
		funcs: map[exectrace.StackID][]FuncID{},
	}
}

// Func is the name of a function. It is from the trace, untrusted.
func (s *Stacks) Func(id FuncID) string {
	if int(id) >= len(s.names) {
		return ""
	}
	return s.names[id]
}

// Name gives an id to a name that need not be a function's.
func (s *Stacks) Name(name string) FuncID { return s.intern(name) }

func (s *Stacks) intern(name string) FuncID {
	id, ok := s.byName[name]
	if !ok {
		id = FuncID(len(s.names))
		s.byName[name] = id
		s.names = append(s.names, name)
		s.traits = append(s.traits, traitsOf(name))
	}
	return id
}

// Get says what stack id means.
func (s *Stacks) Get(id exectrace.StackID) *Stack {
	if int(id) < len(s.infos) && s.infos[id].known {
		return &s.infos[id]
	}
	return s.learn(id)
}

func (s *Stacks) learn(id exectrace.StackID) *Stack {
	for int(id) >= len(s.infos) {
		s.infos = append(s.infos, make([]Stack, max(64, len(s.infos)))...)
	}
	info := &s.infos[id]
	*info = Stack{known: true, kind: frameNone}
	s.frames = s.src.Frames(s.frames[:0], id)
	info.cut, info.alone = len(s.frames) >= wholeFrames, len(s.frames) == 1
	first := true
	channel := false
	for i := range s.frames {
		fn := s.intern(Plain(s.frames[i].Func))
		t := s.traits[fn]
		if t&traitEnd != 0 && i > 0 {
			break
		}
		info.Entry = fn
		info.socket = info.socket || t&traitSocket != 0
		info.sends = info.sends || t&traitSends != 0
		if t&traitDeadline != 0 {
			info.deadline = true
		}
		if first {
			switch {
			case t&traitPark != 0:
				channel = channel || t&traitChan != 0
			default:
				info.kind = kindOf(s.names[fn])
				first = false
			}
		}
		if info.LockSite == 0 && t&(traitPark|traitSync|traitWrapper) == 0 {
			info.LockSite = fn
		}
		if info.Site == 0 && t&(traitPark|traitSync|traitWrapper|traitPlumb) == 0 {
			info.Site = fn
		}
	}
	s.skipLaunchers(info)
	if len(s.frames) == 1 && s.names[info.Entry] == "runtime.asyncPreempt" {
		// A leaf without a frame was preempted. Its callers are not on the stack, so the goroutine
		// did not begin here.
		info.Entry = 0
	}
	if channel && info.kind <= frameNone {
		info.kind = frameChan
	}
	// A stack of nothing but plumbing is named by its outermost frame.
	if info.Site == 0 {
		info.Site = info.Entry
	}
	if info.LockSite == 0 {
		info.LockSite = info.Entry
	}
	return info
}

// skipLaunchers names a goroutine after the function that its launcher calls. s.frames is its
// stack.
func (s *Stacks) skipLaunchers(info *Stack) {
	for i := len(s.frames) - 1; i > 0 && s.isLauncher(info.Entry); i-- {
		if s.intern(Plain(s.frames[i].Func)) != info.Entry {
			continue // below it
		}
		fn := s.intern(Plain(s.frames[i-1].Func))
		if s.traits[fn]&(traitPark|traitSync|traitPlumb) != 0 {
			break // the launcher waits for its own bookkeeping
		}
		info.Entry = fn
	}
}

// isLauncher reports whether fn is a launcher: those are interned first.
func (s *Stacks) isLauncher(fn FuncID) bool { return fn != 0 && fn <= s.launchers }

// Funcs lists a stack's functions, innermost first.
func (s *Stacks) Funcs(id exectrace.StackID) []FuncID {
	fs, ok := s.funcs[id]
	if !ok {
		s.frames = s.src.Frames(s.frames[:0], id)
		for i := range s.frames {
			fs = append(fs, s.intern(Plain(s.frames[i].Func)))
		}
		if len(s.funcs) > 1<<14 { // bounded: those that were looked at lately are wanted
			clear(s.funcs)
		}
		s.funcs[id] = fs
	}
	return fs
}

// classify is class for the stack id, which is known, and notes the answer in info.
func (s *Stacks) classify(info *Stack, id exectrace.StackID, reason exectrace.Reason) Wait {
	info.wait, info.reason, info.classed = s.class(reason, id), reason, true
	return info.wait
}

// class says what kind of wait this is: docs/ledger.md, "5. Waits".
func (s *Stacks) class(reason exectrace.Reason, id exectrace.StackID) Wait {
	switch reason {
	case exectrace.ReasonNetwork:
		return WaitNetwork
	case exectrace.ReasonSleep:
		return WaitTimer
	case exectrace.ReasonCond, exectrace.ReasonCoroutine, exectrace.ReasonSynctest:
		return WaitMessage
	case exectrace.ReasonAssistCredit:
		return WaitAssistCredit
	case exectrace.ReasonPreempted:
		return WaitScan
	case exectrace.ReasonUntilGCEnds:
		return WaitMarkTerm
	case exectrace.ReasonSweeperIdle, exectrace.ReasonGCWorkerIdle, exectrace.ReasonSystem,
		exectrace.ReasonForever, exectrace.ReasonDebugCall:
		return WaitIdle
	}
	kind := frameNone
	if id != 0 {
		kind = s.Get(id).kind
	}
	switch kind {
	case frameMutex:
		return WaitLock
	case frameWaitGroup, frameCond, frameChan:
		return WaitMessage
	case frameMarkDone:
		return WaitMarkTerm
	case frameGCStart:
		return WaitGCStart
	case frameSTW:
		return WaitSTW
	case frameAssist:
		return WaitAssistCredit
	case frameIdle:
		return WaitIdle
	case frameSleep:
		return WaitTimer
	case framePoll:
		if reason != exectrace.ReasonSync {
			return WaitNetwork
		}
		return WaitMessage // Close waits for those who still read
	}
	switch reason {
	case exectrace.ReasonSelect, exectrace.ReasonChanSend, exectrace.ReasonChanRecv:
		return WaitMessage
	case exectrace.ReasonSync:
		if kind == frameRuntime {
			return WaitSTW // a semaphore of the runtime: world, GC, heap dump
		}
		return WaitMessage
	}
	return WaitUnknown
}

// Unlocks reports whether a waker's stack is the unlock of a lock. Its site then names the lock.
func (s *Stacks) Unlocks(id exectrace.StackID) bool { return s.Get(id).kind == frameMutex }
