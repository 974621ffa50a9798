package bpf

import "time"

// Pace spreads what a thread does in steps over time, so that it takes no more than Share of a CPU
// meanwhile: loading the programs takes 0.15 s of CPU, which is half a second's idle time of two
// CPUs that are 85 % busy. The zero value paces nothing, and neither does nil.
type Pace struct {
	Share float64 // of a CPU; 0 and from 1 on: as much as it takes
	began time.Time
	used  int64 // CPU time of the thread by then, ns
}

// longestPause bounds a pause, in case the clock of CPU time is wrong.
const longestPause = 500 * time.Millisecond

// Keep is called by the same thread between two steps. The first call starts the pace.
func (p *Pace) Keep() {
	if p == nil || p.Share <= 0 || p.Share >= 1 {
		return
	}
	now, used := time.Now(), ThreadTime()
	if p.began.IsZero() {
		p.began, p.used = now, used
		return
	}
	sleep(p.pause(now, used))
}

// pause is how long the thread must do nothing.
func (p *Pace) pause(now time.Time, used int64) time.Duration {
	due := time.Duration(float64(used-p.used)/p.Share) - now.Sub(p.began)
	return max(0, min(due, longestPause))
}
