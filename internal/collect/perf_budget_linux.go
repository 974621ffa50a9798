package collect

import (
	"fmt"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sensor/perfevent"
)

// What things cost the thread that is switched, measured on a virtual machine of 2026 with Linux 6.18, the least of many runs beside
// 2.3 us of the switch itself: a switch record with both its halves, a stack of kernel and user, 2 KiB of bytes beside it, and the timer of a thread's CPU
// clock, which is set and cleared each time. On a crowded machine that last one went up to 6 us.
const (
	switchNS = 1100
	stackNS  = 3600
	copyNS   = 500
	clockNS  = 1000
	readNS   = 150 // our own, for a record without stacks
)

// budgetGap is over how long the cost is taken: of less a burst would decide. The first look is early: until then no CPU is sampled.
const (
	budgetGap   = time.Second
	budgetFirst = 200 * time.Millisecond
)

// budget takes the stacks of waits less often where they would cost the target more than it was allowed to, and samples its threads' CPU
// clocks only while that is cheap.
func (s *perfStream) budget() {
	passed := time.Since(s.looked)
	if passed < budgetFirst || s.lookedOnce && passed < budgetGap {
		return
	}
	s.lookedOnce = true
	taken, switched, spent := s.taken, s.switched, s.lastUsed-s.spent
	s.taken, s.switched, s.spent, s.looked = 0, 0, s.lastUsed, time.Now()
	// Of a target that hardly runs any cost is a large share, and none is much.
	may := int64(s.p.Budget * max(float64(spent), ofOneCPU*float64(passed)))
	if s.p.Budget <= 0 {
		may = 1 << 62
	}
	// Our own time counts as well. What is more of it than reading takes is for stacks.
	cpu := threadCPU()
	ours := cpu - s.cpuAt
	reading := min(ours, s.seen*readNS)
	s.cpuAt, s.seen = cpu, 0
	may -= switched*switchNS + reading
	if s.stacking {
		// What they would have cost, had they been on all the time.
		one := s.stackCost() + (ours-reading)/max(taken, 1)
		full := max(taken, 1) * one * int64(passed) / max(s.stacksOn, int64(passed)/100)
		share := min(1, max(float64(may)/float64(full), leastShare))
		if share < 1 && !s.fewer {
			s.fewer = true
			s.lower("stacks of waits are taken part of the time since %s: %d came in %s, each costs the target some us", taken, passed)
			s.w.Records([]kernel.Record{{Kind: kernel.Detail, Time: monotonic(), Arg: [3]uint64{1, 1}}})
		}
		s.share, s.stacksOn = share, 0
		may -= int64(share * float64(full))
	}
	switch dear := switched*clockNS > may; {
	case !s.clock || dear == s.clockIsOff:
	case !dear:
		if s.own.Start(perfevent.CPUClock) == nil {
			s.clockIsOff = false
		}
	default:
		if s.clockOff() == nil {
			s.lower("CPU samples were left out at %s: %d switches in %s", switched, passed)
		}
	}
}

// Stacks that would cost too much are taken in a part of each dutyCycle: that keeps what they are of in proportion.
const (
	dutyCycle  = 500 * time.Millisecond
	leastShare = 0.02
	firstShare = 0.1 // until it is known how many there are
)

// duty turns stacks on and off as their share asks.
func (s *perfStream) duty() {
	if !s.stacking {
		return
	}
	now := time.Now()
	if !s.stacksAreOff {
		s.stacksOn += int64(now.Sub(s.dutyAt))
	}
	s.dutyAt = now
	off := s.share < 1 && time.Duration(now.UnixNano())%dutyCycle > time.Duration(s.share*float64(dutyCycle))
	switch {
	case off == s.stacksAreOff:
	case off && s.own.Stop(perfevent.SwitchOut) == nil, !off && s.own.Start(perfevent.SwitchOut) == nil:
		s.stacksAreOff = off
	}
}

// stackCost is what a stack costs the thread whose it is.
func (s *perfStream) stackCost() int64 {
	if s.unwinder != nil {
		return stackNS + copyNS
	}
	return stackNS
}

func (s *perfStream) clockOff() error {
	if err := s.own.Stop(perfevent.CPUClock); err != nil {
		return err
	}
	s.clockIsOff = true
	return nil
}

// lower notes what was given up, each thing once.
func (s *perfStream) lower(format string, n int64, passed time.Duration) {
	what, _, _ := strings.Cut(format, "%s")
	if strings.Contains(s.lowered, what) {
		return
	}
	if s.lowered != "" {
		s.lowered += "; "
	}
	s.lowered += fmt.Sprintf(format, time.Now().UTC().Format("15:04:05 UTC"), n, passed.Round(time.Millisecond))
}
