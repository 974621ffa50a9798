package collect

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sensor/bpf"
)

// bpfBudget compares what recording costs with what the target uses, and gives up detail in steps
// when it is too much. There are two limits: one for the whole cost, and one for what the programs
// take in the target's own time, of which a small target must not lose more than a large one.
//
// The programs' time is measured in windows, as measuring has a cost of its own, and is taken to be
// the same between them. The first window comes early, so that a short recording knows its cost as
// well.
type bpfBudget struct {
	r      *bpf.Recorder
	pid    int
	share  float64
	quota  float64 // CPUs that a quota gives the target and us together; 0: none does
	begun  time.Time
	beside func() int64 // CPU time of our other threads, ns

	meter  *bpf.Meter
	opened time.Time
	usedAt int64 // CPU time of the target when the window opened
	next   time.Time
	blind  bool    // the kernel does not let us measure
	rate   float64 // ns of programs per ns
	others float64 // share of switches that do not involve the target
	ran    bpf.Ran // in the last window

	judged     time.Time // of the last judgement, to which the next three belong
	ourCPU     int64     // CPU time of ours, ns
	targetCPU  int64     // CPU time of the target, ns
	counts     eventCounts
	first      int64   // CPU time of the target at the start
	programsNS float64 // of the whole recording

	extras  [bpf.Extras]extraTime
	changed bool // the detail has changed since the last record of it

	ease   func() int // steps to give up for the service's sake
	eased  int        // that were
	idleAt int64      // idle time of the machine's CPUs at the last judgement, ns; -1: not known
	cpus   float64    // of the machine
	limit  float64    // CPUs of the target's own quota; 0: none

	dearWindows int // windows in a row that cost too much
	dropped     [bpf.Steps]bool
	lowered     []string
	windows     int
}

// extraTime is when an extra was attached.
type extraTime struct {
	off    bool
	since  time.Time     // since when it is on or off
	missed time.Duration // so far
}

// eventCounts is how many events came.
type eventCounts struct {
	events   int64
	switches int64
	foreign  int64 // switches that do not involve the target
}

const (
	meterFirst  = 300 * time.Millisecond
	meterWindow = 100 * time.Millisecond
	meterEvery  = time.Second
	meterOften  = 3 * time.Second // till then measured more often: a high cost should not last

	// eventNS is what an event is assumed to cost, stacks included, where programs cannot be
	// measured. It is the figure of the machine this was written on.
	eventNS = 400

	// ofOneCPU is the part of the budget's share that recording may take of one CPU whatever the
	// target uses: 2 % of 6. A share of the CPU time of a target that is throttled, or does nearly
	// nothing, would be worth nothing, and the time of our own threads does not come out of its
	// quota.
	ofOneCPU = 1.0 / 3

	// withinOneCPU is the same for what the programs take in the target's own time, which does come
	// out of its quota: 0.3 % of 6.
	withinOneCPU = 1.0 / 20

	// ownFree is what our own threads may take of one CPU in addition.
	ownFree = 0.03

	// worthFrom is the share of the cost that a step must save.
	worthFrom = 0.08

	// ofExtra is the part of the budget's share that each extra may take all the time: 1 % of 6. An
	// extra that would take more is attached for extraLook in every extraEvery.
	ofExtra    = 1.0 / 6
	extraLook  = 400 * time.Millisecond
	extraEvery = 4 * time.Second

	// foldFrom is the share of events that must be other processes' switches, so that folding them
	// is worth what the verdict loses by it.
	foldFrom = 0.25
)

func newBPFBudget(r *bpf.Recorder, p Process, beside func() int64) *bpfBudget {
	now := time.Now()
	b := &bpfBudget{r: r, pid: p.PID, share: p.Budget, quota: p.Quota, begun: now, beside: beside,
		next: now.Add(meterFirst), judged: now, targetCPU: processCPU(p.PID)}
	b.ease, b.cpus, b.idleAt, b.limit = p.Ease, float64(runtime.NumCPU()), idleNow(), p.Limit
	b.ourCPU = b.used()
	b.first = b.targetCPU
	for b.ease != nil && b.eased < b.ease() { // the counters alone showed that all of it would cost too much
		b.eased++
		b.giveUp(now, func(bpf.Step) bool { return true })
	}
	return b
}

func (b *bpfBudget) used() int64 { return bpf.ThreadTime() + b.beside() }

