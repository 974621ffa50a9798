package bpf

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
)

// Recorder reads the events of one process. Its methods are for one goroutine.
type Recorder struct {
	Target   Thread    // the target's first thread
	CPUs     []int     // those that were online
	PerTask  bool      // the kernel throttles by task: Throttled is exact
	Attached []string  // the programs that are attached
	Missing  []Missing // what this kernel does not permit
	Since    int64     // when the last program was attached: events before are incomplete

	l      *loader
	event  Event
	lost   []Loss
	readTo int64 // up to when all rings have been read whole
}

// Missing is a part of the recorder that is not there.
type Missing struct {
	Part string // the program's name, as in [Programs], or one of the other parts
	Why  string // for people, with what is not seen without it
}

// Parts beside the programs: functions of the kernel whose addresses the programs need.
const (
	PartQuotaTimers = "functions of quota timers"
	PartTick        = "function of the tick"
	PartFunctions   = "functions" // both
)

// Programs names the programs that may be missing.
func Programs() (names []string) {
	for _, p := range programs {
		if p.traits&(vital|optional) == 0 {
			names = append(names, p.name)
		}
	}
	return names
}

// Loss is how many events and stacks were lost on a CPU since the last report of it.
type Loss struct {
	CPU     int
	Events  uint64
	Stacks  uint64
	eventsT uint64 // in total
	stacksT uint64
}

// Options of a Recorder.
type Options struct {
	PID    int  // of the target, in our own pid namespace
	Stacks bool // whether stacks are taken at all
	Copy   bool // whether user stacks are copied, for programs without frame pointers
	Turns  bool // whether threads' turns from socket to socket are told
	Ring   int  // bytes of each CPU's log, a power of two, 16 KiB at least; 0: by the number of CPUs

	// Loaded is called before the first program is attached. From then on the rings fill.
	Loaded func()

	// Step is called in the calling thread, between steps that take some ms of CPU, such as loading
	// a program.
	Step func()
}

func (o *Options) step() {
	if o.Step != nil {
		o.Step()
	}
}

// Open attaches the programs. What is not vital and not permitted is in Missing.
func Open(o Options) (_ *Recorder, err error) {
	types, spec, err := readObject()
	if err != nil {
		return nil, err
	}
	o.step()
	target, err := find(o.PID, spec, types)
	if err != nil {
		return nil, err
	}
	o.step()
	l, err := newLoader(spec, types, target.TID, preemptFrom(types), uint32(o.Ring))
	if err != nil {
		return nil, err
	}
	r := &Recorder{Target: target, l: l, PerTask: types.field("task_struct", "throttled")}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	l.symbols, _ = openSymbols(spec, types) // without it /proc/kallsyms is read
	if r.Missing, err = l.functions(); err != nil {
		return nil, err
	}
	if err := spec.Variables[whystallVarStacks].Set(bit(o.Stacks)); err != nil {
		return nil, fmt.Errorf("load programs: set stacks: %w", err)
	}
	if err := spec.Variables[whystallVarTurns].Set(bit(o.Turns)); err != nil {
		return nil, fmt.Errorf("load programs: set turns: %w", err)
	}
	if err := spec.Variables[whystallVarCopies].Set(bit(o.Copy)); err != nil {
		return nil, fmt.Errorf("load programs: set copies: %w", err)
	}
	o.step()
	if err := l.makeMaps(); err != nil {
		return nil, err
	}
	if err := l.openRings(); err != nil {
		return nil, err
	}
	for _, ring := range l.rings {
		r.CPUs = append(r.CPUs, ring.cpu)
	}
	loaded, err := r.loadPrograms(&o)
	if err != nil {
		return nil, err
	}
	if l.lister, err = l.program(whystallProgEverybody); err != nil {
		return nil, err
	}
	l.types = nil // some MB
	if o.Loaded != nil {
		o.Loaded()
	}
	if err := r.attachPrograms(&o, loaded); err != nil {
		return nil, err
	}
	r.Since = monotonic()
	r.readTo = monotonic()
	r.lost = make([]Loss, len(l.lossView)/64)
	return r, nil
}

