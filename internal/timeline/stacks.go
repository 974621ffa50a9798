package timeline

import (
	"strings"

	"github.com/whystall/whystall/exectrace"
)

// FuncID names a function of the trace's program; 0 is none.
type FuncID uint32

// Stack is what a stack means.
type Stack struct {
	known    bool
	socket   bool // reads or writes a socket: the runtime parks the goroutine rather than let such a call block
	sends    bool // writes to a socket
	deadline bool // a socket's deadline or Close is at work: its goroutine really is the ender
	kind     frameKind
	classed  bool
	reason   exectrace.Reason // the last that it was met with, and what wait that is, if classed
	wait     Wait
	Site     FuncID // innermost function that is no plumbing
	LockSite FuncID // first above sync and wrappers of locks
	Entry    FuncID // outermost: the goroutine's entry function, unless the stack was cut
}

// frameKind is what the first frame below the parking machinery says of a wait.
type frameKind uint8

const (
	frameOther frameKind = iota
	frameNone            // no stack
	frameChan
	frameMutex
	frameWaitGroup
	frameCond
	framePoll
	frameSleep
	frameMarkDone
	frameGCStart
	frameSTW
	frameAssist
	frameIdle
	frameRuntime // another of the runtime
)

// Stacks says what the stacks of one source mean. What was worked out is kept by id.
type Stacks struct {
	src    Source
	infos  []Stack
	names  []string
	byName map[string]FuncID
	traits []trait // by FuncID

	launchers FuncID // the last of them
	frames    []exectrace.Frame
	funcs     map[exectrace.StackID][]FuncID
}

// trait is what a function's name says.
type trait uint16

const (
	traitPark    trait = 1 << iota // parks: say nothing of the wait
	traitChan                      // and it is a channel's
	traitWrapper                   // locks or unlocks for others
	traitSync                      // package sync, the runtime or the poller
	traitPlumb                     // passes bytes on: net, bufio, …
	traitEnd                       // below it there is no program: runtime.goexit, runtime.main
	traitDeadline
	traitSocket
	traitSends
)

// NewStacks resolves stacks with src.
func NewStacks(src Source) *Stacks {
	return &Stacks{
		src: src, names: []string{""}, traits: []trait{0}, byName: map[string]FuncID{"": 0},
		funcs: map[exectrace.StackID][]FuncID{},
	}
}

// Func is the name of a function: from the trace, untrusted.
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
	for i := len(s.frames) - 1; i > 0 && info.Entry != 0 && info.Entry <= s.launchers; i-- {
		if s.intern(Plain(s.frames[i].Func)) != info.Entry {
			continue // below it
		}
		fn := s.intern(Plain(s.frames[i-1].Func))
		if s.traits[fn]&(traitPark|traitSync|traitPlumb) != 0 {
			break // its own counting
		}
		info.Entry = fn
	}
	if len(s.frames) == 1 && s.names[info.Entry] == "runtime.asyncPreempt" {
		// A leaf without a frame was preempted: its callers are not on the stack, and this is not where it began.
		info.Entry = 0
	}
	if channel && info.kind <= frameNone {
		info.kind = frameChan
	}
	// a stack of nothing but plumbing is named by its outermost frame
	if info.Site == 0 {
		info.Site = info.Entry
	}
	if info.LockSite == 0 {
		info.LockSite = info.Entry
	}
	return info
}

// Funcs lists a stack's functions, innermost first.
func (s *Stacks) Funcs(id exectrace.StackID) []FuncID {
	fs, ok := s.funcs[id]
	if !ok {
		s.frames = s.src.Frames(s.frames[:0], id)
		for i := range s.frames {
			fs = append(fs, s.intern(Plain(s.frames[i].Func)))
		}
		if len(s.funcs) > 1<<14 { // bounded: those that were looked at lately are what is wanted
			clear(s.funcs)
		}
		s.funcs[id] = fs
	}
	return fs
}

// Plain is a function's name without what the compiler adds to it for a deferred call, so that an unlock
// by defer stands at the function that has the lock.
func Plain(name string) string {
	for {
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			return name
		}
		last := name[i+1:]
		if strings.HasPrefix(last, "deferwrap") || strings.HasPrefix(last, "gowrap") {
			name = name[:i]
			continue
		}
		return name
	}
}

