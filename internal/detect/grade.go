package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// grade decides how sure a finding is. Proven needs both ends measured, who was awaited and what
// held it, for 80 % of the claim. What held a runnable or running goroutine is not in a Go trace:
// without the kernel's records nothing is above supported.
func (p *Pass) grade(f *finding.Finding) {
	f.Confidence = finding.Supported
	amount := p.NS()
	if len(p.pools) > 0 {
		amount = p.pooled()
	}
	p.capWork()
	if p.measured > 0 {
		p.capKernel()
	}
	switch {
	case p.doubt != "":
		f.Confidence = finding.Possible
		p.Proof("whystall", "no more than possible: %s", p.doubt)
	case float64(p.measured) < 0.8*float64(amount) || p.measured <= 0:
	case p.capped != "":
		p.Proof("whystall", "no more than supported: %s", p.capped)
	default:
		f.Confidence = finding.Proven
	}
}

// capKernel caps what rests on the kernel's records where they have holes.
func (p *Pass) capKernel() {
	k := kernelOf(p)
	switch {
	case k == nil:
		p.Cap("there are no kernel records")
	case float64(k.UnknownNS) > 0.05*float64(k.OnNS+k.QueuedNS+k.ThrottledNS+k.UnknownNS):
		p.Cap("records are missing for %s of its threads' time", finding.Duration(k.UnknownNS))
	case k.Joined && k.OldClock != nil && len(p.pools) == 0:
		p.Cap("the trace has a clock of its own and names no threads: both were found by where its events fall, give or take %s", finding.Duration(k.OldClock.ErrorNS))
	case k.Joined && k.Align.Transitions > 0 && float64(k.Align.OffCPU) > 0.0005*float64(k.Align.Transitions):
		p.Cap("%s of the goroutines' events fall on threads that were off the CPU by the kernel's records", percent(ratio(k.Align.OffCPU, k.Align.Transitions)))
	}
}

// measure counts what was granted on accounts whose two ends are both events. Left out are inferred
// holders, locks on the path, and what is known by coverage without identity.
func (p *Pass) measure() {
	p.granted(func(a *account.Account, ns int64) {
		if a.Class == account.ClassLock {
			return
		}
		known := a.Tags.MeasuredNS
		for _, s := range a.Through {
			known -= s.NS
		}
		known -= a.Tags.InferredNS
		p.measured += scale(max(0, min(known, a.NS)), ns, a.NS)
	})
}

// fairControl prints how many stretches as long as the stop-the-worlds look like them by accident.
func (p *Pass) fairControl() {
	k := kernelOf(p)
	if k == nil || k.Fair.Pairs == 0 {
		return
	}
	p.Proof("kernel records: fair control",
		"of %d pairs of events of one thread, as far apart as these stop-the-worlds are long, %s look as if something had held the thread up, %s to the end; so the coincidence alone proves nothing here, only a recorded wake-up does",
		k.Fair.Pairs, percent(ratio(k.Fair.Covered, k.Fair.Pairs)), percent(ratio(k.Fair.Edge, k.Fair.Pairs)))
}

func kernelOf(p *Pass) *account.Kernel {
	if p.Ledger == nil {
		return nil
	}
	return p.Ledger.Kernel
}

// joined reports whether the accounts of slow requests have the kernel's leaves.
func joined(r *account.Result) bool {
	return r != nil && r.Kernel != nil && (r.Kernel.Joined || r.Native) && r.Slow.Requests > 0 && r.Slow.WallNS > 0
}

// wall is how long the kernel's records last.
func wall(k *account.Kernel) int64 { return max(1, k.End-k.Begin) }

// perSecond prints a rate.
func perSecond(n int64, k *account.Kernel) string {
	r := rate(n, k)
	if r >= 10 || r == 0 {
		return fmt.Sprintf("%.0f a second", r)
	}
	return fmt.Sprintf("%.1f a second", r)
}

func rate(n int64, k *account.Kernel) float64 { return float64(n) / (float64(wall(k)) / 1e9) }
