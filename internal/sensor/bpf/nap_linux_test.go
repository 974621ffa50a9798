package bpf

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// onThread runs f on a thread that is not used again, as its class may have a flag left.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}

func TestNapEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n, err := NewNap(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n.Wait(time.Nanosecond)
	time.AfterFunc(time.Millisecond, cancel)
	n.Wait(time.Hour)
	n.Wait(time.Hour) // and every one after it
	n.Close()

	// A nap that nobody ended is closed as well.
	n, err = NewNap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n.Close()
}
