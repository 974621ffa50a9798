package capacity

import (
	"math"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// work is what a sample met its thread at.
type work uint8

const (
	workOwn   work = iota // the program's, for all that is known
	workChurn             // making or ending a thread
	workSpin              // looking for a lock, or giving the CPU away to look again
)

// samples adds up CPU time that is no work of the program's: a queue for CPUs is of what the threads on them do.
func samples(k *sched.Timeline, r *account.Kernel) {
	type stacks struct{ kernel, user uint32 }
	known := map[stacks]work{}
	x := newSpanSum(&r.Spin)
	k.Events(math.MinInt64, math.MaxInt64, func(e *sched.Event) bool {
		at := stacks{e.Kernel, e.User}
		is, ok := known[at]
		if !ok {
			is = workOf(k.Stack(e.Kernel), k.Stack(e.User))
			known[at] = is
		}
		switch ns := int64(min(e.Arg[0], math.MaxInt32)); is {
		case workChurn:
			r.Churn.CPUNS += ns
		case workSpin:
			x.add(k, e.TID, e.Begin, ns, e.User, "")
		}
		return true
	}, kernel.Sample)
	x.done(false)
}

// workOf tells by the functions of both stacks, the innermost first.
func workOf(kern, user []kernel.Frame) work {
	for i := range kern {
		switch name := kern[i].Func; name {
		case "kernel_clone", "copy_process", "do_exit", "wake_up_new_task", "release_task":
			return workChurn
		case "do_sched_yield", "yield_task_fair":
			return workSpin
		default:
			switch _, call, ok := strings.Cut(name, "_sys_"); {
			case !ok || !strings.HasPrefix(name, "__"):
			case call == "sched_yield":
				return workSpin
			case call == "clone" || call == "clone3" || call == "exit":
				return workChurn
			}
		}
	}
	for i := range user {
		f := &user[i]
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
