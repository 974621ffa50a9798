package bpf

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// A Step gives up some detail, for good. Whatever is given up, the programs report the switches of
// the target, its wake-ups and who caused them, starts and ends of threads, and a stack of each
// place in which its threads wait or wake.
type Step int

// The steps, the one that matters least first. Fold is worth it only where other processes switch
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

// Lower gives up the detail of a step.
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
// switches, and that report what is good to know. They can be detached for most of the time: what
// they report then is a sample.
type Extra int

// Extras.
const (
	Sockets Extra = iota
	Flushes
	KernelLocks
	MinorFaults

	Extras
)

// String says in words what an extra records.
func (e Extra) String() string {
	return [...]string{"since when sockets had data", "TLB flushes", "waits for the kernel's locks",
		"minor page faults"}[e]
}

var extraPrograms = [Extras][]string{
	Sockets:     {whystallProgSocketRead, whystallProgSocketReady},
	Flushes:     {whystallProgTlbFlush},
	KernelLocks: {whystallProgContentionEnd, whystallProgContentionBegin},
	MinorFaults: {whystallProgFaultMinor},
}

// Attach attaches the programs of an extra that exist and are not attached.
func (r *Recorder) Attach(e Extra) error {
	for _, name := range extraPrograms[e] {
		prog := r.l.loaded[name]
		if prog == nil || r.l.links[name] != nil {
			continue
		}
		for _, p := range programs {
			if p.name == name {
				if err := r.l.attach(p, prog); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Detach detaches the programs of an extra.
func (r *Recorder) Detach(e Extra) {
	for _, name := range extraPrograms[e] {
		if ln := r.l.links[name]; ln != nil {
			ln.Close()
			delete(r.l.links, name)
		}
	}
}

// Meter measures what the programs cost. While it runs the kernel takes the time of each run, which
// itself costs 50 ns a run, so a Meter is for a small part of the recording.
type Meter struct {
	stats io.Closer
	ran   map[string]uint64
}

// Measure starts to measure. It needs CAP_SYS_ADMIN, and changes no setting of the machine.
func (r *Recorder) Measure() (*Meter, error) {
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return nil, fmt.Errorf("measure programs: %w", err)
	}
	m := &Meter{stats: stats, ran: map[string]uint64{}}
	m.ran = r.ran()
	return m, nil
}

// callNS is what calling a program costs beyond the time that the kernel measures for it, less what
// measuring adds to that, ns. For comparison, an empty program costs 49.
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

// within lists the programs that do nearly all their work on the target's threads. Timers, data for
// sockets and the events of other programs come in the time of whatever thread has the CPU.
var within = []string{
	whystallProgSchedExit, whystallProgSchedWaking, whystallProgPageFault, whystallProgFaultMinor,
	whystallProgFaultMajor, whystallProgTlbFlush,
	whystallProgContentionBegin, whystallProgContentionEnd, whystallProgSocketRead,
}

// Ran is the CPU time that programs took, ns: all of them; what each step would have saved of it;
// what each extra took. What part of it is for switches of other processes only the reader of the
// events knows.
type Ran struct {
	All    uint64
	Within uint64 // the part in the time of the target's threads, switches aside
	Switch uint64 // the part for switches; those of other processes are in their own time
	Spared [Steps]uint64
	Extras [Extras]uint64
}

// Stop ends the measuring and returns what the programs took since Measure.
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
	// What remains of their cost is being called, and finding nothing to do.
	ran.Spared[Seldom] = (took[whystallProgSchedExit] + took[whystallProgSchedWaking]) / 2
	ran.Spared[Rare] = ran.Spared[Seldom]
	m.stats.Close()
	return ran
}
