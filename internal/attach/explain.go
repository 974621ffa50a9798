package attach

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/finding"
)

// Explain reads all parts and puts together what they say.
//
//  1. Parts of one kind and one place that are samples in order become one part (series.go).
//  2. Each part is read by its kind.
//  3. What was read twice and stays apart is compared by its facts (changes.go).
//  4. Parts of one process and moment are put into groups.
//  5. Rules look at the facts of several parts of a group (rules.go).
//  6. Signs are weighed against each other (arbitrate.go).
//  7. What the words around the parts rule out is withdrawn (elsewhere.go).
func Explain(parts []*Part, unknown []Unknown) *Answer {
	a := &Answer{Unknown: unknown}
	parts, links := series(parts)
	for _, p := range parts {
		a.Told = append(a.Told, read(p))
	}
	a.compare(links)
	a.judge(a.group())
	a.withoutCgroups()
	a.State = Healthy
	if !slices.ContainsFunc(a.Told, func(t *Told) bool { return t.State != Context }) {
		a.State = CannotTell
	}
	for _, t := range a.Told {
		a.State = worse(a.State, t.State)
	}
	for _, u := range unknown {
		if u.Sort == SortOutput {
			a.State = worse(a.State, CannotTell)
		}
	}
	for _, v := range a.Causes {
		switch v.Grade {
		case Found:
			a.State = Ill
		case Candidate, Risk, Outside:
			a.State = worse(a.State, CannotTell)
		}
	}
	a.next()
	return a
}

// read lets the kind read a part. A reader that panics costs its part and no other.
func read(p *Part) (t *Told) {
	t = &Told{Part: p}
	defer func() {
		if e := recover(); e != nil {
			t.Reading = Reading{Title: p.Kind.Name, State: CannotTell, Means: "this part could not be read",
				Flaws: []string{fmt.Sprintf("its reader failed: %v; please report this", e)}}
		}
		if t.State == "" {
			t.State = CannotTell
		}
	}()
	if p.Kind.Read == nil {
		t.Reading = Reading{Title: p.Kind.Name, Means: p.Kind.Refused, State: CannotTell}
		return t
	}
	if len(p.Lines) > mostRows && p.Kind.Rows {
		p.Lines, p.Left = p.Lines[:mostRows], -1
	}
	if t.Reading = p.Kind.Read(p); p.Kind.Context && t.State == Healthy {
		t.State = Context
	}
	if p.Quota > 0 {
		t.Facts = append(t.Facts, Fact{Name: Quota, Value: p.Quota})
	}
	if left := p.leftText(); left != "" {
		t.Flaws = append(t.Flaws, left)
	}
	if t.Who.PID == 0 {
		t.Who.PID = p.PID
	}
	if t.Who.Host == "" {
		t.Who.Host = p.Host
	}
	if t.Title == "" {
		t.Title = p.Kind.Name
	}
	return t
}

// next collects the commands that would decide, each once. A part that says all is well needs none.
func (a *Answer) next() {
	if a.State == Healthy {
		return
	}
	var all []Next
	shown, speaks := a.shown(), map[*Told][]*Verdict{}
	for i := range a.Causes {
		for _, t := range a.Causes[i].From {
			speaks[t] = append(speaks[t], &a.Causes[i])
		}
	}
	for _, t := range a.Told {
		if t.State != Healthy && t.State != Context && !decided(speaks[t]) {
			for _, n := range t.Reading.Next {
				if n.Command = shown.unasked(n.Command, t); n.Command != "" {
					all = append(all, n)
				}
			}
		}
	}
	seen, who := map[string]bool{}, a.who()
	for _, n := range all {
		n.Command = filled(n.Command, who)
		if !seen[n.Command] {
			seen[n.Command] = true
			a.Next = append(a.Next, n)
		}
	}
}

// decided reports whether nothing is open of a part: all that it speaks for is found, and another
// part supports it.
func decided(speaks []*Verdict) bool {
	open := slices.ContainsFunc(speaks, func(v *Verdict) bool {
		return v.Grade != Found || v.Sure != finding.Supported || len(v.From) < 2
	})
	return len(speaks) > 0 && !open
}

// who is the one process that parts name; what several name differently is not filled in.
func (a *Answer) who() (w Who) {
	var pids, cgroups, names bool // there are several
	for _, t := range a.Told {
		only(&w.PID, &pids, t.Who.PID)
		only(&w.Cgroup, &cgroups, t.Who.Cgroup)
		only(&w.Name, &names, t.Who.Name)
	}
	return w
}

// only keeps a value as long as all that are said are the same.
func only[T comparable](kept *T, several *bool, v T) {
	var none T
	switch {
	case v == none || *several || v == *kept:
	case *kept == none:
		*kept = v
	default:
		*kept, *several = none, true
	}
}
