package oncpu

import (
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
)

// goRuntime reports whether a function is of Go's runtime, or of what the compiler calls without
// being asked.
func goRuntime(name string) bool {
	return hasPrefix(name, goPackages) && !strings.HasPrefix(name, "runtime.main") ||
		goAssembly[name] || strings.HasPrefix(name, "gcWriteBarrier") ||
		strings.Contains(name, ".runtime_")
}

var (
	goPackages = []string{"runtime.", "internal/runtime/", "runtime/internal/", "internal/bytealg."}
	goAssembly = words("aeshashbody memeqbody cmpbody indexbytebody countbody indexbody gogo gosave_systemstack_switch callRet debugCall32")
)

// goTypes reports whether a function is one that the compiler makes for a type.
func goTypes(name string) bool {
	return strings.HasPrefix(name, "type:.") || strings.HasPrefix(name, "type..")
}

// goStandard reports whether a function is of Go's standard library: its package path starts with
// a word without a dot, and it is not of package main. A name of C or C++ has no such path.
func goStandard(name string) bool {
	first, _, ok := strings.Cut(name, "/")
	if !ok {
		first, rest, ok := strings.Cut(name, ".")
		return ok && first != "main" && standard[first] && rest != ""
	}
	return standard[first]
}

var standard = words(`archive bufio bytes cmp compress container context crypto database debug embed encoding errors expvar flag fmt go hash html image index internal io
	iter log maps math mime net os path plugin reflect regexp runtime slices sort strconv strings structs sync syscall testing text time unicode unique unsafe vendor weak`)

// goProgram says what a stack was at whose innermost function is of Go's runtime: by what the
// functions are for, up to the first that is not the runtime's.
func goProgram(frames []kernel.Frame, made interpreters) program {
	n := 0
	for n < len(frames) && (goRuntime(frames[n].Func) || goTypes(frames[n].Func)) {
		n++
	}
	p := program{site: siteOf(frames)}
	p.kind, p.name = goWork(frames[:n], made.parts)
	if p.kind == account.WorkSyscall {
		p.name = goCall(frames)
	}
	return p
}

// goCall is the system call that a stack of Go's asks for: of syscall.write the last part.
func goCall(frames []kernel.Frame) string {
	for i := range frames[:min(len(frames), 6)] {
		if call, ok := strings.CutPrefix(frames[i].Func, "syscall."); ok && call != "" &&
			call[0] >= 'a' && call[0] <= 'z' {
			return call
		}
	}
	return inOut
}

// goWork says what the runtime's functions on a stack are for. The order of the rules is by what a
// thing belongs to: an assist is within an allocation and is garbage collection; a map that grows
// allocates and copies, and is the map's.
func goWork(frames []kernel.Frame, parts map[string]goSet) (account.WorkKind, string) {
	leaf := goFunc(frames[0].Func)
	var is goSet
	for i := range frames {
		is |= partsOf(frames[i].Func, parts)
	}
	switch {
	case is.has(goGC):
		return account.WorkGC, gcPart(frames)
	case is.has(goYields):
		return account.WorkSpin, "runtime.Gosched"
	case is.has(goSchedules):
		return account.WorkGoSched, ""
	case leaf == "procyield" || leaf == "procyieldAsm" || leaf == "osyield":
		return account.WorkSpin, "runtime." + leaf
	case is.has(goMapGrows):
		return account.WorkMap, "growth"
	case is.has(goAllocates) && strings.HasPrefix(leaf, "memclr"):
		return account.WorkAlloc, account.AllocClears
	case is.has(goAllocates) && !strings.HasPrefix(leaf, "memmove"):
		return account.WorkAlloc, outerPart(frames, goAllocates)
	case strings.HasPrefix(leaf, "memmove"), strings.HasPrefix(leaf, "memclr"), leaf == "duffcopy",
		leaf == "duffzero", leaf == "typedmemmove":
		return account.WorkMemmove, "runtime." + leaf
	case is.has(goMaps):
		return account.WorkMap, mapPart(frames)
	case is.has(goInterfaces):
		return account.WorkInterface, outerPart(frames, goInterfaces)
	}
	if strings.HasSuffix(leaf, "yscall6") || strings.HasSuffix(leaf, "yscall.Syscall") ||
		strings.HasSuffix(leaf, "yscallNoError") {
		return account.WorkSyscall, ""
	}
	return account.WorkGoRuntime, frames[0].Func
}

// goFunc is the name of a function of the runtime without its package and the compiler's suffixes.
func goFunc(name string) string {
	name = strings.TrimPrefix(name, "runtime.")
	if rest, ok := strings.CutPrefix(name, "internal/runtime/"); ok {
		return rest
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".abi0"), ".goroutine")
	return name
}

// partsOf says which parts of the runtime a function is of; known remembers it, if it is not nil.
func partsOf(name string, known map[string]goSet) (is goSet) {
	if is, ok := known[name]; ok {
		return is
	}
	bare := goFunc(name)
	for part := range goParts {
		if goTable[part](bare) {
			is |= 1 << part
		}
	}
	if known != nil {
		known[name] = is
	}
	return is
}

// goPart is a part of the runtime, goSet a set of them.
type (
	goPart int
	goSet  uint16
)

func (s goSet) has(p goPart) bool { return s>>p&1 != 0 }

const (
	goGC goPart = iota
	goYields
	goSchedules
	goMapGrows
	goAllocates
	goMaps
	goInterfaces
	goParts
)

