package bpf

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	start := time.Now()
	p := Pace{Share: 0.1, began: start, used: 5e6}
	for _, c := range []struct {
		name   string
		passed time.Duration
		used   int64
		want   time.Duration
	}{
		{"nothing used", 0, 5e6, 0},
		{"10 ms used at once", 10 * time.Millisecond, 15e6, 90 * time.Millisecond},
		{"within its share", 100 * time.Millisecond, 15e6, 0},
		{"a clock that jumps", 0, 5e9, longestPause},
	} {
		if got := p.pause(start.Add(c.passed), c.used); got != c.want {
			t.Errorf("%s: pauses for %v, want %v", c.name, got, c.want)
		}
	}
	var none *Pace
	none.Keep()
	whole := Pace{Share: 1}
	if whole.Keep(); !whole.began.IsZero() {
		t.Error("a whole CPU is paced")
	}
}
