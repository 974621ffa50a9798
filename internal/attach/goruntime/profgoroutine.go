package goruntime

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// readGoroutines reads a goroutine profile as the dump that it is.
func (p *profile) readGoroutines(r *attach.Reading) {
	d := &dump{counts: true}
	for _, s := range p.stacks {
		st := &stack{count: int(min(s.value, 1e9))}
		for _, fn := range s.funcs {
			st.frames = append(st.frames, frame{fn: fn})
		}
		st.parked = slices.Contains(s.funcs, "runtime.gopark")
		d.stacks = append(d.stacks, st)
	}
	if len(p.stacks) > 0 {
		title := r.Title
		*r = readDump(&attach.Part{}, d)
		r.Title = title
		return
	}
	p.readGoroutineSums(r)
}

// readGoroutineSums is the same where only sums by function are printed.
func (p *profile) readGoroutineSums(r *attach.Reading) {
	r.State = attach.CannotTell
	var lock float64
	for fn, v := range p.cum {
		if fn == "sync.(*Mutex).Lock" || fn == "internal/sync.(*Mutex).lockSlow" ||
			fn == "sync.(*Mutex).lockSlow" || fn == "sync.(*RWMutex).RLock" || fn == "sync.(*RWMutex).Lock" {
			lock = max(lock, v)
		}
	}
	r.Glance = true
	cut := lock == 0 && p.unseen
	if cut {
		r.Figures = append(r.Figures, fmt.Sprintf("%.0f goroutines", p.total))
	} else {
		r.Figures = append(r.Figures, fmt.Sprintf("%.0f goroutines, %.0f of them at a lock", p.total, lock))
	}
	if fn := most(p.flat, nil); fn != "" && p.flat[fn] > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%.0f in %s%s", p.flat[fn], fn, p.of(p.flat[fn])))
	}
	r.Means, r.Not = "no goroutine waits for a lock in this moment", "how long each has waited: it is one moment"
	if lock > 0 {
		r.Means = fmt.Sprintf("%.0f of %.0f goroutines wait for a lock in this moment", lock, p.total)
	}
	if cut {
		r.State = attach.CannotTell
		r.Means = "goroutines that wait are all parked in one function of the runtime; the rows that would say how many wait for a lock are not shown"
		r.Next = []attach.Next{{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=1'",
			Why: "all stacks, each with how many have it"}}
	}
	if lock < manyWaiters {
		fn := most(p.cum, ownFunction)
		if fn == "" || p.cum[fn] < p.total/2 {
			return
		}
		r.Figures = append(r.Figures, fmt.Sprintf("%.0f in %s%s or below it", p.cum[fn], fn, p.of(p.cum[fn])))
		if p.cum[fn] >= manyLeaked {
			r.State = attach.CannotTell
			r.Means = "so many goroutines alike are workers without work, a leak, or a crowd behind one that serves them; a leak costs memory and work of GC, and is no cause of latency by itself"
			r.Next = []attach.Next{{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=1' a minute later", Why: "a number that only grows, while the load does not, is a leak"}}
		}
		return
	}
	site := ""
	for fn, v := range p.cum {
		if ownFunction(fn) && v <= lock && (site == "" || v > p.cum[site] || v == p.cum[site] && fn < site) {
			site = fn
		}
	}
	r.State = attach.Ill
	r.Means = "goroutines queue for a lock"
	cause := "lock-contention"
	if hasPrefix(site, loggerParts) {
		cause = "logger-lock"
	}
	if site != "" {
		r.Figures = append(r.Figures, fmt.Sprintf("%.0f in %s", p.cum[site], site))
		r.Means += ", most likely in " + site
	}
	r.Signs = []attach.Sign{{Cause: cause, Grade: attach.Found, Sure: finding.Possible,
		Share: ratio(lock, p.total), Proof: r.Figures}}
	r.Next = []attach.Next{{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=2'",
		Why: "says who likely holds it"}}
}