// loadPrograms loads what can be loaded, by name. Loading takes some hundred ms, so nothing is
// attached yet: a program attached before the others are loaded would fill its ring, and report
// threads whose wakers are not seen.
func (r *Recorder) loadPrograms(o *Options) (map[string]*ebpf.Program, error) {
	loaded := map[string]*ebpf.Program{}
	for _, p := range programs {
		if p.traits&forStacks != 0 && !o.Stacks || p.traits&forGroups != 0 && r.PerTask ||
			p.traits&remote != 0 && !r.l.remote {
			continue
		}
		o.step()
		prog, err := r.l.load(p)
		if err == nil {
			loaded[p.name] = prog
		} else if err = r.without(p, err); err != nil {
			return nil, err
		}
	}
	return loaded, nil
}

func (r *Recorder) attachPrograms(o *Options, loaded map[string]*ebpf.Program) error {
	for _, p := range programs {
		prog := loaded[p.name]
		if prog == nil {
			continue
		}
		o.step()
		err := r.l.attach(p, prog)
		if err == nil {
			r.Attached = append(r.Attached, p.name)
		} else if err = r.without(p, err); err != nil {
			return err
		}
	}
	return nil
}

// without notes that a program is missing, because of err. It returns err if nothing is of use
// then.
func (r *Recorder) without(p program, err error) error {
	switch {
	case p.traits&vital != 0:
		return err
	case p.traits&optional == 0:
		r.Missing = append(r.Missing, Missing{p.name, err.Error()})
	}
	return nil
}

// Symbols names the kernel's functions until Close, for one goroutine. It is nil if this kernel
// does not, and /proc/kallsyms must be read.
func (r *Recorder) Symbols() *Symbols { return r.l.symbols }

// Threads lists all threads of the machine.
func (r *Recorder) Threads() ([]Thread, error) { return r.l.threads() }

// Fullest is the filled share of the fullest ring.
func (r *Recorder) Fullest() float64 {
	var most uint64
	for _, ring := range r.l.rings {
		most = max(most, ring.filled())
	}
	return float64(most) / float64(r.l.rings[0].size)
}

// Read calls f with all events that there are, each CPU's in the order of their times, except for
// those of an interrupt inside another event. An event is valid until f returns. All events before
// upTo have been read, unless a CPU stood still in the middle of writing one. An error is that of
// the first record that could not be decoded; the others were read.
func (r *Recorder) Read(f func(*Event)) (upTo int64, err error) {
	now := monotonic()
	all := true
	for _, ring := range r.l.rings {
		r.event.CPU = uint16(ring.cpu)
		whole, e := ring.read(func(b []byte) error {
			if err := decode(b, &r.event); err != nil {
				return err
			}
			f(&r.event)
			return nil
		})
		if e != nil && err == nil {
			err = e
		}
		all = all && whole
	}
	if all {
		r.readTo = now
	}
	return r.readTo, err
}

// Losses lists what was lost since the last call.
func (r *Recorder) Losses(dst []Loss) []Loss {
	for cpu := range r.lost {
		l := &r.lost[cpu]
		at := r.l.lossView[64*cpu:]
		events := atomic.LoadUint64((*uint64)(unsafe.Pointer(&at[0])))
		stacks := atomic.LoadUint64((*uint64)(unsafe.Pointer(&at[8])))
		if events != l.eventsT || stacks != l.stacksT {
			dst = append(dst, Loss{CPU: cpu, Events: events - l.eventsT, Stacks: stacks - l.stacksT})
			l.eventsT, l.stacksT = events, stacks
		}
	}
	return dst
}

// Close detaches everything.
func (r *Recorder) Close() {
	if r.l != nil {
		r.l.close()
		r.l = nil
	}
}

// onlineCPUs reads the list from /sys: the runtime's count honours our own affinity.
func onlineCPUs() ([]int, error) {
	const file = "/sys/devices/system/cpu/online"
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read CPUs: %w", err)
	}
	return parseCPUs(strings.TrimSpace(string(b)))
}

func parseCPUs(list string) (cpus []int, err error) {
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(first)
		b := a
		if err == nil && isRange {
			b, err = strconv.Atoi(last)
		}
		if err != nil || a < 0 || b < a || b > 1<<16 {
			return nil, fmt.Errorf("read list of CPUs: %.40q is none", list)
		}
		for ; a <= b; a++ {
			cpus = append(cpus, a)
		}
	}
	return cpus, nil
}
