package exectrace

// What the two format families share. The reader of 1.22 and later lives in v2*.go, that of 1.11 to
// 1.21 in v1*.go; each fills blocks of events in order and hands them to yield.
//
// The rules both keep:
//
//   - Only the goroutine that ranges over Blocks touches tables, slots, stats and gaps. Ids therefore do
//     not depend on how many workers decoded.
//   - Interning is by content; what exceeds a bound becomes 0 and is said once in Gaps.
//   - An Event starts as blank, so that what a Kind does not use has its No... value.
//   - Wakings and creations: OnStack is the waker's stack. A creation has in Stack where the new goroutine
//     starts. A blocking event has its stack in Stack. Every other stack is in Stack too.
//   - A goroutine's own transition has On == G; a start, a status and a sample's idle P have On NoGoroutine.
//   - P and On are those before the event, so a KindProc start has P NoProc and Proc the number.

// blank is an event that says nothing.
var blank = Event{
	G: NoGoroutine, On: NoGoroutine, M: NoThread, P: NoProc, Proc: NoProc,
	Slot: NoSlot, OnSlot: NoSlot,
}

// blockEvents is the number of events in a block: 90 KB, so that a block stays in the second-level
// cache between the worker that fills it and the consumer.
const blockEvents = 1024

// read is what one run over the trace leaves behind.
type read struct {
	err   error
	gaps  []Gap
	stats Stats
	clock Clock
}

// maxGaps bounds the list of a file that is nothing but damage. The last one kept says so and is extended.
const maxGaps = 4096

func (r *read) gap(g Gap) {
	if n := len(r.gaps); n >= maxGaps {
		l := &r.gaps[n-1]
		l.Begin, l.End = min(l.Begin, g.Begin), max(l.End, g.End)
		l.Bytes += g.Bytes
		l.Reason = "more gaps than are listed one by one"
		return
	}
	r.gaps = append(r.gaps, g)
}

// fail keeps the first error.
func (r *read) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Statuses of a goroutine, as formats 1.22 and later write them. Sums of both families keep them.
const (
	goRunnable = 1 + iota
	goRunning
	goSyscall
	goWaiting
)

var goStates = [...]State{Undetermined, Runnable, Running, Syscall, Waiting}

// maxGo bounds the number of a goroutine, which is not 0 either: what is beyond is damage.
const maxGo = 1 << 62
