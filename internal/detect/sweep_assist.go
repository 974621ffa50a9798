package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:  "sweep-assist",
	Title: "An allocation sweeps far more than it gets",
	Needs: []string{Trace},
	Go:    true,
	// Rare and huge: one request in fifty may bear all of it, so the share may be small.
	Floor: Floor{NS: 5e6, Share: 0.05},
	Fast:  never,
	Doc: `What happens
  After GC has marked, an allocation that needs a span sweeps spans of its size until one has a
  free object. If nearly all of them are full of live objects, one allocation may sweep a gigabyte
  to find one slot. It happens right after a cycle, to whoever comes first: an update by primary
  key takes 800 ms instead of 30.

Evidence
  Slow column: "sweep", and the part of "runnable in Go" during which allocations that sweep had
  the Ps. Single sweeps of 5 ms or more, bytes swept against bytes reclaimed, and where they
  allocate.

Not to be taken for
  Small sweeps that reclaim nothing: they are always there. Most allocations after a cycle make
  one, each of a few us. Without one long sweep that swept far more than it reclaimed there is no
  finding. A sweep whose thread lost the CPU: the bytes swept do not account for its time then.

Remedy
  A newer Go: in 1.16 and later the same load sweeps for 3 ms at most. Until then: fewer live
  objects of that size (8 KiB objects have a span each): pool or pack them; or a larger GOGC for
  fewer cycles.

Verify
  whystall diagnose for several GC cycles: no sweep of 5 ms in slow requests.

Sources
  golang/go#18155; Arthur Mao, Go runtime related problems in TiDB production environment, Gopher
  China 2020: 1 GiB swept, 8 KiB reclaimed. Measured with 2 GB of live 8 KiB objects: Go 1.13
  sweeps 1.2 GB in 50-117 ms, 1.16 2-3 ms, 1.26 0.1 ms.`,
	Look: lookSweepAssist,
	Tell: tellSweepAssist,
})

const (
	longSweep  = int64(5e6)
	sweepWaste = 8          // swept to reclaimed: what a span's worth of live objects cannot be at a normal heap
	sweepBytes = int64(1e6) // below this nothing that is swept takes 5 ms by itself
)

func lookSweepAssist(p *Pass) {
	p.ClaimWhere(func(a *account.Account) bool { return a.Leaf == account.LeafSweep })
	if wasteful(p.Ledger) == nil {
		if len(p.claims) > 0 {
			p.Absent("%s per slow request in small sweeps; none took %s and swept %d times what it reclaimed", p.per(p.Claimed()), finding.Duration(longSweep), sweepWaste)
		}
		return
	}
	// A goroutine that sweeps keeps its P, so that whoever waits for a P waits for the sweep.
	for i := range p.Ledger.Slow.Accounts {
		if a := &p.Ledger.Slow.Accounts[i]; a.Leaf == account.LeafRunnable {
			p.Claim(i, min(instead(a, account.InsteadSweep), a.NS-late(a)))
		}
	}
}

// wasteful lists the sweeps that fit the cause.
func wasteful(r *account.Result) (ss []*account.Sweep) {
	for i := range r.Sweeps {
		s := &r.Sweeps[i]
		if s.End-s.Begin >= longSweep && s.Swept >= sweepBytes && s.Swept/sweepWaste >= s.Reclaimed {
			ss = append(ss, s)
		}
	}
	return ss
}

func tellSweepAssist(p *Pass, f *finding.Finding) {
	ss := wasteful(p.Ledger)
	top := ss[0]
	for _, s := range ss {
		if s.SlowNS > top.SlowNS || s.SlowNS == top.SlowNS && s.End-s.Begin > top.End-top.Begin {
			top = s
		}
	}
	f.Summary = fmt.Sprintf("%s spend %s each (%s of their time) sweeping inside an allocation",
		p.who(), p.per(p.NS()), p.share(p.NS()))
	if queued := p.grantedOf(leaf(account.LeafRunnable)); queued > 0 {
		f.Summary = fmt.Sprintf("slow requests lose %s each (%s of their time) to allocations that sweep: %s in their own, %s waiting for a P that another allocation keeps",
			p.per(p.NS()), p.share(p.NS()), p.per(p.NS()-queued), p.per(queued))
	}
	f.Summary += fmt.Sprintf("; the worst swept %s to reclaim %s in %s", finding.Bytes(top.Swept),
		finding.Bytes(top.Reclaimed), finding.Duration(top.End-top.Begin))
	for i, s := range ss {
		if i == 3 {
			p.Proof("execution trace: sweep", "%d more of this kind", len(ss)-3)
			break
		}
		at := ""
		if s.Site != "" {
			at = ", allocating at " + s.Site
		}
		p.Proof("execution trace: sweep", "at %s: swept %s, reclaimed %s in %s%s", p.at(s.Begin),
			finding.Bytes(s.Swept), finding.Bytes(s.Reclaimed), finding.Duration(s.End-s.Begin), at)
	}
	f.Remedy = append(f.Remedy,
		"build with a newer Go: 1.16 and later are free of it, as far as was measured (golang/go#18155)",
		"have fewer live objects of one size class at "+orUnknownSite(top.Site)+
			": pool them, or pack several into one allocation",
		"fewer cycles: raise GOGC, with GOMEMLIMIT as the guard")
	f.Verify = p.verify("no sweep of 5 ms in " + p.who())
}

func orUnknownSite(s string) string {
	if s == "" {
		return "the allocation site"
	}
	return s
}
