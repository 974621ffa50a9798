package collect

import (
	"context"

	"github.com/whystall/whystall/internal/sensor/bpf"
)

// Ahead has this process, which records and explains, run before others while the machine is crowded, see [bpf.Ahead], until the function it returns is
// called; not while a recording goes on that shares a quota with its target.
func Ahead() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	fewer := moreProcs()
	go func() {
		defer close(done)
		bpf.Ahead(ctx, "/proc/loadavg", sharesQuota.Load)
	}()
	return func() {
		cancel()
		<-done
		fewer()
	}
}
