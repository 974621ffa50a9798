package bpf

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// While CPUs are idle the threads are behind, without idle time and at the end they are not.
func TestBehind(t *testing.T) {
	if !mayComeBack() {
		t.Skip("not permitted to leave the class SCHED_IDLE")
	}
	path := filepath.Join(t.TempDir(), "uptime")
	var idle atomic.Bool
	idle.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	write := func(seconds float64) {
		// The file is held open, so it is written in place.
		if err := os.WriteFile(path, fmt.Appendf(nil, "1.00 %.2f\n", seconds), 0o600); err != nil {
			t.Error(err)
		}
	}
	write(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		Behind(ctx, path)
	}()
	began, seconds := time.Now(), 0.0
	until := func(what string, ok func(n int) bool) {
		t.Helper()
		for range 1000 {
			if idle.Load() {
				seconds = 1000 * time.Since(began).Seconds() // more than all CPUs have
			}
			write(seconds)
			if ok(len(inClass(t, unix.SCHED_IDLE))) {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("%s: behind are %v", what, inClass(t, unix.SCHED_IDLE))
	}
	until("idle", func(n int) bool { return n > 1 })
	idle.Store(false)
	until("busy", func(n int) bool { return n == 0 })
	idle.Store(true)
	until("idle again", func(n int) bool { return n > 1 })
	Hurry()
	if n := len(inClass(t, unix.SCHED_IDLE)); n != 0 {
		t.Errorf("told to hurry, %d are behind", n)
	}
	hurry.Lock()
	hurry.until = time.Time{}
	hurry.Unlock()
	until("no longer in a hurry", func(n int) bool { return n > 1 })
	onThread(func() {
		setClass(0, unix.SCHED_IDLE, 0)
		Ordinary(func() {
			onThread(func() { reclass(unix.SCHED_NORMAL, unix.SCHED_IDLE) })
			if is, err := unix.SchedGetAttr(0, 0); err != nil || is.Policy != unix.SCHED_NORMAL {
				t.Errorf("not ordinary: %+v, %v", is, err)
			}
		})
	})
	cancel()
	<-done
	until("ended", func(n int) bool { return n <= 1 }) // one may have been just starting
}
