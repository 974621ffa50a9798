package detect

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// lacking lists what is missing of the detector's needs, with what would bring it. It is empty if
// any one of them is there.
func (p *Pass) lacking() []string {
	var missing []string
	for _, n := range p.det.Needs {
		if n == KernelRecords {
			if why := p.blindKernel(); why != "" {
				missing = append(missing, why)
				continue
			}
			return nil
		}
		if n != Trace {
			if p.Set.Has(n) {
				return nil
			}
			missing = append(missing, n+": "+bring(n))
			continue
		}
		if p.Scope() == finding.Process && slices.Contains(p.det.Scopes, finding.Process) && traced(p.Ledger) {
			return nil // what the trace says of the process needs no request
		}
		if why := p.blindTrace(); why != "" {
			missing = append(missing, why)
			continue
		}
		return nil
	}
	return missing
}

// blindTrace says why accounts cannot be read, "" if they can.
func (p *Pass) blindTrace() string {
	switch r := p.Ledger; {
	case r == nil, r.Native && p.det.Go:
		return "execution trace: " + bring(Trace)
	case r.Slow.Requests == 0 || r.Slow.WallNS <= 0:
		why := r.Requests.NoRequestsCause
		if why == "" {
			why = fmt.Sprintf("%d complete, %d already under way at the trace's start or unfinished at its end", r.Requests.Count, r.Requests.Open)
		}
		if r.Requests.None == account.NoneNoTrace {
			return "no request to explain: " + bring(Trace)
		}
		if r.Native {
			return "no request among its threads (" + why + "): record for longer and under load"
		}
		return "no request to explain in the execution trace (" + why + "): " + p.traceAgain() +
			", or name the entry with --entry"
	}
	return ""
}

// traceAgain says what would show requests in a trace that has none: more of it, unless what was
// asked for did not come.
func (p *Pass) traceAgain() string {
	if p.Facts.Shortened {
		return "the recorder ended the trace early to spare the service; record again for longer, or at a lower load"
	}
	r := p.Ledger
	var lost int64
	for i := range r.Gaps {
		lost += max(0, min(r.Gaps[i].End, r.End)-max(r.Gaps[i].Begin, r.Begin))
	}
	if len(r.Gaps) > 0 && mostlyLost*float64(lost) >= float64(r.End-r.Begin) {
		return fmt.Sprintf("%s of its %s are damaged or cut off (%s); record it again, and copy it whole", finding.Duration(min(lost, r.End-r.Begin)), finding.Duration(r.End-r.Begin), r.Gaps[0].Reason)
	}
	return "record for longer and under load"
}

// mostlyLost is how many times what is missing of a trace must hold in all of it to be no reason.
const mostlyLost = 4

// bring says what would bring a stream.
func bring(stream string) string {
	switch stream {
	case Trace:
		return "record one with whystall diagnose --pprof URL, or give a trace.out"
	case KernelRecords:
		return "whystall diagnose --pid PID on the target's host; whystall doctor lists what it may see there"
	case "/go/gc/cycles:gc-cycles", "/go/sched/gomaxprocs:threads":
		return "served by /metrics (Prometheus client) or /debug/vars (expvar), read twice"
	case rssStream, stealStream:
		return "whystall diagnose --pid PID on the target's host"
	case hugeStream:
		return "smaps_rollup of the process"
	case "/pprof/mutex/delay:ns":
		return "/debug/pprof/mutex, with runtime.SetMutexProfileFraction set in the service"
	}
	return "not recorded"
}

// blindKernel says why the kernel's records cannot be read, "" if they can.
func (p *Pass) blindKernel() string {
	switch k := kernelOf(p); {
	case k == nil:
		return "the kernel's records: " + bring(KernelRecords)
	case k.ThreadsSeen == 0:
		// The recorder got no CPU itself, or the target ended at once: nothing was looked at.
		return "the kernel's records: they have no thread of the process: all slept, or it ended at once. Record again, for longer; where child processes do its work (pgrep -P PID), record one of them"
	case k.Lost > 10*max(k.Switches, 1000) || 2*k.UnknownNS > k.OnNS+k.QueuedNS+k.ThrottledNS+
		k.UnknownNS && k.UnknownNS > wall(k)/100:
		// What is left is a sample of nothing in particular.
		return fmt.Sprintf("the kernel's records: %d of them were lost, and %s of its threads' time is not known; record again, with --no-stacks or at a lower load",
			k.Lost, finding.Duration(k.UnknownNS))
	}
	return ""
}
