package timeline

import "strings"

// frameKind is what the first frame below the parking machinery says about a wait.
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

// trait is what a function's name says.
type trait uint16

const (
	traitPark     trait = 1 << iota // parks: says nothing about the wait
	traitChan                       // parks for a channel
	traitWrapper                    // locks or unlocks for others
	traitSync                       // package sync, the runtime or the poller
	traitPlumb                      // passes bytes on: net, bufio, …
	traitEnd                        // below it there is no program: runtime.goexit, runtime.main
	traitDeadline                   // sets a socket's deadline, or closes it
	traitSocket                     // reads or writes a socket
	traitSends                      // writes to a socket
)

// Plain is a function's name without the part that the compiler adds for a deferred call. An unlock
// by defer then stands at the function that has the lock.
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

// traitsOf reads a function's name. The lists are the functions that lie between a goroutine's code
// and its parking in Go 1.11 to 1.26.
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
	case "runtime", "sync", "internal/sync", "internal/runtime", "internal/poll", "internal/race",
		"internal/runtime/maps", "sync/atomic":
		t |= traitSync
		if strings.HasPrefix(name[len(pkg):], ".runtime_") {
			t |= traitPark
		}
	case "net", "bufio", "io", "syscall", "crypto/tls", "os", "internal/syscall/unix",
		"internal/runtime/syscall", "time",
		"io/ioutil", "golang.org/x/sys/unix", "iter", "reflect", "container/list":
		t |= traitPlumb
	}
	if wrapsLock(lastWord(name)) {
		t |= traitWrapper
	}
	return t
}

// lastWord is the name of the method or function alone: "Lock" for "x/y.(*T[...]).Lock.func1".
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
		if strings.HasPrefix(last, "func") && strings.Trim(last[4:], "0123456789") == "" ||
			strings.Trim(last, "0123456789") == "" {
			name = name[:i]
			continue
		}
		return strings.TrimSuffix(last, "-fm")
	}
}

// wrapsLock reports whether a word is lock, Unlock, RLock, rwlock, readUnlock, tryLock, lockSlow or
// the like.
func wrapsLock(w string) bool {
	w = strings.ToLower(w)
	for _, p := range []string{"try", "rw", "read", "write", "r", "w", "must", "mu"} {
		if rest, ok := strings.CutPrefix(w, p); ok &&
			(strings.HasPrefix(rest, "lock") || strings.HasPrefix(rest, "unlock")) {
			return true
		}
	}
	return strings.HasPrefix(w, "lock") || strings.HasPrefix(w, "unlock")
}

// kindOf reads the name of the first function below the parking machinery.
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
	case has("runtime.stopTheWorld", "runtime.ReadMemStats", "runtime.traceAdvance",
		"runtime.GOMAXPROCS", "runtime.StartTrace",
		"runtime.StopTrace", "runtime.startTheWorld", "runtime.traceStart",
		"runtime.goroutineProfile", "runtime.stopTrace"):
		return frameSTW
	case has("runtime.gcAssistAlloc", "runtime.gcParkAssist"):
		return frameAssist
	case has("runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge", "runtime.runfinq",
		"runtime.runFinalizers",
		"runtime.forcegchelper", "runtime.(*scavengerState)", "runtime.runCleanups",
		"runtime.(*cleanupQueue)", "runtime.timerproc",
		"runtime.ReadTrace", "runtime.readTrace", "runtime.createfing",
		"runtime.(*traceAdvancerState)", "runtime.ensureSigM"):
		return frameIdle
	}
	return frameRuntime
}
