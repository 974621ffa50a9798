package symbol

import (
	"reflect"
	"runtime"
)

func funcPC(f any) uintptr { return reflect.ValueOf(f).Pointer() }

// physical gives the caller's stack by the program counters alone, which runtime.CallersFrames
// expands.
//
//go:noinline
func physical() []uintptr {
	pcs := make([]uintptr, 32)
	return pcs[:runtime.Callers(2, pcs)]
}
