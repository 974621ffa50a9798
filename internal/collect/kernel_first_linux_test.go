package collect

import (
	"context"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

func TestFirst(t *testing.T) {
	onThread(func() {
		was, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Errorf("ask for the class: %v", err)
			return
		}
		var f first
		f.keep()
		if is, err := unix.SchedGetAttr(0, 0); err != nil || f.on != (is.Policy == unix.SCHED_RR) {
			t.Errorf("on is %v, and the class %d (%v)", f.on, is.Policy, err)
		}
		if f.on {
			f.from -= int64(firstWindow) // as if it had used that much
			before := time.Now()
			f.keep()
			if f.from < 0 || f.at.Before(before) {
				t.Errorf("it used more than it may, and no new window began")
			}
		}
		f.end()
		f.end()
		f.keep()
		if is, err := unix.SchedGetAttr(0, 0); err != nil || is.Policy != was.Policy || is.Nice != was.Nice || is.Priority != was.Priority {
			t.Errorf("was %+v, is %+v (%v)", was, is, err)
		}
	})
	var none *first
	none.keep()
	none.end()
}

// Who was begun in a class of its own stays there.
func TestFirstOfAnotherClass(t *testing.T) {
	onThread(func() {
		if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH}, 0); err != nil {
			t.Errorf("set the class: %v", err)
			return
		}
		var f first
		f.keep()
		is, err := unix.SchedGetAttr(0, 0)
		if err != nil || is.Policy != unix.SCHED_BATCH || f.on {
			t.Errorf("on is %v, and the class %+v (%v)", f.on, is, err)
		}
		f.end()
	})
}

func TestNapEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n, err := newNap(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n.wait(time.Nanosecond)
	time.AfterFunc(time.Millisecond, cancel)
	n.wait(time.Hour)
	n.wait(time.Hour) // and every one after it
	n.close()

	// A nap that nobody ended is closed as well.
	n, err = newNap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n.close()
}
