package collect

import (
	"context"

	"github.com/whystall/whystall/internal/sensor/bpf"
)

// Ahead lets this process, which records and explains, run before others while the machine is
// crowded, until the function it returns is called; see [bpf.Ahead]. It pauses while a recording
// shares a quota with its target.
func Ahead() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	restore := moreProcs()
	go func() {
		defer close(done)
		bpf.Ahead(ctx, "/proc/loadavg", sharesQuota.Load)
	}()
	return func() {
		cancel()
		<-done
		restore()
	}
}
