package collect

import (
	"syscall"
	"time"
	"unsafe"

	"github.com/whystall/whystall/internal/evidence"
)

// now reads both clocks. CLOCK_MONOTONIC is the clock of Go's execution traces on Linux (1.22 and later).
// The wall clock is read in the middle, so the two are at most some 100 ns apart unless we lose the CPU in between.
func now() evidence.Moment {
	a := monotonic()
	t := time.Now()
	b := monotonic()
	return evidence.Moment{UTC: t.UTC(), MonoNS: a + (b-a)/2}
}

func monotonic() int64 {
	const clockMonotonic = 1
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0
	}
	return ts.Nano()
}
