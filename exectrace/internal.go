package exectrace

// What the two families of formats share. The reader of 1.22 and later is in v2*.go, that of 1.11
// to 1.21 in v1*.go. Each fills blocks of events in order and hands them to yield.
//
// Both keep these rules:
//
//   - Only the goroutine that ranges over Blocks touches tables, slots, stats and gaps. So ids do
//     not depend on how many workers decoded.
//   - Interning is by content. What exceeds a bound becomes 0, and Gaps says so once.
//   - An Event starts as blank, so what its Kind does not use has its No... value.
//   - Of a waking or a creation, OnStack is the waker's stack. A creation has in Stack where the
//     new goroutine starts. Every other stack is in Stack: of a blocking event the goroutine's own,
//     else that of where it happened.
//   - A goroutine's own transition has On == G. A start, a status and a sample of an idle P have On
//     NoGoroutine.
//   - P and On are those before the event: a KindProc start has P NoProc, and the number in Proc.

// blank is an event that says nothing.
var blank = Event{
	G: NoGoroutine, On: NoGoroutine, M: NoThread, P: NoProc, Proc: NoProc,
	Slot: NoSlot, OnSlot: NoSlot,
}

// blockEvents is the number of events in a block: 90 KB, which stay in the second-level cache
// between the worker that fills the block and the consumer.
const blockEvents = 1024

// read is what one read of the trace leaves behind.
type read struct {
	err   error
	gaps  []Gap
	stats Stats
	clock Clock
}

// maxGaps bounds the list for a file that is nothing but damage. The last gap that is kept says so,
// and grows.
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
