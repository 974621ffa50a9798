package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameCtrlC is the time within which several signals count as one Ctrl-C. timeout(1) sends its
// signal to the process and to its group, and people press twice.
const sameCtrlC = time.Second

// interruptible returns a context that Ctrl-C ends, until done is called. A later Ctrl-C calls
// last, which tidies up and may be nil, and then ends the program at once.
func interruptible(last func()) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		var first time.Time
		for {
			select {
			case <-over:
				return
			case sig := <-heard:
				switch {
				case first.IsZero():
					first = time.Now()
					cancel()
				case time.Since(first) >= sameCtrlC:
					if last != nil {
						last()
					}
					// As a shell reports it. The signal itself is ignored in a shell's background.
					status := 128
					if n, ok := sig.(syscall.Signal); ok {
						status += int(n)
					}
					os.Exit(status)
				}
			}
		}
	}()
	return ctx, func() {
		signal.Stop(heard)
		close(over)
		cancel()
	}
}