// tick is called often, with how many events came so far. If the detail has changed it returns the
// record to write.
func (b *bpfBudget) tick(now time.Time, s eventCounts) (rec kernel.Record, changed bool) {
	if b.meter == nil {
		if now.Before(b.next) {
			return rec, false
		}
		b.opened, b.next = now, now.Add(meterEvery)
		if now.Sub(b.begun) < meterOften {
			b.next = now.Add(meterEvery / 3)
		}
		if !b.blind {
			b.look(now)
			b.usedAt = processCPU(b.pid)
			m, err := b.r.Measure()
			if b.meter, b.blind = m, err != nil; !b.blind {
				return b.change()
			}
		}
	} else if now.Sub(b.opened) < meterWindow {
		return rec, false
	} else {
		b.close(now)
	}
	b.judge(now, s)
	return b.change()
}

// change returns the record of a change of the detail, if there was one since the last time.
func (b *bpfBudget) change() (rec kernel.Record, changed bool) {
	if !b.changed {
		return rec, false
	}
	b.changed = false
	return b.detail(), true
}

// extraBits are the bits of extras in a record of the detail.
var extraBits = [bpf.Extras]kernel.Extra{bpf.Sockets: kernel.Sockets, bpf.Flushes: kernel.Flushes,
	bpf.KernelLocks: kernel.KernelLocks, bpf.MinorFaults: kernel.MinorFaults}

// detail is the record of what is recorded from now on.
func (b *bpfBudget) detail() kernel.Record {
	rec := kernel.Record{Time: monotonic(), Kind: kernel.Detail}
	for step := range bpf.Steps {
		if b.dropped[step] {
			rec.Arg[0]++
		}
	}
	if !b.dropped[bpf.Fold] {
		rec.Arg[1] = 1
	}
	for e := range bpf.Extras {
		if b.extras[e].off {
			rec.Arg[2] |= 1 << extraBits[e]
		}
	}
	return rec
}

func (b *bpfBudget) close(now time.Time) {
	b.ran = b.meter.Stop(b.r)
	took := now.Sub(b.opened)
	b.rate = float64(b.ran.All) / float64(max(1, took))
	b.meter = nil
	b.afford(now, float64(took), float64(max(0, processCPU(b.pid)-b.usedAt)))
}

// afford detaches the extras that took too much in a window, measured by what the target used in
// it, and takes their time off the rate.
func (b *bpfBudget) afford(now time.Time, window, used float64) {
	if b.share <= 0 {
		return
	}
	may := ofExtra * b.share * max(used, ofOneCPU*window)
	for e := range bpf.Extras {
		x := &b.extras[e]
		ns := float64(b.ran.Extras[e])
		if x.off || ns <= may || now.Sub(x.since) < extraLook && !x.since.IsZero() {
			continue
		}
		b.r.Detach(e)
		b.rate -= ns / max(1, window) * (1 - float64(extraLook)/float64(extraEvery))
		x.off, x.since, b.changed = true, now, true
	}
}

// look attaches those extras again that were off long enough.
func (b *bpfBudget) look(now time.Time) {
	for e := range bpf.Extras {
		x := &b.extras[e]
		if !x.off || now.Sub(x.since) < extraEvery-extraLook || b.r.Attach(e) != nil {
			continue
		}
		x.missed += now.Sub(x.since)
		x.off, x.since, b.changed = false, now, true
	}
}

// worth reports whether a step would save enough of the cost for what the verdict loses by it.
func (b *bpfBudget) worth(step bpf.Step, cost, programs, foreign float64) bool {
	switch {
	case step == bpf.Fold:
		return foreign >= foldFrom
	case b.blind || b.ran.All == 0:
		return true
	}
	return programs*float64(b.ran.Spared[step])/float64(b.ran.All) >= worthFrom*cost
}

