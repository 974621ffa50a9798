package bpf

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// loader makes the maps at once and loads the programs one by one, so that a program that the
// kernel refuses leaves the others.
type loader struct {
	spec     *ebpf.CollectionSpec
	types    *kernelTypes
	maps     map[string]*ebpf.Map
	vars     map[string]*ebpf.Variable
	rings    []*ring
	links    map[string]io.Closer // by program
	loaded   map[string]*ebpf.Program
	symbols  *Symbols // nil if the kernel does not name its functions
	lossView []byte
	logView  []byte
	cpus     []int // those that are online
	size     uint32
	lister   *ebpf.Program
	remote   bool // quotas give time to other CPUs by calling a function there: from Linux 6.3
}

// ringBytes is the size of each CPU's log. The total is bounded; where there are few CPUs, a log
// holds half a second at 100 000 switches a second.
func ringBytes(cpus int) uint32 {
	const whole = 8 << 20
	size := uint32(2 << 20)
	for size > 64<<10 && int(size)*cpus > whole {
		size /= 2
	}
	return size
}

// readSpec reads the object, and sets the constant for our own pid namespace.
func readSpec() (*ebpf.CollectionSpec, error) {
	spec, err := loadWhystall()
	if err != nil {
		return nil, fmt.Errorf("load programs: %w", err)
	}
	ns, err := selfNS()
	if err != nil {
		return nil, err
	}
	if err := spec.Variables[whystallVarSelfNs].Set(ns); err != nil {
		return nil, fmt.Errorf("load programs: set %s: %w", whystallVarSelfNs, err)
	}
	return spec, nil
}

// alone loads programs with no more maps than they use.
func alone(spec *ebpf.CollectionSpec, types *kernelTypes, names ...string) (*ebpf.Collection, error) {
	only := &ebpf.CollectionSpec{
		Maps: map[string]*ebpf.MapSpec{}, Programs: map[string]*ebpf.ProgramSpec{},
		Variables: map[string]*ebpf.VariableSpec{}, Types: spec.Types, ByteOrder: spec.ByteOrder,
	}
	for _, name := range names {
		p := spec.Programs[name]
		if p == nil {
			return nil, fmt.Errorf("load program %s: not in the object", name)
		}
		only.Programs[name] = p
		for i := range p.Instructions {
			if ref := p.Instructions[i].Reference(); p.Instructions[i].IsLoadFromMap() && spec.Maps[ref] != nil {
				only.Maps[ref] = spec.Maps[ref]
			}
		}
	}
	for name, v := range spec.Variables {
		if only.Maps[v.SectionName] != nil {
			only.Variables[name] = v
		}
	}
	c, err := ebpf.NewCollectionWithOptions(only, ebpf.CollectionOptions{Cache: types.cache})
	if err != nil {
		return nil, refusal("load program "+names[0], err)
	}
	return c, nil
}

// newLoader allocates a log of size bytes for each online CPU; 0 derives the size from the number
// of CPUs. Events of a CPU that comes online later count as lost.
func newLoader(spec *ebpf.CollectionSpec, types *kernelTypes, target, preempt, size uint32) (l *loader, err error) {
	l = &loader{spec: spec, types: types, links: map[string]io.Closer{}, loaded: map[string]*ebpf.Program{}}
	if l.cpus, err = onlineCPUs(); err != nil {
		return nil, err
	}
	logs := slices.Max(l.cpus) + 1
	l.size = max(size, ringLeast)
	if size == 0 {
		l.size = ringBytes(logs)
	}
	switchArgs, _ := types.tracepoint("sched_switch")
	_, atExit := types.tracepoint("sched_exit_tp")
	for name, v := range map[string]uint32{
		whystallVarTarget: target, whystallVarPreemptFrom: preempt, whystallVarStateArg: bit(switchArgs >= 4),
		whystallVarCgroupDefault: bit(defaultHierarchy()), whystallVarAtExit: bit(atExit),
	} {
		if err := spec.Variables[name].Set(v); err != nil {
			return nil, fmt.Errorf("load programs: set %s: %w", name, err)
		}
	}
	// The tick moves the coarse clocks.
	var tick unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &tick); err != nil {
		return nil, fmt.Errorf("ask for the period of the tick: %w", err)
	}
	if err := spec.Variables[whystallVarTickPeriod].Set(uint64(tick.Nano())); err != nil {
		return nil, fmt.Errorf("load programs: set the period of the tick: %w", err)
	}
	if err := spec.Variables[whystallVarLogSize].Set(uint64(l.size)); err != nil {
		return nil, fmt.Errorf("load programs: set the size of logs: %w", err)
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("count CPUs: %w", err)
	}
	spec.Maps[whystallMapLogs].MaxEntries = uint32(logs)
	spec.Maps[whystallMapLogs].ValueSize = logBytes(l.size)
	spec.Maps[whystallMapLosses].MaxEntries = uint32(cpus)
	for _, p := range spec.Programs {
		types.bind(p, preempt)
	}
	return l, nil
}

