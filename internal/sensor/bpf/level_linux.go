package bpf

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// A Step gives up some detail, for good. Switches of the target, its wake-ups and who did them,
// threads' begins and ends are told whatever is given up, and of each place in which its threads
// wait or wake a stack.
type Step int

// The steps, in the order in which they matter least. Fold is worth it only where others switch
// much.
const (
	Fold Step = iota
	Seldom
	Rare

	Steps
)

// String says in words what is given up.
func (s Step) String() string {
	return [...]string{
		"others' switches are folded into who held a CPU while a thread of the target was queued there",
		"stacks are taken of waits from 3 ms on and of who wakes, one of each a millisecond on a CPU, and where none has been taken yet",
		"stacks are taken of waits from 10 ms on and of who wakes, one of each in 10 ms on a CPU, and where none has been taken yet",
	}[s]
}

// Lower gives up some detail.
func (r *Recorder) Lower(step Step) error {
	set := func(name string, v any) error {
		if err := r.l.vars[name].Set(v); err != nil {
			return fmt.Errorf("lower detail: set %s: %w", name, err)
		}
		return nil
	}
	rarer := func(floor, gap uint64) error {
		return errors.Join(set(whystallVarWaitFloor, floor), set(whystallVarStackGap, gap))
	}
	switch step {
	case Fold:
		return set(whystallVarFold, uint32(1))
	case Seldom:
		return rarer(3_000_000, 1_000_000)
	case Rare:
		return rarer(10_000_000, 10_000_000)
	}
	return nil
}

// An Extra is a group of programs that run for events which may be many more than the target's
// switches, and tell what is good to know. They can be away for most of the time: what they tell
// then is a sample.
type Extra int

// Extras.
const (
	Sockets Extra = iota
	Flushes
	KernelLocks
	MinorFaults

	Extras
)

// String says in words what an extra tells.
func (e Extra) String() string {
	return [...]string{"since when sockets had data", "TLB flushes", "waits for the kernel's locks", "minor page faults"}[e]
}

var extraPrograms = [Extras][]string{
	Sockets:     {whystallProgSocketRead, whystallProgSocketReady},
	Flushes:     {whystallProgTlbFlush},
	KernelLocks: {whystallProgContentionEnd, whystallProgContentionBegin},
	MinorFaults: {whystallProgFaultMinor},
}

// Extra attaches or detaches the programs of an extra, those that there are; nothing happens to
// those that are so.
func (r *Recorder) Extra(e Extra, on bool) error {
	for _, name := range extraPrograms[e] {
		ln, prog := r.l.links[name], r.l.loaded[name]
		switch {
		case !on && ln != nil:
			ln.Close()
			delete(r.l.links, name)
		case on && ln == nil && prog != nil:
			for _, p := range programs {
				if p.name == name {
					if err := r.l.attach(p, prog); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// Meter measures what the programs cost: while it runs the kernel takes the time of each run, which
// itself costs 50 ns a run, so it is for a small part of the recording.
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

// callNS is what calling a program takes beside the time that the kernel takes of it, less what
// taking the time adds to that, ns: an empty one costs 49.
const callNS = 30

func (r *Recorder) ran() map[string]uint64 {
	ran := map[string]uint64{}
	for name, p := range r.l.loaded {
		s, err := p.Stats()
		if err != nil {
			continue
		}
		ran[name] = uint64(s.Runtime) + s.RunCount*callNS
	}
	return ran
}

// within are the programs that do nearly all they do on the target's threads. Timers, data for
// sockets and what other programs do come in the time of whoever has the CPU.
var within = []string{
	whystallProgSchedExit, whystallProgSchedWaking, whystallProgPageFault, whystallProgFaultMinor, whystallProgFaultMajor, whystallProgTlbFlush,
	whystallProgContentionBegin, whystallProgContentionEnd, whystallProgSocketRead,
}

// Ran is CPU time that programs took, ns: all of them; what each step would have spared of it; what
// each extra took. How much others' switches are of it only who reads the events knows.
type Ran struct {
	All    uint64
	Within uint64 // of them, what runs in the time of the target's threads, switches aside
	Switch uint64 // what switches took, of which those of others are in their time
	Spared [Steps]uint64
	Extras [Extras]uint64
}

// Stop ends it and tells what the programs took since Measure.
func (m *Meter) Stop(r *Recorder) (ran Ran) {
	took := r.ran()
	for name, n := range took {
		n -= min(n, m.ran[name])
		took[name] = n
		ran.All += n
	}
	ran.Switch = took[whystallProgSchedSwitch]
	for _, name := range within {
		ran.Within += took[name]
	}
	for e, names := range extraPrograms {
		for _, name := range names {
			ran.Extras[e] += took[name]
		}
	}
	ran.Spared[Fold] = took[whystallProgSchedSwitch]
	// What remains of them is to be called, and to find nothing to do.
	ran.Spared[Seldom] = (took[whystallProgSchedExit] + took[whystallProgSchedWaking]) / 2
	ran.Spared[Rare] = ran.Spared[Seldom]
	m.stats.Close()
	return ran
}
