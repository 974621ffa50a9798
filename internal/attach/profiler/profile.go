package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/oncpu"
)

// sample is what a profile says of one stack, or of one function where it has no stacks.
type sample struct {
	weight          float64 // a share of all, or a count
	comm            string
	kernel, program []kernel.Frame // innermost first; either may be empty
	bare            bool           // the text has no functions of it
	ofNobody        bool           // whether it is a function of the kernel or of the program is not said
}

// leaf is the function that ran.
func (s *sample) leaf() string {
	if len(s.kernel) > 0 {
		return s.kernel[0].Func
	}
	if len(s.program) > 0 {
		return s.program[0].Func
	}
	return ""
}

// profile is where CPUs were found.
type profile struct {
	samples []sample
	whole   float64 // what weights are parts of; 0: their sum
	number  int     // of samples taken; 0: not said
	stacks  bool
	counts  bool // samples are events and no CPU time: a thread that an interrupt hit is not idle
	only    only // whose code alone was sampled
	unsaid  bool // nothing says which event was sampled
	pid     int
	below   map[string]float64 // of a tree that was cut: shares by function, with what it calls
	self    map[string]float64 // shares by function alone, of rows that the tree took the place of
	calls   map[string]float64 // shares of the kernel's functions with all that they call, of rows with little by themselves
	through reached            // the row with most of it that has next to nothing by itself
	callers *tally             // of some of it, with stacks, where the profile itself has none; nil: none
}

// reached is a function that samples were in or below, and their share.
type reached struct {
	name  string
	share float64
}

// tally is a profile by what CPUs did.
type tally struct {
	p           *profile
	whole       float64
	idle        float64 // of whole
	unnamed     float64 // without a symbol
	ofNobody    float64 // of which the text does not say whether the kernel or a program ran
	bare        bool    // some of these have none since the text has no column of them
	kinds       map[account.WorkKind]float64
	names       map[account.WorkKind]map[string]float64
	funcs       map[string]float64
	comms       map[string]float64
	askers      map[string]float64 // of locks of the kernel: who wants them
	faultSpin   float64            // spinning for a lock within a page fault
	guest       float64            // of that: in faults of a guest
	mmapSpin    float64
	reclaimSpin float64 // spinning for a lock while a thread frees memory for itself
	someoneSpin float64 // the same, of whom nothing says whether it is for itself
	softirqSpin float64 // spinning for a lock within a softirq
	zeroing     float64
	assist      float64
	sweep       float64
	direct      float64 // reclaim that a thread does itself, by its stack or its name
	kthreads    float64 // reclaim by threads of the kernel, which is nobody's wait
	semaphore   float64
	futex       float64 // in system calls on futexes, those of Go's scheduler left out
	mutex       float64 // of that: below a function that takes a lock
	queued      bool    // the kernel's spinlocks queue in a function of their own
	clock       float64
	jvmGC       float64
	late        float64
	within      within
}

// sum says what the CPUs of a profile did. Idle CPUs are left out of all but whole.
func (p *profile) sum() *tally {
	t := &tally{p: p, whole: p.whole, kinds: map[account.WorkKind]float64{},
		names: map[account.WorkKind]map[string]float64{},
		funcs: map[string]float64{}, comms: map[string]float64{}, askers: map[string]float64{}}
	if t.whole <= 0 {
		for i := range p.samples {
			t.whole += p.samples[i].weight
		}
	}
	for i := range p.samples {
		t.queued = t.queued || slices.ContainsFunc(p.samples[i].kernel,
			func(f kernel.Frame) bool { return queues(f.Func) })
	}
	for i := range p.samples {
		t.add(&p.samples[i])
	}
	return t
}

