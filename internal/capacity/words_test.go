package capacity

import (
	"testing"

	"github.com/whystall/whystall/internal/sched/schedtest"
)

// TestBehind: a thread's number is used again. Who had the CPU is who had the number then, in
// whatever order it is asked for.
func TestBehind(t *testing.T) {
	k := schedtest.Timeline(t, `header source=bpf pid=10 cpus=0
switch t=1 tid=10 other=20 flags=target
switch t=1000 tid=20 other=10
thread tid=20 pid=20 comm="first" since=5
thread tid=20 pid=20 comm="second" since=300
thread tid=20 pid=20 comm="third" since=600
`)
	w := NewWords(k, func(string) uint32 { return 0 })
	for _, x := range []struct {
		time int64
		want string
	}{{700, "third (pid 20)"}, {1, "first (pid 20)"}, {300, "second (pid 20)"},
		{299, "first (pid 20)"}, {599, "second (pid 20)"}, {600, "third (pid 20)"}} {
		if got := w.Instead(w.Behind(20, x.time).Ref).Who; got != x.want {
			t.Errorf("thread 20 at %d is %s, want %s", x.time, got, x.want)
		}
	}
}
