package collect

import (
	"context"
	"sync"

	"github.com/whystall/whystall/internal/sensor/bpf"
)

// ordinary runs what holds a lock of the target, see [bpf.Ordinary].
func ordinary(f func()) { bpf.Ordinary(f) }

// Ahead lets this process, which records and explains, run before others while the machine is
// crowded, and behind them while it has idle time, until the function it returns is called; see
// [bpf.Ahead] and [bpf.Behind]. It is never ahead while a recording shares a quota with its target.
func Ahead() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	restore := moreProcs()
	var both sync.WaitGroup
	both.Go(func() { bpf.Ahead(ctx, "/proc/loadavg", sharesQuota.Load) })
	both.Go(func() { bpf.Behind(ctx, "/proc/uptime") })
	return func() {
		cancel()
		both.Wait()
		restore()
	}
}
