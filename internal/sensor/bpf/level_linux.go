package bpf

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// A Step gives up some detail. Switches of the target, its wake-ups and who did them are told whatever is given up.
type Step int

// The steps, in the order in which they matter least. Fold is worth it only where others switch much.
const (
	Fold Step = iota
	Seldom
	NoCopies
	NoStacks

	Steps
)

// String says in words what is given up.
func (s Step) String() string {
	return [...]string{
		"others' switches are folded into who held a CPU while a thread of the target was queued there",
		"CPU samples are taken each 10 ms, stacks of waits from 3 ms on, of one socket in eight it is told since when it had data; no TLB flushes, minor faults or waits for kernel locks",
		"stacks of waits are taken from 10 ms on, and none beyond frame pointers; no CPU samples",
		"no stacks",
	}[s]
}

// Seldom's sample period, ns.
const seldomPeriod = 10 * SamplePeriod

// Lower gives up some detail, for good.
func (r *Recorder) Lower(step Step) error {
	set := func(name string, v any) error {
		if err := r.l.vars[name].Set(v); err != nil {
			return fmt.Errorf("lower detail: set %s: %w", name, err)
		}
		return nil
	}
	detach := func(programs ...string) {
		for _, p := range programs {
			if c := r.l.links[p]; c != nil {
				c.Close()
				delete(r.l.links, p)
			}
		}
	}
	switch step {
	case Fold:
		return set(whystallVarFold, uint32(1))
	case Seldom:
		detach(whystallProgTlbFlush, whystallProgFaultMinor, whystallProgContentionBegin, whystallProgContentionEnd)
		if samples, ok := r.l.links[whystallProgSample].(perfEvents); ok {
			if err := samples.period(seldomPeriod); err != nil {
				return fmt.Errorf("lower detail: %w", err)
			}
			if err := set(whystallVarSamplePeriod, uint64(seldomPeriod)); err != nil {
				return err
			}
		}
		return errors.Join(set(whystallVarWaitFloor, uint64(3_000_000)), set(whystallVarSocketMask, uint32(7)))
	case NoCopies:
		detach(whystallProgSample)
		return errors.Join(set(whystallVarWaitFloor, uint64(10_000_000)), set(whystallVarCopies, uint32(0)))
	case NoStacks:
		detach(whystallProgSample, whystallProgSchedExit)
		return set(whystallVarStacks, uint32(0))
	}
	return nil
}

// Meter measures what the programs cost: while it runs the kernel takes the time of each run, which itself costs 50 ns a run, so
// it is for a small part of the recording.
type Meter struct {
	stats io.Closer
	ran   map[string]uint64
}

// Measure begins to measure. It needs CAP_SYS_ADMIN, and changes no setting of the machine.
func (r *Recorder) Measure() (*Meter, error) {
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return nil, fmt.Errorf("measure programs: %w", err)
	}
	m := &Meter{stats: stats, ran: map[string]uint64{}}
	m.ran = r.ran()
	return m, nil
}

// statsCost is what taking the time adds to the time taken.
const statsCost = 20

func (r *Recorder) ran() map[string]uint64 {
	ran := map[string]uint64{}
	for name, p := range r.l.loaded {
		s, err := p.Stats()
		if err != nil {
			continue
		}
		ns := uint64(s.Runtime)
		ran[name] = ns - min(ns, s.RunCount*statsCost)
	}
	return ran
}

// Ran is CPU time that programs took, ns: all of them, and what each step would have spared of it. How much others' switches
// are of it only who reads the events knows.
type Ran struct {
	All    uint64
	Spared [Steps]uint64
}

// Stop ends it and tells what the programs took since Measure.
func (m *Meter) Stop(r *Recorder) (ran Ran) {
	for name, n := range r.ran() {
		n -= min(n, m.ran[name])
		ran.All += n
		switch name {
		case whystallProgSchedSwitch:
			ran.Spared[Fold] += n
		case whystallProgTlbFlush, whystallProgFaultMinor, whystallProgContentionBegin, whystallProgContentionEnd, whystallProgSocketRead, whystallProgSocketReady:
			ran.Spared[Seldom] += n
		case whystallProgSample:
			ran.Spared[Seldom] += n
			ran.Spared[NoCopies] += n
		case whystallProgSchedExit:
			ran.Spared[Seldom] += n / 2
			ran.Spared[NoCopies] += n
			ran.Spared[NoStacks] += n
		case whystallProgSchedWaking:
			ran.Spared[NoStacks] += n / 2
		}
	}
	m.stats.Close()
	return ran
}
