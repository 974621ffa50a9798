package detect

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// lock-contention of a Go process whose work is not in requests: background goroutines that queue
// for one lock. The trace has the waits of all goroutines, whoever they work for.

const (
	convoyWaiters = 1.0 // goroutines that wait for the lock, on average
	convoyRate    = 5.0 // waits for it that end, a second: fewer are a gate that somebody closed
	convoyBeside  = 4   // times as long as requests took in all: they are not what the process does
)

// termGoroutines is the time in which goroutines had work, or waited for the lock.
const termGoroutines = "time of goroutines with work"

// convoy is the lock for which all goroutines waited longest, nil without one. A logger's is none.
func convoy(r *account.Result) (most *account.Lock) {
	for i := range r.Locks {
		if l := &r.Locks[i]; l.WaitNS > 0 && !isLogger(l) && (most == nil || l.WaitNS > most.WaitNS) {
			most = l
		}
	}
	return most
}

// besideConvoy reports whether the requests that were seen are the smaller part of what the process
// did: scrapes of its metrics, or this recorder's own.
func besideConvoy(r *account.Result) bool {
	if r.Native || !traced(r) {
		return false
	}
	l := convoy(r)
	return l != nil && r.All.WallNS > 0 && l.WaitNS >= convoyBeside*r.All.WallNS
}

// lookConvoy reports whether it spoke.
func lookConvoy(p *Pass) bool {
	r := p.Ledger
	if p.Scope() != finding.Process || r == nil || r.Native || !traced(r) {
		return false
	}
	l := convoy(r)
	if l == nil {
		return false
	}
	wall := max(1, r.Capacity.WallNS)
	worked := r.Capacity.RunningNS + r.Capacity.SyscallNS + int64(r.Capacity.RunnableAvg*float64(wall))
	waiters := float64(l.WaitNS) / float64(wall)
	share := min(ratio(l.WaitNS, l.WaitNS+worked), waiters)
	switch {
	case waiters < convoyWaiters || share < processShare || float64(l.Waits) < convoyRate*float64(wall)/1e9:
		if !p.board.seen {
			return false
		}
		p.Bound(0, min(share, waiters/convoyWaiters*processShare), finding.OfWall)
		p.Clear("goroutines wait for the lock at %s for %s a second in all, %s of the time in which they have work (reported from %.0f s a second and %s up)",
			lockSites(l), finding.Duration(int64(waiters*1e9)), percent(share), convoyWaiters, percent(processShare))
		return true
	}
	p.pool(termGoroutines, l.WaitNS, l.WaitNS+worked, l.WaitNS+worked)
	p.weight, p.convoy = share, l
	p.SetFloor(Floor{})
	p.capProcess()
	if why := shortOfCPU(r); why != "" {
		p.Doubt("%s; holders that have no CPU make any lock a queue", why)
	}
	return true
}

// lockSites names a lock by where it is taken and released.
func lockSites(l *account.Lock) string {
	if len(l.Sites) == 0 {
		return "a place without a name"
	}
	return strings.Join(l.Sites[:min(len(l.Sites), 3)], ", ")
}

func tellConvoy(p *Pass, f *finding.Finding) {
	l, wall := p.convoy, max(1, p.Ledger.Capacity.WallNS)
	waiters := float64(l.WaitNS) / float64(wall)
	f.Title = "Goroutines queue for a lock"
	f.Summary = fmt.Sprintf("goroutines wait for the lock at %s for %s a second in all, %s of the time in which they have work; up to %d queue for it",
		lockSites(l), finding.Duration(int64(waiters*1e9)), percent(f.Share), l.MaxQueue)
	p.Proof("execution trace: locks",
		"%d waits, %s in all in %s; after %s of them the goroutine that was woken had to wait for a P while all others waited",
		l.Waits, finding.Duration(l.WaitNS), finding.Duration(wall), percent(ratio(l.Handoffs, max(1, l.Waits))))
	if len(l.Stack) > 0 {
		p.Proof("execution trace: locks", "who waits: %s", sites(l.Stack, 0, 5))
	}
	f.Remedy = append(f.Remedy, "shorten what is done under the lock at "+lockSites(l)+
		", or shard it; no more goroutines that need it at once than make progress",
		"see what its holders do: whystall diagnose --pid beside --pprof, and go tool pprof of /debug/pprof/mutex with runtime.SetMutexProfileFraction(100)")
	f.Verify = p.verify("goroutines wait for it for less than half as long")
}
