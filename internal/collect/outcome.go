package collect

import (
	"errors"
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/evidence"
)

// outcome is what a collector has come to so far.
type outcome struct {
	evidence.Collector
	local bool     // of a collector of this machine, which the pprof table does not have
	fail  *failure // of a pprof collector: the last one
}

// book puts the end of a fetch into its collector's outcome, and that into the manifest.
func (r *run) book(c *Collector, f Fetch, n int64, fail *failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.outcomes[c.Name]
	if o == nil {
		o = &outcome{Collector: evidence.Collector{Name: c.Name, State: evidence.Ready}}
		r.outcomes[c.Name] = o
		r.order = append(r.order, c.Name)
	}
	if fail == nil || fail.kind != noAnswer {
		r.answered = true
	}
	if n > 0 {
		r.kept++
		o.Members = append(o.Members, f.Member)
	}
	if fail != nil {
		// A failure stays, whatever succeeds later: a whole second reading does not mend the first.
		o.fail, o.Why = fail, fail.text
		if o.State = evidence.Broken; (fail.kind == absent || fail.kind == refused) && len(o.Members) == 0 {
			o.State = evidence.Unavailable
		}
	}
	r.write()
}

// settle puts an outcome into the manifest, in place of the collector's earlier one.
func (r *run) settle(c evidence.Collector) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outcomes[c.Name] == nil {
		r.order = append(r.order, c.Name)
	}
	r.outcomes[c.Name] = &outcome{Collector: c, local: true}
	r.write()
}

// write writes the outcomes: those of the pprof table in its order, then the others as they came.
func (r *run) write() {
	names := make([]string, 0, len(r.order))
	for _, c := range All() {
		if r.outcomes[c.Name] != nil {
			names = append(names, c.Name)
		}
	}
	for _, n := range r.order {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	r.w.Update(func(m *evidence.Manifest) {
		m.Collectors = m.Collectors[:0:0]
		for _, n := range names {
			kept := r.outcomes[n].Collector
			kept.Members = slices.Clone(kept.Members)
			m.Collectors = append(m.Collectors, kept)
		}
	})
}

// report says in one line each what went wrong. What a service merely does not offer is left to the
// report of explain, which lists it under what could not be checked. If the user interrupted the
// recording, that a fetch was stopped goes without saying.
func (r *run) report(interrupted bool) {
	for _, name := range r.order {
		o := r.outcomes[name]
		if o.State != evidence.Broken || o.fail != nil &&
			(o.fail == r.gaveUp || interrupted && o.fail.kind == stopped) {
			continue
		}
		switch trace := name == lead().Name; {
		case trace && len(o.Members) > 0:
			r.o.Progress(Progress{Note: fmt.Sprintf("trace: %s; the %s received so far are kept",
				o.Why, size(r.received.Load()))})
		case o.local || trace && r.target != nil:
			r.o.Progress(Progress{Note: name + ": " + o.Why})
		}
	}
}

// verdict turns what happened into the one error a person sees.
func (r *run) verdict(fail *failure) error {
	what := "record " + r.addr.shown()
	if r.target != nil {
		what = fmt.Sprintf("record pid %d", r.o.PID)
	}
	trace := r.outcomes[lead().Name]
	switch {
	case fail != nil && fail.kind == full:
		return &Error{What: "record", Why: fail.text, Full: true}
	case fail != nil && fail.kind == busy:
		return &Error{What: what, Why: fail.text}
	case trace != nil && len(trace.Members) > 0, r.kept > 0 && fail == nil:
		return nil
	case fail != nil:
		return &Error{What: what, Why: fail.text}
	case r.trace != nil:
		return &Error{What: what, Why: r.trace.text}
	}
	return &Error{What: what, Why: r.nothing()}
}

// nothing says why nothing at all came: the first reason there is.
func (r *run) nothing() string {
	for _, name := range r.order {
		if o := r.outcomes[name]; o.Why != "" {
			return name + ": " + o.Why
		}
	}
	return errNothing.Error()
}

var errNothing = errors.New("stopped before anything was recorded")
