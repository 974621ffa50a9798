package main

import (
	"slices"
	"sync"
)

// asked is one request of the paced clients: when it was due, and when it was answered. Times are
// ns of one clock.
type asked struct {
	due, answered int64
	state         uint8
}

// What became of a request.
const (
	pending uint8 = iota
	answered
	failed // no answer, or it came too late to be of use
)

// log keeps the last requests in the order in which they were due.
type log struct {
	mu    sync.Mutex
	kept  []asked
	first int // number of the oldest that is kept
}

// logSize is enough for a minute at ten times the rate of any target.
const logSize = 1 << 19

func (l *log) add(due int64) (number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) == logSize {
		l.kept = append(l.kept[:0], l.kept[logSize/2:]...)
		l.first += logSize / 2
	}
	l.kept = append(l.kept, asked{due: due})
	return l.first + len(l.kept) - 1
}

func (l *log) end(number int, at int64, state uint8) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := number - l.first; i >= 0 && i < len(l.kept) {
		l.kept[i].answered, l.kept[i].state = at, state
	}
}

// felt is what the clients felt in a window.
type felt struct {
	Due      int     `json:"due"`      // requests that were due
	Failed   int     `json:"failed"`   // of those
	P50      float64 `json:"p50_ms"`   // from when a request was due to its answer
	P99      float64 `json:"p99_ms"`   //
	PerS     float64 `json:"answered"` // answers a second, whenever their requests were due
	CPU      float64 `json:"cpu_s"`    // of the target
	Switches float64 `json:"switches"` // of the machine, a second
	Busy     float64 `json:"busy"`     // share of the CPUs, or of the quota
	Foreign  float64 `json:"foreign"`  // CPUs that neither target, clients nor recorder used, steal included
}

// window sums up what was due from one moment to another. A request without an answer has waited
// until now at least.
func (l *log) window(from, to, now int64) (f felt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var waits []int64
	n := 0
	for _, a := range l.kept {
		if a.state == answered && a.answered >= from && a.answered < to {
			n++
		}
		if a.due < from || a.due >= to {
			continue
		}
		f.Due++
		end := a.answered
		if a.state == failed {
			f.Failed++
		}
		if a.state == pending {
			end = now
		}
		waits = append(waits, end-a.due)
	}
	slices.Sort(waits)
	f.P50, f.P99 = rank(waits, 0.50)/1e6, rank(waits, 0.99)/1e6
	if to > from {
		f.PerS = float64(n) / (float64(to-from) / 1e9)
	}
	return f
}

// rank is the smallest of the sorted l that at least this share of them do not exceed; 0 of none.
func rank(l []int64, share float64) float64 {
	if len(l) == 0 {
		return 0
	}
	return float64(l[max(0, min(len(l)-1, int(share*float64(len(l))+0.999999)-1))])
}

// waiting is how many requests are due and have no answer.
func (l *log) waiting() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.kept {
		if a.state == pending {
			n++
		}
	}
	return n
}