func (t *tally) add(s *sample) {
	if !t.p.counts && idles(s) {
		t.idle += s.weight
		return
	}
	name := s.leaf()
	if t.p.stacks {
		t.within.add(s)
	}
	if unresolved(name) {
		t.unnamed += s.weight
		t.bare = t.bare || s.bare
	} else {
		t.funcs[name] += s.weight
	}
	if s.comm != "" {
		t.comms[s.comm] += s.weight
	}
	key := oncpu.Named(modern(s.kernel, t.queued), s.program)
	if jvmCollector(s.comm) || jvmCollects(s.program) {
		t.jvmGC += s.weight
		if len(s.kernel) == 0 {
			key.Kind, key.Name = account.WorkGC, name
		}
	}
	if s.ofNobody {
		key.Kind, key.Name = account.WorkUnknown, name
		t.ofNobody += s.weight
	}
	if key.Kind == account.WorkSpin && collects(s.program) {
		key.Kind = account.WorkGC // the sweeper yields between spans
	}
	if len(s.kernel) == 0 && spinsForLock(name) {
		key.Kind, key.Name = account.WorkSpin, name
	}
	if len(s.kernel) == 0 && len(s.program) > 0 && callsKernel(&s.program[0]) {
		key.Kind, key.Name = account.WorkSyscall, name // of a profile without the kernel
	}
	if len(s.kernel) == 1 && strings.HasPrefix(name, "bpf_prog_") && packetProgram(name) {
		key.Kind, key.Name = account.WorkKernel, name
	}
	inside := insideSoftirq(s.kernel)
	if key.Kind == account.WorkSoftirq && len(inside) > 0 {
		if spun := oncpu.Named(modern(inside, t.queued), nil); spun.Kind == account.WorkKernelLock {
			key = spun // whatever had the softirq run, the time goes into the lock
		}
	}
	if key.Kind == account.WorkKernelLock && len(inside) > 0 {
		t.softirqSpin += s.weight
	}
	if key.Late != "" {
		t.late += s.weight
	}
	t.kinds[key.Kind] += s.weight
	if t.names[key.Kind] == nil {
		t.names[key.Kind] = map[string]float64{}
	}
	t.names[key.Kind][key.Name] += s.weight
	t.look(s, &key)
}