var goTable = [goParts]func(string) bool{
	goGC: func(n string) bool {
		return n == "GC" || hasPrefix(n, []string{"gcBgMark", "gcDrain", "gcAssist", "bgsweep",
			"bgscavenge", "sweepone", "markroot", "scanobject", "scanblock", "scanstack", "scanConservative",
			"scanSpan", "greyobject", "gcStart", "gcMark", "gcSweep", "gcFlush", "gcWriteBarrier",
			"gcParkAssist", "gcStopTheWorld", "gcResetMarkState", "gcController", "wbBufFlush",
			"(*gcWork)", "(*gcControllerState)", "(*sweepLocked)", "(*mheap).reclaim",
			"(*mspan).sweep", "deductSweepCredit", "deductAssistCredit", "(*pageAlloc).scavenge", "(*scavengerState)",
			"sysUnusedOS", "scavengeOne", "gcenable", "tryDeferToSpanScan", "spanClass.scan",
			"gc/scan.", "finishsweep", "shade", "getGCMask", "freeSomeWbufs",
			"(*mheap).freeSpan", "(*sweepLocker)", "bulkBarrierPreWrite", "scavenge"})
	},
	goYields: func(n string) bool { return n == "gosched_m" || n == "Gosched" },
	goSchedules: func(n string) bool {
		return goSchedulers[n] ||
			hasPrefix(n, []string{"findRunnable", "findrunnable", "runq", "globrunq", "netpoll",
				"park_m", "schedule", "stealWork", "exitsyscall", "entersyscall",
				"reentersyscall", "newproc", "gopreempt", "goschedImpl", "retake", "preempt",
				"(*timers)", "(*timer)", "startTheWorld", "stopTheWorld", "notesleep", "notewakeup",
				"notetsleep", "asyncPreempt"})
	},
	goMapGrows: func(n string) bool {
		return hasPrefix(n, []string{"hashGrow", "growWork", "evacuate", "maps.(*table).grow",
			"maps.(*table).rehash", "maps.(*table).split", "maps.(*Map).growTo"})
	},
	goAllocates: func(n string) bool {
		return hasPrefix(n, []string{"mallocgc", "newobject", "newarray", "makeslice", "growslice",
			"makechan", "makemap", "(*mcache)", "(*mcentral)", "(*mheap).alloc", "(*mheap).grow",
			"(*mheap).allocSpan", "rawstring", "rawbyteslice", "nextFreeFast", "heapSetType",
			"(*mspan).init", "publicationBarrier", "persistentalloc", "sysAlloc", "concatstring",
			"slicebytetostring", "stringtoslicebyte", "stackalloc", "newstack", "copystack", "morestack"})
	},
	goMaps: func(n string) bool {
		return hasPrefix(n, []string{"map", "maps.", "aeshash", "memhash", "strhash", "typehash",
			"nilinterhash", "interhash"})
	},
	goInterfaces: func(n string) bool {
		return hasPrefix(n, []string{"assertE2I", "assertI2", "typeAssert", "interfaceSwitch",
			"getitab", "convT", "convI", "(*itabTableType)", "itabHashFunc", "efaceeq", "ifaceeq",
			"typesEqual", "toRType", "resolveTypeOff", "resolveNameOff", "itabInit"})
	},
}

var goSchedulers = words(`mcall schedule execute gogo stopm startm handoffp wakep ready goready gopark goparkunlock ready.func1 injectglist mPark pidleget pidleput sysmon
	mstart mstart1 mstart0 resetspinning checkTimers runtimer goexit0 goexit1 gdestroy acquirep releasep casgstatus dropg newm newosproc startlockedm stoplockedm
	goyield_m goyield runSafePointFn wirep checkRunqsNoP checkdead`)

// outerPart is the outermost function of a part: what the program's code calls.
func outerPart(frames []kernel.Frame, part goPart) string {
	for i := len(frames) - 1; i >= 0; i-- {
		if name := goFunc(frames[i].Func); goTable[part](name) {
			return "runtime." + name
		}
	}
	return ""
}

// mapPart says what is done to a map.
func mapPart(frames []kernel.Frame) string {
	for i := len(frames) - 1; i >= 0; i-- {
		switch name := strings.ToLower(goFunc(frames[i].Func)); {
		case strings.Contains(name, "assign"), strings.Contains(name, "putslot"):
			return "assignment"
		case strings.Contains(name, "delete"), strings.Contains(name, "clear"):
			return "deletion"
		case strings.Contains(name, "iter"):
			return "iteration"
		case strings.Contains(name, "access"), strings.Contains(name, "getwith"):
			return "lookup"
		}
	}
	return "hashing"
}

// gcPart says which part of garbage collection a stack is of.
func gcPart(frames []kernel.Frame) string {
	for i := range frames {
		name := goFunc(frames[i].Func)
		switch {
		case hasPrefix(name, []string{"gcAssistAlloc", "deductAssistCredit", "gcParkAssist"}):
			return "assists"
		case hasPrefix(name, []string{"bgsweep", "sweepone", "(*mspan).sweep", "(*sweepLocked)",
			"deductSweepCredit", "(*mheap).reclaim"}):
			return account.GCSweep
		case hasPrefix(name, []string{"bgscavenge", "(*pageAlloc).scavenge", "(*scavengerState)", "sysUnusedOS"}):
			return "giving memory back"
		case name == "gcDrainMarkWorkerIdle": // from Go 1.21 on; before, no function tells it
			return account.GCIdle
		}
	}
	return "marking"
}
