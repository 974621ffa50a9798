package collect

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/need"
	"github.com/whystall/whystall/internal/sensor/bpf"
)

// TestRecordBPF records this process, and reads the member back: it holds which thread did what,
// with names.
func TestRecordBPF(t *testing.T) {
	need.Kernel(t, "bpf")
	ctx, cancel := context.WithCancel(t.Context())
	var member bytes.Buffer
	done := make(chan error)
	recording := make(chan struct{})
	go func() {
		_, err := recordBPF(ctx, Process{PID: os.Getpid(), Stacks: true, Budget: 1, Recording: func() { close(recording) }}, &member)
		done <- err
	}()
	select {
	case <-recording:
	case err := <-done:
		t.Fatal(err)
	}
	// Each of these sleeps is long enough to have its stacks written.
	for range 5 {
		time.Sleep(3 * time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	r, err := kernel.NewReader(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(member.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[kernel.Kind]int{}
	var last int64
	var stack uint32
	err = r.Each(func(recs []kernel.Record) error {
		for _, rec := range recs {
			kinds[rec.Kind]++
			if rec.Time < last {
				t.Errorf("%v at %d comes after %d", rec.Kind, rec.Time, last)
			}
			last = rec.Time
			if rec.Kind == kernel.WaitStack && rec.User != 0 {
				stack = rec.User
			}
		}
		return nil
	})
	if err != nil || r.Ended() != "" {
		t.Fatalf("read back: %v, %s", err, r.Ended())
	}
	if kinds[kernel.Switch] == 0 || kinds[kernel.Waking] == 0 || kinds[kernel.WaitStack] == 0 {
		t.Errorf("records by kind: %v", kinds)
	}
	if frames := r.Stack(stack); stack != 0 && (len(frames) < 2 || frames[0].Func == "") {
		t.Errorf("a wait's stack: %+v", frames)
	}
	own := 0
	for _, th := range r.Threads() {
		if th.Target {
			own++
		}
		if th.Target && (th.PID != r.Header().PID || th.NSTID == 0 || th.Comm == "") {
			t.Errorf("a thread of ours: %+v", th)
		}
	}
	if own == 0 {
		t.Error("no thread of ours is named")
	}
}

// TestStackOrder: a ring may speak of a stack that another defines, before or after.
func TestStackOrder(t *testing.T) {
	s := &bpfStream{stacks: map[uint64]stackID{}}
	first := s.stack(7)
	id, isNew := s.define(7)
	if id != first || !isNew {
		t.Errorf("defined after it was spoken of: id %d, want %d, new %v", id, first, isNew)
	}
	if _, isNew := s.define(7); isNew {
		t.Error("defined twice")
	}
	if other := s.stack(9); other == first || other == 0 {
		t.Errorf("another stack has id %d", other)
	}
}

func TestFlags(t *testing.T) {
	for _, p := range flagPairs {
		if got := flagsOf(p.event); got != p.record {
			t.Errorf("flag %b becomes %b, want %b", p.event, got, p.record)
		}
	}
	if got := flagsOf(bpf.Target | bpf.Preempted); got != kernel.Target|kernel.Preempted {
		t.Errorf("two flags become %b", got)
	}
}
