package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// Traces before Go 1.22 name the collector's stop-the-worlds only. One for a stack dump or for
// ReadMemStats leaves a trail: goroutines can run, and yet all Ps but one are idle, and one
// goroutine has the P that is left. A P whose thread is late to wake up looks idle as well, so
// others must leave the CPUs free.
const (
	namesStops    = 22  // the format from which on every stop-the-world is named
	namelessIdle  = 0.8 // of the time of the other Ps
	namelessOne   = 0.6 // of the time of the one P
	namelessCrowd = 0.3 // of the CPUs, at most, that others take
)

// namelessStop is who had the one P that was not idle while an account's requests could have run;
// "" where nothing shows that the world was stopped.
func namelessStop(r *account.Result, a *account.Account) (who string) {
	n := float64(r.Capacity.Procs)
	if v := r.Reader.Format; v <= 0 || v >= namesStops || n < 2 || a.Leaf != account.LeafRunnable {
		return ""
	}
	if c := r.CPUs; c == nil || float64(c.OthersNS) > namelessCrowd*float64(c.TotalNS) {
		return ""
	}
	var all, idle, one int64
	for i := range a.Instead {
		w := &a.Instead[i]
		all += w.NS
		switch {
		case w.Kind == account.InsteadIdle:
			idle += w.NS
		case !w.Lacked() && w.NS > one:
			one, who = w.NS, w.Who
		}
	}
	if float64(idle)*n < namelessIdle*(n-1)*float64(all) || float64(one)*n < namelessOne*float64(all) {
		return ""
	}
	return who
}

// claimNameless claims what passed in stops without a name.
func claimNameless(p *Pass) {
	for i := range p.Ledger.Slow.Accounts {
		if a := &p.Ledger.Slow.Accounts[i]; namelessStop(p.Ledger, a) != "" {
			p.Claim(i, a.NS)
		}
	}
}

// nameless is who stopped the world without a name for most of what was granted; "" where most of
// it has one.
func nameless(p *Pass) string {
	by, all := map[string]int64{}, int64(0)
	p.granted(func(a *account.Account, ns int64) {
		all += ns
		if who := namelessStop(p.Ledger, a); who != "" {
			by[who] += ns
		}
	})
	if who := most(by); 2*by[who] > all {
		return who
	}
	return ""
}

func tellNameless(p *Pass, f *finding.Finding, who string) {
	f.Summary = fmt.Sprintf("%s stand still for %s (%s of their time) while only %s runs: it seems to stop the world", p.who(), p.per(p.NS()), p.share(p.NS()), who)
	p.Proof("ledger: slow column",
		"goroutines could run, and yet all of the %d Ps but one were idle, and %s had that one",
		p.Ledger.Capacity.Procs, who)
	if k := kernelOf(p); k != nil && k.OnCPU != nil {
		on, n := k.OnCPU, 0
		for _, w := range works(on, account.WorkGoRuntime) {
			for _, s := range w.Sites {
				if s.Func == who && w.Name != account.OtherWorks && n < 3 {
					n++
					p.Proof("samples", "%s of the CPU time: %s, called from %s",
						percent(ratio(w.NS, on.NS)), w.Name, who)
				}
			}
		}
	}
	p.measure()
	p.Cap("a trace of Go 1.%d names only the collector's pauses: that the world was stopped is inferred", p.Ledger.Reader.Format)
	f.Remedy = append(f.Remedy, "see which call of "+who+
		" stops the world: runtime.Stack of all goroutines, a goroutine profile or runtime.ReadMemStats; call it less often, or read runtime/metrics instead")
	f.Verify = p.verify("what slow requests stand still is below " + p.per(p.NS()) + " per request")
}