// makeMaps is for when all constants are set.
func (l *loader) makeMaps() error {
	only := l.spec.Copy()
	only.Programs = nil
	c, err := ebpf.NewCollection(only)
	if err != nil {
		return refusal("make maps", err)
	}
	l.maps = c.Maps
	l.vars = c.Variables
	return nil
}

// program loads a program, which is closed with the loader.
func (l *loader) program(name string) (*ebpf.Program, error) {
	if len(l.maps) == 0 {
		if err := l.makeMaps(); err != nil {
			return nil, err
		}
	}
	p := l.spec.Programs[name]
	if p == nil {
		return nil, fmt.Errorf("load program %s: not in the object", name)
	}
	one := &ebpf.CollectionSpec{
		Maps: l.spec.Maps, Types: l.spec.Types, ByteOrder: l.spec.ByteOrder,
		Programs: map[string]*ebpf.ProgramSpec{name: p},
	}
	c, err := ebpf.NewCollectionWithOptions(one, ebpf.CollectionOptions{MapReplacements: l.maps, Cache: l.types.cache})
	if err != nil {
		return nil, refusal("load program "+name, err)
	}
	prog := c.DetachProgram(name)
	c.Close()
	l.loaded[name] = prog
	return prog, nil
}

// openRings maps what the programs write.
func (l *loader) openRings() (err error) {
	if l.rings, l.logView, err = mapLogs(l.maps[whystallMapLogs], l.cpus, l.size); err != nil {
		return err
	}
	losses := l.maps[whystallMapLosses]
	view, err := unix.Mmap(losses.FD(), 0, int(losses.MaxEntries()*losses.ValueSize()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map counts of losses: %w", err)
	}
	l.lossView = view
	return nil
}

// functions sets the addresses of the kernel functions whose calls by timers the programs look for,
// and returns what is not seen without some of them.
func (l *loader) functions() (missing []Missing, err error) {
	quota := map[string]string{
		"sched_cfs_period_timer": whystallVarPeriodTimer, "sched_cfs_slack_timer": whystallVarSlackTimer,
		"__cfsb_csd_unthrottle": whystallVarCsdUnthrottle, "hrtimer_wakeup": whystallVarWakeupTimer,
	}
	// The tick's function, by its name since Linux 6.8 and before.
	names := map[string]string{"tick_nohz_handler": whystallVarTickTimer, "tick_sched_timer": whystallVarTickTimer}
	maps.Copy(names, quota)
	var addrs map[string]uint64
	hidden := false
	if l.symbols != nil {
		addrs, hidden, err = l.symbols.addresses(names)
	} else {
		addrs, hidden, err = addresses(names)
	}
	if err != nil {
		return []Missing{{PartFunctions, "when a quota gives time, samples of what runs: " + err.Error()}}, nil
	}
	ticks := false
	for name, addr := range addrs {
		if err := l.spec.Variables[names[name]].Set(addr); err != nil {
			return nil, fmt.Errorf("load programs: set %s: %w", name, err)
		}
		ticks = ticks || names[name] == whystallVarTickTimer
	}
	// Older kernels have no such function: they give a quota's time where the timer fires.
	const remotely = "__cfsb_csd_unthrottle"
	if l.remote = hidden || addrs[remotely] != 0; !l.remote {
		delete(quota, remotely)
	}
	if err := lacking(quota, addrs, hidden); err != nil {
		missing = append(missing, Missing{PartQuotaTimers, "when a quota gives time: " + err.Error()})
	}
	if !ticks {
		missing = append(missing, Missing{PartTick, "samples of what runs: the tick's function is not known"})
	}
	return missing, nil
}

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// load loads a program of the table.
func (l *loader) load(p program) (*ebpf.Program, error) {
	if p.traits&perf == 0 {
		if _, ok := l.types.tracepoint(p.tracepoint); !ok {
			return nil, fmt.Errorf("%s: no tracepoint %s", p.sees, p.tracepoint)
		}
	}
	prog, err := l.program(p.name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.sees, err)
	}
	return prog, nil
}

