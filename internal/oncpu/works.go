package oncpu

import (
	"math"
	"sync"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// mostWorks bounds the works that a recording may have: names come from a file that anybody made.
const mostWorks = 1 << 16

// Key is a work: what a sample met its thread at.
type Key struct {
	Kind account.WorkKind
	Name string // see account.Work
	// Site is the function of the program that it came from; its Func is "" where no stack says.
	Site account.Site
	// Late is the function that enabled interrupts, for a sample that waited for it; "" else.
	Late string
	// Leaf: of the program's stack only the innermost function is known.
	Leaf bool
	// Churn: it is part of making or ending a thread, whatever its kind.
	Churn bool
}

// Works numbers what the samples of a recording met. Its methods may be called by several
// goroutines.
type Works struct {
	k      *sched.Timeline
	once   sync.Once // of the rest, which is made at the first question
	keys   []Key
	known  map[pair]uint32
	number map[Key]uint32
	// unseen is the work of time in the kernel, where the recorder's user may not sample that; 0
	// where it is sampled.
	unseen uint32
}

// pair is the StackIDs of a sample: of the kernel and of the program.
type pair struct{ kernel, user uint32 }

// New returns the works of all samples in k. 0 is the work of which nothing is known.
func New(k *sched.Timeline) *Works { return &Works{k: k} }

// read numbers the works of all samples, in the order in which they first come.
func (w *Works) read() {
	w.known, w.number = map[pair]uint32{}, map[Key]uint32{}
	w.add(Key{Kind: account.WorkUnknown})
	r := reader{k: w.k, made: w.interpreters(), programs: map[uint32]program{}, kernels: map[asked]said{}}
	inKernel := w.k.Header().Source != "perf"
	w.k.Events(math.MinInt64, math.MaxInt64, func(e *sched.Event) bool {
		p := pair{e.Kernel, e.User}
		if _, ok := w.known[p]; !ok {
			w.known[p] = w.add(r.work(p))
		}
		inKernel = inKernel || e.Kernel != 0
		return true
	}, kernel.Sample)
	if !inKernel {
		// perf_event takes no sample where the user may not look: the kernel's time has none at
		// all.
		w.unseen = w.add(Key{Kind: account.WorkUnknown, Name: account.UnseenWork})
	}
}

// reader remembers what stacks say, each of which many samples share.
type reader struct {
	k        *sched.Timeline
	made     interpreters
	programs map[uint32]program // by StackID
	kernels  map[asked]said
}

// asked is a kernel stack, and the system call by the program's.
type asked struct {
	kernel uint32
	call   string
}

func (r *reader) work(p pair) Key {
	of, ok := r.programs[p.user]
	if !ok {
		of = programOf(r.k.Stack(p.user), r.made)
		r.programs[p.user] = of
	}
	if p.kernel == 0 {
		return together(of, nil)
	}
	s, ok := r.kernels[asked{p.kernel, of.call}]
	if !ok {
		s = kernelOf(r.k.Stack(p.kernel), of.call)
		r.kernels[asked{p.kernel, of.call}] = s
	}
	return together(of, &s)
}

func (w *Works) add(key Key) uint32 {
	n, ok := w.number[key]
	if ok {
		return n
	}
	if len(w.keys) >= mostWorks {
		return 0
	}
	n = uint32(len(w.keys))
	w.keys = append(w.keys, key)
	w.number[key] = n
	return n
}

// Of is the number of the work that a sample met.
func (w *Works) Of(e *sched.Event) uint32 {
	w.once.Do(w.read)
	return w.known[pair{e.Kernel, e.User}]
}

// Key is the work of a number.
func (w *Works) Key(n uint32) *Key {
	w.once.Do(w.read)
	return &w.keys[n]
}

// SampleNS is the CPU time that a sample stands for. It is bounded: a damaged record may say
// anything.
func SampleNS(e *sched.Event) int64 { return int64(min(e.Arg[0], math.MaxInt32)) }

// workOf says what a thread was at, by the functions of both stacks, the innermost first.
func workOf(inKernel, inProgram []kernel.Frame, made interpreters) Key {
	of := programOf(inProgram, made)
	if len(inKernel) == 0 {
		return together(of, nil)
	}
	s := kernelOf(inKernel, of.call)
	return together(of, &s)
}

// together puts together what the program's stack says and what the kernel's does, which decides
// where there is one.
func together(of program, s *said) Key {
	key := Key{Kind: of.kind, Name: of.name, Site: of.site, Leaf: of.leaf, Churn: of.threads ||
		of.kind == account.WorkThreads}
	if s == nil || s.kind == "" {
		if key.Site.Func == key.Name && key.Kind != account.WorkSpin {
			key.Site = account.Site{} // own code: it is its own site
		}
		return key
	}
	key.Kind, key.Name, key.Late = s.kind, s.name, s.late
	switch key.Kind {
	case account.WorkInterrupt, account.WorkSoftirq:
		key.Site = account.Site{} // it came in there, and not from there
	}
	key.Churn = key.Churn || key.Kind == account.WorkThreads
	if key.Kind != account.WorkSyscall && key.Kind != account.WorkSwitch {
		return key
	}
	call := s.call
	if call == "" && key.Kind == account.WorkSyscall {
		call = inOut
	}
	switch {
	case call == "": // it left its CPU, and did not ask for it
	case ofRuntime[of.kind]:
		// What Go's runtime asks of the kernel is for what it does: to wake a thread, to give
		// memory back.
		key.Kind, key.Name = of.kind, call
	case of.threads:
		key.Kind, key.Name = account.WorkThreads, call
	case call == "sched_yield":
		key.Kind, key.Name = account.WorkSpin, call
	case key.Kind == account.WorkSyscall:
		key.Name = call
	}
	return key
}

// ofRuntime are the works of Go's runtime for which it makes system calls of its own.
var ofRuntime = map[account.WorkKind]bool{account.WorkGC: true, account.WorkAlloc: true,
	account.WorkGoSched: true, account.WorkSpin: true}