// traitsOf reads a function's name. The lists are the functions that lie between a goroutine's code and its
// parking in Go 1.11 to 1.26.
func traitsOf(name string) trait {
	var t trait
	switch name {
	case "runtime.gopark", "runtime.goparkunlock", "runtime.semacquire", "runtime.semacquire1", "runtime.semasleep",
		"runtime.notesleep", "runtime.notetsleepg", "runtime.block", "runtime.netpollblock":
		t |= traitPark | traitSync
	case "runtime.chanrecv", "runtime.chanrecv1", "runtime.chanrecv2", "runtime.chansend", "runtime.chansend1",
		"runtime.selectgo", "runtime.selectnbrecv", "runtime.selectnbsend", "runtime.closechan",
		"reflect.chanrecv", "reflect.chansend", "reflect.chansend0", "reflect.rselect":
		t |= traitPark | traitChan | traitSync
	case "runtime.goexit", "runtime.main":
		t |= traitEnd
	case "internal/poll.(*pollDesc).evict", "internal/poll.setDeadlineImpl", "internal/poll.runtime_pollSetDeadline",
		"internal/poll.runtime_pollUnblock", "internal/poll.(*FD).Close":
		t |= traitDeadline
	case "net.(*netFD).Read", "net.(*netFD).Write":
		t |= traitSocket
	}
	// Write, writeTo, writeToInet4, writeMsg, writeBuffers and so on.
	if strings.HasPrefix(name, "net.(*netFD).write") || strings.HasPrefix(name, "net.(*netFD).Write") {
		t |= traitSends
	}
	pkg := name
	slash := strings.LastIndexByte(name, '/')
	if dot := strings.IndexByte(name[slash+1:], '.'); dot >= 0 {
		pkg = name[:slash+1+dot]
	}
	switch pkg {
	case "runtime", "sync", "internal/sync", "internal/runtime", "internal/poll", "internal/race", "internal/runtime/maps", "sync/atomic":
		t |= traitSync
		if strings.HasPrefix(name[len(pkg):], ".runtime_") {
			t |= traitPark
		}
	case "net", "bufio", "io", "syscall", "crypto/tls", "os", "internal/syscall/unix", "internal/runtime/syscall", "time",
		"io/ioutil", "golang.org/x/sys/unix", "iter", "reflect", "container/list":
		t |= traitPlumb
	}
	if wrapsLock(lastWord(name)) {
		t |= traitWrapper
	}
	return t
}

// lastWord is the name of the method or function alone: "Lock" of "x/y.(*T[...]).Lock.func1".
func lastWord(name string) string {
	if i := strings.IndexByte(name, '['); i >= 0 {
		if j := strings.LastIndexByte(name, ']'); j > i {
			name = name[:i] + name[j+1:]
		}
	}
	for {
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			return name
		}
		last := name[i+1:]
		if strings.HasPrefix(last, "func") && strings.Trim(last[4:], "0123456789") == "" || strings.Trim(last, "0123456789") == "" {
			name = name[:i]
			continue
		}
		return strings.TrimSuffix(last, "-fm")
	}
}

// wrapsLock knows lock, Unlock, RLock, rwlock, readUnlock, tryLock, lockSlow and the like.
func wrapsLock(w string) bool {
	w = strings.ToLower(w)
	for _, p := range []string{"try", "rw", "read", "write", "r", "w", "must", "mu"} {
		if rest, ok := strings.CutPrefix(w, p); ok && (strings.HasPrefix(rest, "lock") || strings.HasPrefix(rest, "unlock")) {
			return true
		}
	}
	return strings.HasPrefix(w, "lock") || strings.HasPrefix(w, "unlock")
}

func kindOf(name string) frameKind {
	has := func(ps ...string) bool {
		for _, p := range ps {
			if strings.HasPrefix(name, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("sync.(*Mutex)", "internal/sync.(*Mutex)", "sync.(*RWMutex)", "internal/poll.(*fdMutex)"):
		return frameMutex
	case has("sync.(*WaitGroup)"):
		return frameWaitGroup
	case has("sync.(*Cond)"):
		return frameCond
	case has("internal/poll.(*pollDesc)", "internal/poll.(*FD)"):
		return framePoll
	case has("time.Sleep"):
		return frameSleep
	case !has("runtime.", "runtime/"):
		return frameOther
	case has("runtime.gcMarkDone"):
		return frameMarkDone
	case has("runtime.gcStart", "runtime.gcBgMarkStartWorkers"):
		return frameGCStart
	case has("runtime.gcWaitOnMark"), name == "runtime.GC":
		return frameMarkDone
	case has("runtime.stopTheWorld", "runtime.ReadMemStats", "runtime.traceAdvance", "runtime.GOMAXPROCS", "runtime.StartTrace",
		"runtime.StopTrace", "runtime.startTheWorld", "runtime.traceStart", "runtime.goroutineProfile", "runtime.stopTrace"):
		return frameSTW
	case has("runtime.gcAssistAlloc", "runtime.gcParkAssist"):
		return frameAssist
	case has("runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge", "runtime.runfinq", "runtime.runFinalizers",
		"runtime.forcegchelper", "runtime.(*scavengerState)", "runtime.runCleanups", "runtime.(*cleanupQueue)", "runtime.timerproc",
		"runtime.ReadTrace", "runtime.readTrace", "runtime.createfing", "runtime.(*traceAdvancerState)", "runtime.ensureSigM"):
		return frameIdle
	}
	return frameRuntime
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
	case exectrace.ReasonSweeperIdle, exectrace.ReasonGCWorkerIdle, exectrace.ReasonSystem, exectrace.ReasonForever, exectrace.ReasonDebugCall:
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
		return WaitMessage // Close waits for who still reads
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

// Unlocks tells whether a waker's stack is an unlock of a lock, whose site then names the lock.
func (s *Stacks) Unlocks(id exectrace.StackID) bool { return s.Get(id).kind == frameMutex }
