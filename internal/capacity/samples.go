package capacity

import (
	"math"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// sampleNS is the CPU time that a sample stands for. It is bounded: a damaged record may say
// anything.
func sampleNS(e *sched.Event) int64 { return int64(min(e.Arg[0], math.MaxInt32)) }

// work is what a sample met its thread at.
type work uint8

const (
	workOwn   work = iota // the program's, for all that is known
	workChurn             // making or ending a thread
	workSpin              // looking for a lock, or giving the CPU away to look again
)

// sumWaste adds up CPU time that is no work of the program's. A queue for CPUs is made by whatever
// the threads on them do.
func sumWaste(k *sched.Timeline, r *account.Kernel) {
	type stacks struct{ kernel, user uint32 }
	works := map[stacks]work{}
	spin := newSpanSum(&r.Spin)
	k.Events(math.MinInt64, math.MaxInt64, func(e *sched.Event) bool {
		s := stacks{e.Kernel, e.User}
		w, ok := works[s]
		if !ok {
			w = workOf(k.Stack(e.Kernel), k.Stack(e.User))
			works[s] = w
		}
		switch w {
		case workChurn:
			r.Churn.CPUNS += sampleNS(e)
		case workSpin:
			spin.add(k, e.TID, e.Begin, sampleNS(e), e.User, "")
		}
		return true
	}, kernel.Sample)
	spin.write()
}

// workOf says what a thread was at, by the functions of both stacks, the innermost first. The
// kernel's stack decides where it says anything.
func workOf(inKernel, inProgram []kernel.Frame) work {
	for i := range inKernel {
		if w := kernelWork(inKernel[i].Func); w != workOwn {
			return w
		}
	}
	return programWork(inProgram)
}

// kernelWork is the work that a function of the kernel stands for.
func kernelWork(name string) work {
	switch name {
	case "kernel_clone", "copy_process", "do_exit", "wake_up_new_task", "release_task":
		return workChurn
	case "do_sched_yield", "yield_task_fair":
		return workSpin
	}
	switch systemCall(name) {
	case "sched_yield":
		return workSpin
	case "clone", "clone3", "exit":
		return workChurn
	}
	return workOwn
}

// systemCall is the name of the system call that a function of the kernel is the entry of: "munmap"
// of __x64_sys_munmap; "" if it is none.
func systemCall(name string) string {
	if _, call, ok := strings.Cut(name, "_sys_"); ok && strings.HasPrefix(name, "__") {
		return call
	}
	return ""
}

// programWork is the work that the functions of the program's side stand for. To make a thread and
// to spin are calls into a library. So only a library's frames inside the program's own innermost
// function say anything. The innermost four are enough.
func programWork(frames []kernel.Frame) work {
	for i := range frames {
		f := &frames[i]
		if f.Inferred || i >= 4 {
			break
		}
		name, _, _ := strings.Cut(strings.TrimLeft(f.Func, "_"), "@")
		switch {
		case i == 0 && (name == "pthread_spin_lock" || name == "sched_yield"):
			return workSpin
		case !sched.SystemModule(f.Module):
			return workOwn
		case strings.HasPrefix(name, "pthread_create") || strings.HasPrefix(name, "nptl_") || name == "allocate_stack" || name == "advise_stack_range":
			return workChurn
		}
	}
	return workOwn
}

// sumFlushes says in which system calls the target's threads flushed TLBs, and from where, by the
// samples that met them at it. Its time is known better from stretches, so only the lists are
// taken.
func sumFlushes(k *sched.Timeline, out *account.Spans) {
	calls := map[uint32]string{} // by kernel stack; "": no flush
	sampled := account.Spans{}
	x := newSpanSum(&sampled)
	k.Events(math.MinInt64, math.MaxInt64, func(e *sched.Event) bool {
		call, ok := calls[e.Kernel]
		if !ok {
			call = flushCall(k.Stack(e.Kernel))
			calls[e.Kernel] = call
		}
		if call != "" {
			x.add(k, e.TID, e.Begin, sampleNS(e), e.User, call)
		}
		return true
	}, kernel.Sample)
	x.write()
	x.writeThreads()
	out.Flags, out.Sites, out.By = sampled.Flags, sampled.Sites, sampled.By
}

// flushCall is the system call that flushes TLBs with this kernel stack, "" if it flushes none.
func flushCall(frames []kernel.Frame) string {
	if sched.BlockOf(frames) != sched.BlockTLB {
		return ""
	}
	for _, f := range frames {
		if call := systemCall(f.Func); call != "" {
			return call
		}
	}
	return "no system call"
}
