package collect

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sensor/bpf"
	"github.com/whystall/whystall/internal/sensor/symbol"
)

// naming finds the frames of stacks in a goroutine of its own: the first look into a large program
// takes a second.
type naming struct {
	table   *symbol.Table
	kernel  kernelNames // nil: they are not named
	missing []kernel.Missing
	todo    chan unnamed
	done    sync.WaitGroup
	cpu     int64
	spent   atomic.Int64 // CPU time so far, ns
	dropped int64
}

// unnamed is a stack to name: the kernel's or a user's by its frames, or a file that stands for
// one. With exec set it is none: the target runs another program from then on.
type unnamed struct {
	id     uint32
	time   int64
	user   bool
	exec   bool
	exact  bool // a user stack found by symbol.Table.Unwind, not by frame pointers
	frames []uint64
	file   string // instead of frames: the file that a wait is for
}

func newNaming(p Process) *naming {
	n := &naming{todo: make(chan unnamed, 4096)}
	var err error
	if n.table, err = symbol.New(p.PID, p.Root); err != nil {
		n.missing = append(n.missing, kernel.Missing{What: []kernel.Sight{kernel.SightTargetNames},
			Why: "names of the target's functions: " + err.Error()})
	}
	return n
}

// goroutines reports whether the target is a Go program: a thread there works for one goroutine
// after another, whatever each of them reads.
func (n *naming) goroutines() bool { return n.table != nil && n.table.Binary().Go }

// kernelNames names the kernel's functions.
type kernelNames interface {
	Stack(pcs []uint64, dst []symbol.Frame) []symbol.Frame
}

// readKernel prepares to name the kernel's functions: by asking the kernel, or by reading its table
// where it does not answer.
func (n *naming) readKernel(p Process, asked *bpf.Symbols) {
	if asked != nil {
		n.kernel = &askedNames{s: asked, cache: map[uint64]symbol.Frame{}}
		return
	}
	t, err := symbol.Kernel(p.Root)
	if err != nil {
		n.missing = append(n.missing, kernel.Missing{What: []kernel.Sight{kernel.SightKernelNames},
			Why: "names of the kernel's functions: " + err.Error()})
		return
	}
	n.kernel = t
}

// askedNames asks the kernel for each address once.
type askedNames struct {
	s     *bpf.Symbols
	cache map[uint64]symbol.Frame
	ask   []uint64
	got   []bpf.Symbol
}

// maxAddrs bounds the addresses that are remembered: threads wait in some thousand calls of the
// kernel.
const maxAddrs = 1 << 16

// Stack appends the frames of a stack, innermost first. All addresses but the first are where a
// call returns to, so the call before them is looked up.
func (a *askedNames) Stack(pcs []uint64, dst []symbol.Frame) []symbol.Frame {
	if len(a.cache) > maxAddrs {
		clear(a.cache)
	}
	a.ask = a.ask[:0]
	for i, pc := range pcs {
		pc -= min(uint64(i), 1, pc)
		if _, ok := a.cache[pc]; !ok {
			a.ask = append(a.ask, pc)
		}
	}
	var err error
	// An address that could not be looked up has no name.
	if a.got, err = a.s.Names(a.ask, a.got[:0]); err == nil {
		for i, s := range a.got {
			a.cache[a.ask[i]] = symbol.Frame{Func: s.Func, Module: s.Module, Offset: s.Offset}
		}
	}
	for i, pc := range pcs {
		back := min(uint64(i), 1, pc)
		fr := a.cache[pc-back]
		fr.Addr = pc
		if fr.Module == "" {
			fr.Module = "kernel"
		}
		if fr.Func != "" {
			fr.Offset += back
		}
		dst = append(dst, fr)
	}
	return dst
}

func (n *naming) start(w *kernel.Writer) {
	n.done.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		start := bpf.ThreadTime()
		var frames []symbol.Frame
		var out []kernel.Frame
		for u := range n.todo {
			frames = frames[:0]
			switch {
			case u.file != "":
				frames = append(frames, symbol.Frame{Module: u.file})
			case u.exec:
				if n.table != nil {
					n.table.Exec(u.time)
				}
				continue
			case u.user && u.exact && n.table != nil:
				frames = n.table.Exact(u.frames, u.time, frames)
			case u.user && n.table != nil:
				frames = n.table.Stack(u.frames, u.time, frames)
			case !u.user && n.kernel != nil:
				frames = trimProbe(n.kernel.Stack(u.frames, frames))
			default:
				for _, a := range u.frames {
					frames = append(frames, symbol.Frame{Addr: a})
				}
			}
			out = out[:0]
			for _, f := range frames {
				out = append(out, kernel.Frame{Addr: f.Addr, Func: f.Func, Module: f.Module,
					Offset: f.Offset, Inferred: f.Inferred, Waits: f.Waits})
			}
			w.Stack(u.id, out)
			if len(n.todo)%32 == 0 {
				n.spent.Store(bpf.ThreadTime() - start)
			}
		}
		n.cpu = bpf.ThreadTime() - start
	})
}

// trimProbe removes the frames of the BPF program itself, of the kernel's way to it, and of the
// interrupt in which it took a sample.
func trimProbe(frames []symbol.Frame) []symbol.Frame {
	// The program's own frame has no name: it was not loaded yet when the kernel's symbols were
	// read.
	for i := min(len(frames), 5) - 1; i >= 0; i-- {
		f := frames[i].Func
		if strings.HasPrefix(f, "bpf_trace_run") || strings.HasPrefix(f, "__bpf_trace_") ||
			strings.HasPrefix(f, "__traceiter_") || strings.HasPrefix(f, "bpf_prog_") {
			frames = frames[i+1:]
			break
		}
	}
	if len(frames) == 0 || !strings.Contains(frames[0].Func, "hrtimer") {
		return frames
	}
	for i, f := range frames[:min(len(frames), 12)] {
		if strings.HasPrefix(f.Func, "asm_sysvec_") || strings.HasPrefix(f.Func, "el1h_64_irq") {
			return frames[i+1:]
		}
	}
	return frames
}

func (n *naming) put(id uint32, e *bpf.Event) {
	n.send(unnamed{id: id, time: e.Time, user: e.IsUser, frames: append([]uint64(nil), e.Stack...)})
}

func (n *naming) exec(at int64) { n.send(unnamed{exec: true, time: at}) }

// send never waits for the naming goroutine: the rings must be read.
func (n *naming) send(u unnamed) {
	select {
	case n.todo <- u:
	default:
		n.dropped++
	}
}

// end waits until all stacks are named, and returns the CPU time that took.
func (n *naming) end() int64 {
	close(n.todo)
	n.done.Wait()
	n.close()
	return n.cpu
}

// close closes the files; a second call does no harm.
func (n *naming) close() {
	if n.table != nil {
		n.table.Close()
	}
}
