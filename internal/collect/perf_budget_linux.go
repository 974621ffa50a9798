package collect

import (
	"fmt"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sensor/perfevent"
)

// What things cost the thread that is switched, beside 2.3 us for the switch itself. Measured on a
// virtual machine of 2026 with Linux 6.18, the least of many runs. A switch record has two halves;
// a stack is of kernel and user; a copy is 2 KiB of bytes beside it; the timer of a thread's CPU
// clock is set and cleared at each switch. On a crowded machine that last cost went up to 6 us.
const (
	switchNS = 1100
	stackNS  = 3600
	copyNS   = 500
	clockNS  = 1000
	readNS   = 150 // our own, for a record without stacks
)

// budgetGap is the time over which the cost is taken: over less, a burst would decide. The first
// look is early, as all CPU time is sampled before it.
const (
	budgetGap   = time.Second
	budgetFirst = 200 * time.Millisecond
)

// perfBudget is what the recording has cost since the last look, and what was given up.
type perfBudget struct {
	lookAt     time.Time // of the last look; cost and use below count from it
	lookedOnce bool
	records    int64 // records read since
	stacks     int64 // switch stacks taken since
	switches   int64 // switch-outs of the target since
	ownCPU     int64 // our own CPU time then, ns
	targetCPU  int64 // the target's CPU time then, ns

	clockShare   float64 // of the time in which CPUs are sampled
	clockIsOff   bool
	share        float64 // of the time in which stacks are taken
	stacksAreOff bool
	stacksOnNS   int64     // for how long they were on since
	dutyAt       time.Time // up to when stacksOnNS counts

	stacksLowered, clockLowered bool // that they were given up is in lowered
	lowered                     []string
}

// budget takes the stacks of waits less often where they would cost the target more than is
// allowed, and samples the CPU clocks of its threads only while that is cheap.
func (s *perfStream) budget() {
	b := &s.cost
	passed := time.Since(b.lookAt)
	if passed < budgetFirst || b.lookedOnce && passed < budgetGap {
		return
	}
	b.lookedOnce = true
	stacks, switches, used := b.stacks, b.switches, s.targetCPU-b.targetCPU
	b.stacks, b.switches, b.targetCPU, b.lookAt = 0, 0, s.targetCPU, time.Now()
	// For a target that hardly runs any cost is a large share, and none is much.
	may := int64(s.p.Budget * max(float64(used), ofOneCPU*float64(passed)))
	if s.p.Budget <= 0 {
		may = 1 << 62
	}
	// Our own time counts as well. The part of it beyond reading is for stacks.
	cpu := threadCPU()
	ours := cpu - b.ownCPU
	reading := min(ours, b.records*readNS)
	b.ownCPU, b.records = cpu, 0
	may -= switches*switchNS + reading
	if s.stacking {
		// What stacks would have cost, had they been on all the time.
		one := s.stackCost() + (ours-reading)/max(stacks, 1)
		full := max(stacks, 1) * one * int64(passed) / max(b.stacksOnNS, int64(passed)/100)
		share := min(1, max(float64(may)/float64(full), minShare))
		if s.p.Ease != nil && s.p.Ease() > 0 {
			share = minShare
		}
		if share < 1 && !b.stacksLowered {
			b.stacksLowered = true
			b.lower("stacks of waits are taken part of the time since %s: %d came in %s, and each costs the target some us", stacks, passed)
			s.w.Records([]kernel.Record{{Kind: kernel.Detail, Time: monotonic(), Arg: [3]uint64{1, 1}}})
		}
		b.share, b.stacksOnNS = share, 0
		may -= int64(share * float64(full))
	}
	if !s.clock {
		return
	}
	b.clockShare = 1
	if full := switches * clockNS; full > may {
		b.clockShare = max(float64(may)/float64(full), leastClock)
		if !b.clockLowered {
			b.clockLowered = true
			b.lower("what runs on CPUs is sampled part of the time since %s: %d switches in %s, each of which costs a us while it is", switches, passed)
		}
	}
}

// Stacks that would cost too much are taken in a part of each dutyCycle, so that they stay in
// proportion to what they are stacks of.
const (
	dutyCycle  = 500 * time.Millisecond
	minShare   = 0.02
	firstShare = 0.1 // until it is known how many there are
)

// leastClock is the least share of the time in which CPUs are sampled: at 1 kHz it makes 99
// samples of each second of CPU time. What the target's threads did on CPUs is no detail that a
// budget may leave out.
const leastClock = 0.099

// duty turns stacks and CPU samples on and off as their shares ask.
func (s *perfStream) duty() {
	now := time.Now()
	s.clockDuty(now)
	if !s.stacking {
		return
	}
	b := &s.cost
	if !b.stacksAreOff {
		b.stacksOnNS += int64(now.Sub(b.dutyAt))
	}
	b.dutyAt = now
	off := offDuty(now, b.share)
	switch {
	case off == b.stacksAreOff:
	case off && s.target.Stop(perfevent.SwitchOut) == nil, !off && s.target.Start(perfevent.SwitchOut) == nil:
		b.stacksAreOff = off
	}
}

// clockDuty turns CPU samples of single threads on and off.
func (s *perfStream) clockDuty(now time.Time) {
	b := &s.cost
	off := offDuty(now, b.clockShare)
	switch {
	case !s.clock || off == b.clockIsOff:
	case off && s.target.Stop(perfevent.CPUClock) == nil, !off && s.target.Start(perfevent.CPUClock) == nil:
		b.clockIsOff = off
	}
}

// offDuty reports whether what is on for a share of each cycle is off at the moment.
func offDuty(now time.Time, share float64) bool {
	return share < 1 && time.Duration(now.UnixNano())%dutyCycle > time.Duration(share*float64(dutyCycle))
}

// sampled is the CPU time that a sample stands for whose clock has this period.
func (b *perfBudget) sampled(period uint64) uint64 {
	if b.clockShare <= 0 {
		return period
	}
	return uint64(float64(period) / b.clockShare)
}

// stackCost is what a stack costs the thread it is taken of.
func (s *perfStream) stackCost() int64 {
	if s.unwinder != nil {
		return stackNS + copyNS
	}
	return stackNS
}

// lower notes what was given up. The format takes the time of day, n and passed.
func (b *perfBudget) lower(format string, n int64, passed time.Duration) {
	b.lowered = append(b.lowered, fmt.Sprintf(format, time.Now().UTC().Format("15:04:05 UTC"), n,
		passed.Round(time.Millisecond)))
}

// given says what was given up, "" for nothing.
func (b *perfBudget) given() string { return strings.Join(b.lowered, "; ") }