// packetProgram reports whether an eBPF program is no tracer by its name: it handles packets.
func packetProgram(name string) bool {
	if strings.Contains(name, "probe") || strings.Contains(name, "trace") {
		return false
	}
	for _, word := range []string{"xdp", "_tc_", "cls_", "_tcx", "ingress", "egress", "_sk_",
		"sockops", "cilium", "cali_", "katran", "_lb_", "reuseport", "skb"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// look notes what the kinds of work do not tell apart.
func (t *tally) look(s *sample, key *oncpu.Key) {
	if key.Kind == account.WorkReclaim {
		switch reclaimerOf(s) {
		case reclaimsItself:
			t.direct += s.weight
		case ofKernel:
			t.kthreads += s.weight
		}
	}
	fault, guest := inFault(s.kernel)
	switch {
	case key.Kind == account.WorkKernelLock:
		if fault {
			t.faultSpin += s.weight
		}
		if guest {
			t.guest += s.weight
		}
		if reclaimsInStack(s.kernel) {
			switch reclaimerOf(s) {
			case reclaimsItself:
				t.reclaimSpin += s.weight
			case anybody:
				t.someoneSpin += s.weight
			}
		}
		if strings.Contains(key.Name, "mmap_lock") {
			t.mmapSpin += s.weight
		}
		if who := asker(s.kernel); who != "" {
			t.askers[who] += s.weight
		}
	case zeroes(name0(s.kernel)):
		t.zeroing += s.weight
		if key.Kind != account.WorkFault {
			t.kinds[key.Kind] -= s.weight
			t.kinds[account.WorkFault] += s.weight
		}
	case guest && key.Kind != account.WorkFault:
		t.kinds[key.Kind] -= s.weight
		t.kinds[account.WorkFault] += s.weight
	}
	for i := range s.program {
		switch s.program[i].Func {
		case "runtime.gcAssistAlloc", "runtime.gcAssistAlloc1", "runtime.gcDrainN":
			t.assist += s.weight
		case "runtime.deductSweepCredit":
			t.sweep += s.weight
		default:
			continue
		}
		break
	}
	for i := range s.kernel {
		name := s.kernel[i].Func
		if semaphoreCall(name) {
			t.semaphore += s.weight
			break
		}
		if strings.Contains(name, "futex") {
			t.ofFutex(s)
			break
		}
		if clock, _, _ := strings.Cut(name, "."); slowClock[clock] {
			t.clock += s.weight
			break
		}
	}
}

// ofFutex notes a sample in a system call on a futex: whether a function that takes a lock made it.
// Threads of Go's scheduler sleep and wake each other by futexes where there is no work.
func (t *tally) ofFutex(s *sample) {
	ofGo := false
	for i := range s.program {
		name := s.program[i].Func
		if takesMutex(name) {
			t.mutex += s.weight
			ofGo = false
			break
		}
		ofGo = ofGo || strings.HasPrefix(name, "runtime.futex")
	}
	if !ofGo {
		t.futex += s.weight
	}
}

// busy is what CPUs did something in, as a part of whole.
func (t *tally) busy() float64 { return max(t.whole-t.idle, 0) }

// share is a part of the time in which CPUs did something.
func (t *tally) share(part float64) float64 {
	if b := t.busy(); b > 0 {
		return min(max(part/b, 0), 1)
	}
	return 0
}

// top lists the largest of some parts, with their shares of whole as the tool itself prints them.
func (t *tally) top(of map[string]float64, n int, least float64) string {
	var out []string
	for _, name := range attach.Largest(of) {
		share := of[name] / t.whole
		if len(out) == n || share < least {
			break
		}
		out = append(out, pct(share)+" "+name)
	}
	return strings.Join(out, ", ")
}

// callsMuch is a share of all that is worth a word beside the functions by themselves.
const callsMuch = 0.1

// called lists functions of the kernel with all that they call. Those that differ little from one
// that is listed are on the way to it.
func (t *tally) called() string {
	if len(t.p.below) > 0 {
		return ""
	}
	var out []string
	last := 2.0
	for _, name := range attach.Largest(t.p.calls) {
		share := t.p.calls[name]
		if share < callsMuch || len(out) == 3 {
			break
		}
		if share > 0.85*last || entries[name] || idlers[name] {
			continue
		}
		out = append(out, pct(share)+" "+name)
		last = share
	}
	return strings.Join(out, ", ")
}

// leastShown is the share from which on a function is listed. A lone one is, whatever it has.
func (t *tally) leastShown() float64 {
	if len(t.funcs) == 1 {
		return 0
	}
	return 0.005
}

// figures are the lines that a person wants first.
func (t *tally) figures() []string {
	var out []string
	if s := t.top(t.p.below, 6, 0.005); s != "" {
		out = append(out, "with what they call: "+s)
		if s := t.top(t.p.self, 2, 0.005); s != "" {
			out = append(out, "by themselves: "+s)
		}
	} else if s := t.top(t.funcs, 3, t.leastShown()); s != "" {
		first := attach.Largest(t.funcs)[0]
		if by := t.within.callers(first, t.funcs[first], t.whole); by != "" {
			s += "; " + by
		}
		if chain := t.within.says(t.whole, t.funcs[attach.Largest(t.funcs)[0]]); chain != "" {
			s += "; " + chain
		}
		out = append(out, s)
	} else if t.unnamed > 0 && !t.bare {
		out = append(out, pct(t.unnamed/t.whole)+" without a symbol")
	}
	if s := t.called(); s != "" {
		out = append(out, "with what they call: "+s)
	}
	kinds := map[string]float64{}
	for kind, part := range t.kinds {
		if part/t.whole >= 0.02 && kind != account.WorkUnknown {
			kinds[string(kind)] = part
		}
	}
	if s := t.top(kinds, 4, 0.02); s != "" {
		out = append(out, "by kind: "+s)
	}
	if t.idle/t.whole >= 0.02 {
		out = append(out, fmt.Sprintf("%s idle, which is left out of the shares of causes", pct(t.idle/t.whole)))
	} else if s := t.top(t.comms, 3, 0.02); s != "" && len(t.comms) > 1 {
		out = append(out, "by thread: "+s)
	}
	return out
}
