package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameCtrlC is within which signals are one and the same Ctrl-C: timeout(1) sends its signal to the process and to its
// group, and people press twice.
const sameCtrlC = time.Second

// interruptible gives a context that Ctrl-C ends, until done is called. One that comes later ends the program at once
// when last has tidied up; last may be nil.
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
					status := 128 // as a shell says it; the signal itself is ignored in a shell's background
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