// attach attaches a loaded program.
func (l *loader) attach(p program, prog *ebpf.Program) (err error) {
	var ln io.Closer
	switch {
	case p.traits&perf != 0:
		ln, err = l.attachPerf(p, prog)
	case p.traits&rawOnly != 0:
		ln, err = link.AttachRawTracepoint(link.RawTracepointOptions{Name: p.tracepoint, Program: prog})
	default:
		ln, err = link.AttachTracing(link.TracingOptions{Program: prog})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.sees, refusal("attach "+p.name, err))
	}
	l.links[p.name] = ln
	return nil
}

// threads asks an iterator for all threads of the machine.
func (l *loader) threads() ([]Thread, error) {
	if l.lister == nil {
		var err error
		if l.lister, err = l.program(whystallProgEverybody); err != nil {
			return nil, err
		}
	}
	return listThreads(l.lister)
}

func listThreads(lister *ebpf.Program) ([]Thread, error) {
	it, err := link.AttachIter(link.IterOptions{Program: lister})
	if err != nil {
		return nil, refusal("list threads", err)
	}
	defer it.Close()
	r, err := it.Open()
	if err != nil {
		return nil, refusal("list threads", err)
	}
	defer r.Close()
	// A kernel can have at most 4 million threads.
	b, err := io.ReadAll(io.LimitReader(r, nameSize<<22))
	if err != nil {
		return nil, fmt.Errorf("list threads: %w", err)
	}
	threads := make([]Thread, 0, len(b)/nameSize)
	for ; len(b) >= nameSize; b = b[nameSize:] {
		threads = append(threads, decodeThread(b))
	}
	return threads, nil
}

func (l *loader) close() {
	for _, c := range l.links {
		c.Close()
	}
	for _, p := range l.loaded {
		p.Close()
	}
	if l.logView != nil {
		unix.Munmap(l.logView)
	}
	if l.lossView != nil {
		unix.Munmap(l.lossView)
	}
	for _, m := range l.maps {
		m.Close()
	}
	l.symbols.close()
	*l = loader{}
}

// errGone means that no process has the number.
var errGone = errors.New("no such process")

// find finds the target, and so its number in the first pid namespace, by its number in ours.
func find(pid int, spec *ebpf.CollectionSpec, types *kernelTypes) (Thread, error) {
	c, err := alone(spec, types, whystallProgEverybody)
	if err != nil {
		return Thread{}, refused{err}
	}
	defer c.Close()
	all, err := listThreads(c.Programs[whystallProgEverybody])
	if err != nil {
		return Thread{}, err
	}
	for _, t := range all {
		if int(t.SelfTID) == pid && t.TID == t.PID {
			return t, nil
		}
	}
	return Thread{}, fmt.Errorf("find process %d: %w", pid, errGone)
}

// monotonic is the programs' clock.
func monotonic() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return ts.Nano()
}
