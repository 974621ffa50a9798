package report

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
)

// looked lists the kinds of evidence that there are, each with its words.
func (r *Report) looked() (out [][2]string) {
	var runtime, system []string
	for _, t := range r.Tiers {
		switch {
		case t.State == evidence.Unavailable:
		case isKernelTier(t.Name):
		case isRuntimeTier(t.Name):
			runtime = append(runtime, t.Name)
		default:
			system = append(system, t.Name)
		}
	}
	if len(runtime) > 0 {
		out = append(out, [2]string{"the runtime", strings.Join(runtime, ", ")})
	}
	if k := r.Kernel; k != nil {
		s := map[string]string{"bpf": "eBPF", "perf": "perf_event switch records"}[k.Source]
		if s == "" {
			s = k.Source
		}
		s += " on Linux " + k.Release
		if k.AllTasks {
			s += ", switches of all tasks on all CPUs"
		} else {
			s += ", switches of its own threads"
		}
		if k.Whole {
			s += "; joined with the trace by the times when no thread of the process was on a CPU, since the trace names no threads: what kept all of them off the CPUs is shown, what kept a single one is not"
		} else if k.Joined {
			s += "; joined with the trace: " + oldClock(k.OldClock)
			if a := &k.Align; a.Transitions > 0 {
				s += fmt.Sprintf("of %s goroutine transitions %s fall on a thread that was on no CPU", count(a.Transitions), count(a.OffCPU))
				if a.Dropped > 0 {
					s += fmt.Sprintf(" (%s not counted: their times are not those of the events)", count(a.Dropped))
				}
				if a.MinNS > 0 {
					s += fmt.Sprintf(", the first comes at least %s after its thread's switch-in",
						finding.Duration(a.MinNS))
				}
			} else {
				s += "no transition could be compared"
			}
		}
		out = append(out, [2]string{"the kernel", s})
	}
	if len(system) > 0 {
		out = append(out, [2]string{"/proc, /sys, cgroups", strings.Join(system, ", ")})
	}
	return out
}

// unseen lists what could not be seen of a process, each with what that costs in certainty.
func (r *Report) unseen() (out []string) {
	if r.Target.PID == 0 && r.Kernel == nil {
		return nil
	}
	for _, t := range r.Tiers {
		if t.State == evidence.Ready || t.Why == "" {
			continue
		}
		switch {
		case t.Name == "pprof", t.Name == "trace":
			cost := "requests are those of threads, and what goroutines waited for cannot be told apart"
			if r.Target.Runtime == "go" {
				cost = "requests, and what goroutines waited for, are not seen"
			}
			out = append(out, "the runtime ("+t.Why+"): "+cost)
		case isKernelTier(t.Name) && r.Kernel == nil:
			out = append(out, "the kernel ("+t.Name+": "+t.Why+
				"): it is not known whether running threads were on a CPU, so nothing is proven")
		case !isRuntimeTier(t.Name):
			out = append(out, t.Name+" ("+t.Why+")")
		}
	}
	k := r.Kernel
	if k == nil {
		return out
	}
	if what := inRuntime[r.Target.Runtime]; what != "" {
		out = append(out, what)
	}
	if !k.AllTasks {
		out = append(out, "other processes' switches: the report shows that a thread had no CPU, but not who had it")
	}
	if !k.PerTask {
		out = append(out, "which thread is throttled: this kernel reports only that its group is, so throttling is at most supported")
	}
	out = append(out, k.Missing...)
	if k.Lost > 0 {
		out = append(out, plural(k.Lost, "lost kernel record", "lost kernel records")+
			": what they leave open is unexplained")
	}
	if whole := k.OnNS + k.QueuedNS + k.ThrottledNS + k.BlockedNS + k.UnknownNS; k.UnknownNS*1000 > whole {
		out = append(out, fmt.Sprintf("%s of its threads' time, for which records are missing: unexplained", finding.Duration(k.UnknownNS)))
	}
	return out
}

// inRuntime says what is not seen of a runtime whose threads are shown as plain threads.
var inRuntime = map[string]string{
	"jvm":    "methods of the Java program, what its safepoints are for and whose monitors its threads wait for: that they wait for a safepoint or a monitor is shown (-Xlog:safepoint,gc and jstack say more)",
	"python": "functions of the Python program: waits for the GIL are shown, and which thread has it, but not what that thread computes",
	"ruby":   "methods of the Ruby program: waits for the GVL are shown, and which thread has it, but not what that thread computes",
	"node":   "which callback of the JavaScript program runs: all run on one thread, and requests here are what it did without a pause",
}

func isKernelTier(name string) bool { return name == "kernel" || strings.HasPrefix(name, "kernel-") }

func isRuntimeTier(name string) bool {
	switch name {
	case "trace", "mutex", "block", "goroutine", "heap", "memstats", "metrics", "vars", "cpu", "pprof":
		return true
	}
	return false
}

// joined reports whether the kernel's records say what threads did while the runtime called them
// running.
func (r *Report) joined() bool { return r.Kernel != nil && r.Kernel.Joined }

// oldClock says how a trace with a clock of its own was put on the kernel's.
func oldClock(c *account.OldClock) string {
	if !c.Found() {
		return ""
	}
	return fmt.Sprintf("its clock and threads were found by its own events, give or take %s: of %s moments at which a thread had to be on a CPU %s miss, at random offsets %s and more; ",
		finding.Duration(c.ErrorNS), count(c.Marks), count(c.Missed), percent(c.RandomMissed))
}
