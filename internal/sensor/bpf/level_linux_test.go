package bpf

import (
	"testing"

	"github.com/whystall/whystall/internal/need"
)

// TestLower: after each step what it gives up is not reported, and switches and wake-ups of the
// target are as before.
func TestLower(t *testing.T) {
	need.Kernel(t, "bpf")
	a := play(t, "pingpong")
	r := record(t, Options{PID: a.cmd.Process.Pid, Stacks: true})
	told := func() map[string]int {
		n := map[string]int{}
		for _, e := range during(t, r, func() { a.do("2000") }) {
			switch {
			case e.Kind == Switch && e.Flags&(Target|OtherTarget) != 0:
				n["own switches"]++
			case e.Kind == Switch:
				n["others' switches"]++
			case e.Kind == Waking:
				n["wake-ups"]++
				if e.User != 0 {
					n["stacks"]++
				}
			case e.Kind == WaitStack:
				n["stacks"]++
			case e.Kind == Sample:
				n["samples"]++
			}
		}
		return n
	}
	n := told()
	if n["stacks"] == 0 {
		t.Errorf("at first: %v", n)
	}
	for step := range Steps {
		all(t, r) // what came up to now was of before
		if err := r.Lower(step); err != nil {
			t.Fatal(err)
		}
		all(t, r)
		n := told()
		t.Logf("%s: %v", step, n)
		if n["own switches"] < 2000 || n["wake-ups"] < 2000 {
			t.Errorf("%s: the target's own are missing: %v", step, n)
		}
		switch {
		case n["others' switches"] > 0:
			t.Errorf("%s: others' switches are reported: %v", step, n)
		case n["stacks"] == 0:
			t.Errorf("%s: stacks: %v", step, n)
		}
	}
	for e := range Extras {
		r.Detach(e)
		r.Detach(e)
		for range 2 {
			if err := r.Attach(e); err != nil {
				t.Errorf("%s: attach: %v", e, err)
			}
		}
	}
	if l := r.Losses(nil); len(l) > 0 {
		t.Errorf("lost: %+v", l)
	}
}
