package bpf

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inClass is which of this process' threads have that class.
func inClass(t *testing.T, policy uint32) (tids []int) {
	t.Helper()
	d, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range d {
		tid, _ := strconv.Atoi(e.Name())
		if is, err := unix.SchedGetAttr(tid, 0); err == nil && is.Policy == policy {
			tids = append(tids, tid)
		}
	}
	return tids
}

// In a crowd the threads are ahead, without one, with a quota in common and at the end they are
// not.
func TestAhead(t *testing.T) {
	permitted := false
	onThread(func() {
		permitted = setClass(0, unix.SCHED_RR, 1)
		setClass(0, unix.SCHED_NORMAL, 0) // the process' first thread does not end with its goroutine
	})
	if !permitted {
		t.Skip("not permitted to be of class SCHED_RR")
	}
	path := filepath.Join(t.TempDir(), "loadavg")
	load := func(running string) {
		if err := os.WriteFile(path, []byte("0.10 0.20 0.30 "+running+" 77\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load("9000/9999")
	ctx, cancel := context.WithCancel(t.Context())
	var not atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		Ahead(ctx, path, not.Load)
	}()
	// What it used in the meantime may have them be ordinary for a while: it comes back.
	until := func(what string, ok func(n int) bool) {
		t.Helper()
		for range 3000 {
			if ok(len(inClass(t, unix.SCHED_RR))) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%s: of class SCHED_RR are %v", what, inClass(t, unix.SCHED_RR))
	}
	many := func(n int) bool { return n > 1 }
	onlyItself := func(n int) bool { return n <= 1 }
	until("crowded", many)
	not.Store(true)
	until("a quota in common", onlyItself)
	not.Store(false)
	until("crowded again", many)
	load("1/9999")
	until("calm", onlyItself)
	load("9000/9999")
	until("crowded once more", many)
	cancel()
	<-done
	until("ended", func(n int) bool { return n == 0 })
}

func TestWindow(t *testing.T) {
	begin := time.Now()
	const length = 20 * time.Millisecond
	w := window{length: length, most: int64(length / 5), opened: begin}
	for _, c := range []struct {
		passed time.Duration
		used   time.Duration
		owed   time.Duration
		over   bool
	}{
		{length / 2, length / 10, 0, false},
		{length, length / 10, 0, true},
		{length / 2, length / 4, length * 3 / 4, true},
		{length, length, 4 * length, true},
		{length, 10 * length, mostOwed, true}, // one long go is not slept off whole
	} {
		if owed, over := w.over(begin.Add(c.passed), int64(c.used)); owed != c.owed || over != c.over {
			t.Errorf("%v used in %v: owes %v, over %v; want %v, %v", c.used, c.passed, owed, over, c.owed, c.over)
		}
	}
}