// judge compares cost and use since the last time, and gives up a step if the cost is too high.
func (b *bpfBudget) judge(now time.Time, s eventCounts) {
	own, wall := b.used(), now.Sub(b.judged)
	programs := b.rate * float64(wall)
	events := s.events - b.counts.events
	foreign := s.foreign - b.counts.foreign
	if b.blind {
		programs = float64(events) * eventNS
	}
	ours := own - b.ourCPU
	cost := float64(ours) + programs
	target := processCPU(b.pid)
	used := float64(target - b.targetCPU)
	if target < 0 { // it is gone
		target, used = b.targetCPU, 0
	}
	b.programsNS += programs
	idle := b.idle()
	if b.ease != nil && b.ease() > b.eased && b.windows > 0 {
		b.eased++
		b.giveUp(now, func(bpf.Step) bool { return true })
	}
	// The first window holds what is done once: the names of all threads, each stack for the first
	// time.
	if b.windows++; b.windows < 2 || b.share <= 0 {
		b.judged, b.ourCPU, b.targetCPU, b.counts = now, own, target, s
		return
	}
	may := min(b.may(used, float64(wall), float64(ours)), b.mayOfIdle(idle, float64(wall)))
	if !b.dropped[bpf.Fold] { // otherwise switches of others are not reported
		b.others = float64(foreign) / float64(max(1, s.switches-b.counts.switches))
	}
	b.judged, b.ourCPU, b.targetCPU, b.counts = now, own, target, s
	within := b.within(programs)
	mayWithin := b.share * max(used, withinOneCPU*float64(wall))
	if b.limit > 0 { // what is left of the quota is the target's idle time
		whole := b.limit * float64(wall)
		mayWithin = min(mayWithin, max(ofIdle*(whole-used), floorOfAll*whole))
	}
	dearest := max(cost/may, within/mayWithin)
	if dearest <= 1 {
		b.dearWindows = 0
		return
	}
	// A single window may hold a burst of stacks, which are named once.
	if b.dearWindows++; b.dearWindows < 2 && dearest < 4 {
		return
	}
	b.dearWindows = 0
	b.giveUp(now, func(step bpf.Step) bool {
		return (step != bpf.Fold || cost > may) &&
			b.worth(step, cost, programs, float64(foreign)/float64(max(1, events)))
	})
}

// giveUp gives up the first step that is worth it.
func (b *bpfBudget) giveUp(now time.Time, worth func(bpf.Step) bool) {
	for step := range bpf.Steps {
		if b.dropped[step] || !worth(step) {
			continue
		}
		if b.r.Lower(step) != nil {
			return
		}
		b.dropped[step], b.changed = true, true
		b.lowered = append(b.lowered, fmt.Sprintf("from %.1f s on: %s", now.Sub(b.begun).Seconds(), step))
		return
	}
}

func (b *bpfBudget) mayOfIdle(idle, wall float64) float64 {
	if idle < 0 {
		return 1 << 62
	}
	return max(ofIdle*idle, floorOfAll*b.cpus*wall)
}

// idle is for how long CPUs were idle since the last judgement, all of them added up; -1: not
// known.
func (b *bpfBudget) idle() float64 {
	was := b.idleAt
	if b.idleAt = idleNow(); was < 0 || b.idleAt < was {
		return -1
	}
	return float64(b.idleAt - was)
}

func idleNow() int64 {
	ns, ok := idleTime()
	if !ok {
		return -1
	}
	return ns
}

// may is what recording may cost, ns, when in a time of wall the target used so much and our own
// threads took ours.
func (b *bpfBudget) may(used, wall, ours float64) float64 {
	if b.quota > 0 { // nothing is free: the target lacks all of it
		return b.share * max(used, ofOneCPU*min(1, b.quota)*wall)
	}
	return max(b.share*used, b.share*ofOneCPU*wall+min(ownFree*wall, ours))
}

// within is the part of the programs' time that was the target's own.
func (b *bpfBudget) within(programs float64) float64 {
	if b.blind || b.ran.All == 0 {
		return programs * (1 - b.others)
	}
	return programs * (float64(b.ran.Within) + float64(b.ran.Switch)*(1-b.others)) / float64(b.ran.All)
}

// end returns the totals: CPU time of the programs and of the target, and what was given up.
func (b *bpfBudget) end(s eventCounts) (programs, target int64, lowered string) {
	now := time.Now()
	if b.meter != nil {
		b.close(now)
	}
	b.share = 0
	b.judge(now, s)
	for e := range bpf.Extras {
		x := &b.extras[e]
		if x.off {
			x.missed += now.Sub(x.since)
		}
		if recorded := 1 - x.missed.Seconds()/max(now.Sub(b.begun).Seconds(), 1e-9); x.missed > 0 {
			b.lowered = append(b.lowered, fmt.Sprintf("%s: recorded %.0f %% of the time", e, 100*recorded))
		}
	}
	return int64(b.programsNS), max(0, b.targetCPU-b.first), strings.Join(b.lowered, "; ")
}
