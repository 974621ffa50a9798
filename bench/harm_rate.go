package main

import "fmt"

// The load is found, not fixed: the rate is raised until the CPUs, or the quota, are as busy as
// this. Machines differ, and one machine differs from day to day.
const (
	busyLow  = 0.80
	busyHigh = 0.95
	busyAim  = 0.85
	// keptUp is the share of the due requests that a server answers which is not overloaded.
	keptUp = 0.97
)

// search finds the rate.
type search struct {
	rate  float64
	good  int // steps in a row that were right
	bound int // steps in which the server did not keep up although the CPUs were not busy
	note  string
}

// nudged is the rate for the next pair, by how busy the undisturbed window of the last one was: a
// machine that becomes slower would soon be overloaded at the old rate.
func nudged(rate, busy float64) float64 {
	if busy >= busyLow+0.01 && busy <= busyAim+0.04 {
		return rate
	}
	return rate * min(1.1, max(0.9, busyAim/max(busy, 0.01)))
}

// searchSteps is how many a search may take.
const searchSteps = 60

// step takes what the last rate brought: the busy share, and answers over requests due. It reports
// whether the present rate is right.
func (s *search) step(busy, answered float64) (found bool) {
	switch {
	case busy < busyLow && answered < keptUp:
		// Something other than the CPUs is at its limit: a disk, memory. No rate brings more.
		s.good = 0
		if s.bound++; s.bound >= 3 {
			s.note = fmt.Sprintf("CPUs only %.0f %% busy: more was not answered", 100*busy)
			s.rate *= 0.85
			return true
		}
		s.rate *= 0.85
	case busy >= busyLow+0.01 && busy <= busyAim+0.04 && answered >= keptUp:
		s.good++
		return s.good >= 2
	case busy < 0.3:
		s.good = 0
		s.rate *= min(4, 0.6/max(busy,
			0.01)) // not the whole way: an idle CPU is slower, and so is a server whose heap grows
	default:
		s.good = 0
		s.rate *= min(2, max(0.5, busyAim/max(busy, 0.01)))
	}
	return false
}
