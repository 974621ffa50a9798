package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// toldClock is a clock that a test moves. Whoever waits by it moves it to that time.
type toldClock struct {
	at   int64
	stop func(at int64)
}

func (c *toldClock) now() int64 { return c.at }

func (c *toldClock) until(at int64) {
	c.at = max(c.at, at)
	if c.stop != nil {
		c.stop(c.at)
	}
}

const ms = int64(1e6)

// TestPace: requests are due at their time although no client takes any, and wait in the queue.
func TestPace(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := &toldClock{stop: func(at int64) {
		if at >= 50*ms {
			cancel()
		}
	}}
	p := newPace(c)
	p.setRate(100)
	p.run(ctx)
	var at []int64
	for len(p.queue) > 0 {
		d := <-p.queue
		at = append(at, d.at/ms)
	}
	if want := []int64{0, 10, 20, 30, 40, 50}; !slices.Equal(at, want) {
		t.Errorf("due at %v ms, want %v", at, want)
	}
	if n := p.log.waiting(); n != 6 {
		t.Errorf("%d wait, want 6", n)
	}
}

// TestLatencyFromDue: a server that stands still for 100 ms makes all wait that were due meanwhile,
// each from when it was due, and a client that finds a stale request gives it up.
func TestLatencyFromDue(t *testing.T) {
	c := &toldClock{}
	p := newPace(c)
	for i := range int64(10) {
		p.queue <- due{p.log.add(i * 10 * ms), i * 10 * ms}
	}
	p.queue <- due{p.log.add(90*ms - 3e9), 90*ms - 3e9} // too late for patience
	ctx, cancel := context.WithCancel(t.Context())
	sent := 0
	c.at = 100 * ms
	p.client(ctx, func() error {
		if sent++; sent == 10 {
			cancel()
		}
		c.at += ms
		if sent == 3 {
			return errors.New("no answer")
		}
		return nil
	})
	// The first was due at 0 and answered at 101 ms, the last due at 90 and answered at 110.
	f := p.log.window(0, 100*ms, c.at)
	if f.Due != 10 || f.Failed != 1 || f.P99 != 101 || f.P50 != 56 {
		t.Errorf("got %+v, want 10 due, 1 failed, p99 of 101 ms, p50 of 56", f)
	}
	if f := p.log.window(100*ms, 200*ms, c.at); f.Due != 0 || f.PerS != 90 {
		t.Errorf("got %+v, want none due and 9 answers in a tenth of a second", f)
	}
}

// TestGivenUp: what waited longer than the clients' patience is no answer, and counts with it.
func TestGivenUp(t *testing.T) {
	c := &toldClock{at: 5e9}
	p := newPace(c)
	p.queue <- due{p.log.add(0), 0}
	ctx, cancel := context.WithCancel(t.Context())
	p.queue <- due{p.log.add(c.at), c.at}
	p.client(ctx, func() error { cancel(); return nil })
	if f := p.log.window(0, 1, c.at); f.Failed != 1 || f.P50 != patience.Seconds()*1e3 || f.PerS != 0 {
		t.Errorf("got %+v", f)
	}
}

// TestPending: a request without an answer has waited until now.
func TestPending(t *testing.T) {
	l := &log{}
	l.add(10 * ms)
	if f := l.window(0, 100*ms, 150*ms); f.Due != 1 || f.P50 != 140 || f.PerS != 0 {
		t.Errorf("got %+v", f)
	}
}

// TestLogForgets: the log is bounded, and an answer to what it forgot does no harm.
func TestLogForgets(t *testing.T) {
	l := &log{}
	for range logSize + 10 {
		l.add(1)
	}
	l.end(0, 5, answered)
	l.end(logSize+9, 5, answered)
	if len(l.kept) > logSize || l.kept[len(l.kept)-1].state != answered {
		t.Errorf("%d kept", len(l.kept))
	}
}

func TestRank(t *testing.T) {
	var l []int64
	if rank(l, 0.5) != 0 {
		t.Error("of none")
	}
	for i := range int64(100) {
		l = append(l, i+1)
	}
	for share, want := range map[float64]float64{0.5: 50, 0.99: 99, 1: 100, 0: 1} {
		if got := rank(l, share); got != want {
			t.Errorf("%v: got %v, want %v", share, got, want)
		}
	}
}

