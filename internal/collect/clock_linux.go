package collect

import (
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/whystall/whystall/internal/evidence"
)

// Clocks of Linux, by their numbers (linux/time.h).
const (
	clockMonotonic     = 1
	clockThreadCPUTime = 3
	clockBoottime      = 7
)

// readClock reads a clock in ns; ok is false where the kernel has no such clock.
func readClock(id uintptr) (ns int64, ok bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano(), errno == 0
}

// now reads both clocks. CLOCK_MONOTONIC is the clock of Go's execution traces on Linux (1.22 and
// later). The wall clock is read in the middle, so the two are at most some 100 ns apart, unless we
// lose the CPU in between.
func now() evidence.Moment {
	a := monotonic()
	t := time.Now()
	b := monotonic()
	return evidence.Moment{UTC: t.UTC(), MonoNS: a + (b-a)/2}
}

func monotonic() int64 {
	ns, _ := readClock(clockMonotonic)
	return ns
}

// threadCPU is the CPU time of the calling thread in ns.
func threadCPU() int64 {
	ns, _ := readClock(clockThreadCPUTime)
	return ns
}

// processCPU is the CPU time of a process, ns, by the clock that each process has; -1 if it is
// gone.
func processCPU(pid int) int64 {
	ns, ok := readClock(^uintptr(pid)<<3 | 2) // MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED)
	if !ok {
		return -1
	}
	return ns
}

// ownCPU is the CPU time of this process so far, ns.
func ownCPU() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// release is the running kernel's release, "" where it is not known.
func release() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
