package report

import (
	"testing"

	"github.com/whystall/whystall/internal/account"
)

// A trace of Go 1.19 has a clock of its own, on which the kernel's times must not be read.
func TestStandstillOnTheKernelsClock(t *testing.T) {
	const shift = int64(15_000_000 * ms) // of the trace's clock to CLOCK_MONOTONIC
	k := &account.Kernel{Standstills: []account.Standstill{{Begin: begin, End: begin + 80*ms}}}
	l := &account.Result{Kernel: k, Begin: begin - shift, Wall: true, WallOffset: atEpoch - begin + shift}
	if got := kernelOf(k, l).Standstills[0].UTC; got != nil {
		t.Errorf("without the kernel's wall clock: %s, want none", *got)
	}
	k.Wall, k.WallOffset = true, atEpoch-begin
	want := wallClock{true, atEpoch - begin}.utc(begin)
	if got := kernelOf(k, l).Standstills[0].UTC; got == nil || *got != *want {
		t.Errorf("with it: %v, want %s", got, *want)
	}
}