// TestSearch finds the rate of servers of which each request takes so much of the CPUs.
func TestSearch(t *testing.T) {
	for _, of := range []float64{1e-4, 1e-3, 5e-3} {
		s, found := search{rate: 100}, false
		for range searchSteps {
			busy := min(1, s.rate*of)
			if found = s.step(busy, min(1, 1/(s.rate*of))); found {
				break
			}
		}
		if busy := s.rate * of; !found || busy < busyLow || busy > busyHigh || s.note != "" {
			t.Errorf("%v: found %v, busy %.2f, %q", of, found, busy, s.note)
		}
	}
	// A server that answers 1000 a second at most, at 30 % of the CPUs.
	s, found := search{rate: 100}, false
	for range searchSteps {
		if found = s.step(min(s.rate, 1000)*3e-4, min(1, 1000/s.rate)); found {
			break
		}
	}
	if !found || s.note == "" || s.rate > 1500 {
		t.Errorf("found %v at %.0f, %q", found, s.rate, s.note)
	}
}

// TestNudged: a small drift is followed, and what is right stays.
func TestNudged(t *testing.T) {
	for _, c := range []struct{ busy, want float64 }{{0.85, 100}, {0.82, 100},
		{0.935, 100 * busyAim / 0.935}, {0.5, 110}, {1, 90}} {
		if got := nudged(100, c.busy); !(got > c.want-0.01 && got < c.want+0.01) {
			t.Errorf("%v: got %v, want %v", c.busy, got, c.want)
		}
	}
}

// TestHarmRows: medians of paired ratios, the order of a pair's windows, and what misses.
func TestHarmRows(t *testing.T) {
	if recordedFirst(0) == recordedFirst(1) {
		t.Error("the first window of a pair does not change")
	}
	var table harmTarget
	for i := range 7 {
		without := felt{P50: 1, P99: 10, PerS: 100, CPU: 1}
		table.bare = append(table.bare, without)
		table.row("slow", "x").add(felt{P50: 1.1, P99: 10 + float64(i), PerS: 100, CPU: 1.2}, without, 0.02)
		table.row("few", "y").add(felt{P50: 1, P99: 11, PerS: 96, CPU: 0.96}, without, 0)
	}
	table.sum([]string{"few", "none", "slow"})
	if len(table.Rows) != 2 || table.Rows[0].Part != "few" {
		t.Fatalf("rows %+v", table.Rows)
	}
	few, slow := table.Rows[0], table.Rows[1]
	if few.mark() != "MISSED: throughput" || few.P99.Median != 1.1 || few.CPU.Median != 1 {
		t.Errorf("few: %q %+v", few.mark(), few)
	}
	if slow.mark() != "MISSED: p99" || slow.P99.Median != 1.3 || slow.P99.Low != 1 ||
		slow.P99.High != 1.6 || slow.Own != 0.02 {
		t.Errorf("slow: %q %+v", slow.mark(), slow)
	}
	if s := (ratio{Each: []float64{1}, Median: 1}).String(); s != "1.00 (too few)" {
		t.Errorf("%q", s)
	}
}

// TestHarmTable: what was not measured is in the table, and in the JSON.
func TestHarmTable(t *testing.T) {
	table := harmTarget{Target: "go-memcg", Title: "Go", NotMeasured: "no cgroups"}
	ok := harmTarget{Target: "native", Title: "C++", Notes: []string{"a note"}}
	without := felt{P50: 1, P99: 10, PerS: 100, CPU: 1}
	ok.bare = []felt{without}
	ok.row("whole", "whystall record").add(felt{P50: 1, P99: 20, PerS: 100, CPU: 1}, without, 0.03)
	ok.row("trace", "the trace").NotMeasured = "refused"
	ok.sum([]string{"trace", "whole"})
	r := harmReport{Date: "a day", Targets: []harmTarget{table, ok}}
	if !r.missed() {
		t.Error("a miss is not seen")
	}
	var text, js bytes.Buffer
	if err := errors.Join(r.write(&text, "text"), r.write(&js, "json")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"not measured: no cgroups", "a note", "not measured: refused",
		"2.00 (too few)", "MISSED: p99", "0.030 CPUs"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, &text)
		}
	}
	var back harmReport
	if err := json.Unmarshal(js.Bytes(), &back); err != nil || len(back.Targets) != 2 ||
		back.Targets[1].Rows[1].P99.Median != 2 {
		t.Errorf("%v: %+v", err, back)
	}
}
