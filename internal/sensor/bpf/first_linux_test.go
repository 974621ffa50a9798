package bpf

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
		var f First
		f.Keep()
		if is, err := unix.SchedGetAttr(0, 0); err != nil || f.active != (is.Policy == unix.SCHED_RR) {
			t.Errorf("on is %v, and the class %d (%v)", f.active, is.Policy, err)
		}
		if f.active {
			f.startCPU -= int64(firstWindow) // as if it had used that much
			before := time.Now()
			f.Keep()
			if f.startCPU < 0 || f.opened.Before(before) {
				t.Errorf("it used more than it may, and no new window began")
			}
		}
		f.End()
		f.End()
		f.Keep()
		if is, err := unix.SchedGetAttr(0, 0); err != nil || is.Policy != was.Policy ||
			is.Nice != was.Nice || is.Priority != was.Priority {
			t.Errorf("was %+v, is %+v (%v)", was, is, err)
		}
	})
	var none *First
	none.Keep()
	none.End()
}

// A thread behind others that is late hurries for a while, and goes back as long as the others of
// the process are behind.
func TestFirstHurries(t *testing.T) {
	others := func(class uint32) {
		ordinary.Lock()
		defer ordinary.Unlock()
		ordinary.others = class
	}
	defer others(unix.SCHED_NORMAL)
	onThread(func() {
		others(unix.SCHED_IDLE)
		setClass(0, unix.SCHED_IDLE, 0)
		var f First
		late := func(wantBehind bool) {
			t.Helper()
			f.Hurry()
			if f.behind || f.until.IsZero() {
				t.Errorf("told to hurry, it is %+v", f)
			}
			f.until, f.opened = time.Now(), time.Time{} // as if that had been a while ago
			f.Keep()
			is, err := unix.SchedGetAttr(0, 0)
			if err != nil || (is.Policy == unix.SCHED_IDLE) != wantBehind || f.behind != wantBehind {
				t.Errorf("after its spell the class is %+v (%v), and it is %+v", is, err, f)
			}
		}
		f.Keep()
		late(true)
		late(true)
		if f.spell != 2*hurryLeast {
			t.Errorf("the second time it hurries for %s", f.spell)
		}
		others(unix.SCHED_NORMAL)
		late(false)
		f.End()
	})
}

// Who was begun in a class of its own stays there.
func TestFirstOfAnotherClass(t *testing.T) {
	onThread(func() {
		if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr,
			Policy: unix.SCHED_BATCH}, 0); err != nil {
			t.Errorf("set the class: %v", err)
			return
		}
		var f First
		f.Keep()
		is, err := unix.SchedGetAttr(0, 0)
		if err != nil || is.Policy != unix.SCHED_BATCH || f.active {
			t.Errorf("on is %v, and the class %+v (%v)", f.active, is, err)
		}
		f.End()
	})
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
