package sched

import "testing"

// TestPlaced reads a stream without records of wake-ups. A woken thread is queued where it left, or
// where it is moved as it is woken. One that is moved later was queued at both.
func TestPlaced(t *testing.T) {
	k := timelineOf(t, `
header source=bpf cpus=0,1 pertask alltasks
thread tid=10 pid=10 comm=app target
switch t=0 cpu=0 tid=10 other=7 flags=target args=1
waking t=1000000 cpu=1 tid=10 other=7 flags=interrupt
switch t=1200000 cpu=0 tid=7 other=10 flags=othertarget
switch t=2000000 cpu=0 tid=10 other=7 flags=target args=1
waking t=3000000 cpu=0 tid=10 other=7 flags=interrupt
wakeup t=3001000 cpu=0 tid=10 flags=target,migrate args=1
switch t=3200000 cpu=1 tid=0 other=10 flags=othertarget
switch t=4000000 cpu=1 tid=10 other=0 flags=target args=1
waking t=5000000 cpu=0 tid=10 other=7 flags=interrupt
wakeup t=5400000 cpu=0 tid=10 flags=target,migrate args=0
switch t=5500000 cpu=0 tid=7 other=10 flags=othertarget
`)
	type queued struct {
		begin, end int64
		cpu        int32
	}
	want := []queued{{1000000, 1200000, 0}, {3000000, 3200000, 1}, {5000000, 5400000, 1}, {5400000, 5500000, 0}}
	var got []queued
	for _, s := range k.Stretches(10, 0, 5500000, nil) {
		if s.Doing == Queued {
			got = append(got, queued{s.Begin, s.End, s.CPU})
		}
	}
	if len(got) != len(want) {
		t.Fatalf("queued %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("queued %v, want %v", got, want)
		}
	}
}
