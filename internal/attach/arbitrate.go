package attach

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/finding"
)

// judge weighs what parts of one group say about the same causes.
//
//   - Of a cause that several parts show, the strongest grade counts. Two kinds that both found it
//     make it supported: two independent counters agree.
//   - What one part bounds below any matter, another does not find: found becomes a candidate, and
//     a candidate or a risk goes.
//   - A cause is another's mechanism only where that one is found too.
//
// Nothing is proven: text has no clock in common with the requests.
func (a *Answer) judge(groups [][]*Told) {
	for _, told := range groups {
		var all []*Verdict
		for _, t := range told {
			for _, s := range t.Signs {
				all = weigh(all, s, t)
			}
		}
		all = contradicted(rules(told, all)) // a rule may find what no part does
		a.Causes = append(a.Causes, ordered(all)...)
	}
	a.twoMemories()
	a.twoRuns()
	a.Causes = once(a.Causes)
	rank := []Grade{Found, Candidate, Outside, Risk}
	// Stable, and by blocks of a root with its mechanisms: only the grade moves them.
	slices.SortStableFunc(a.Causes, func(x, y Verdict) int { return slices.Index(rank, x.Grade) - slices.Index(rank, y.Grade) })
}

// once merges verdicts of several groups on one cause: two dumps of one service are two places of
// it. They are weighed apart, and read in one list. The strongest grade counts: what is a candidate
// in one place and found in another is found, and the candidate is a line of its proof.
func once(all []Verdict) (out []Verdict) {
	of := map[string]int{}
	for _, v := range all {
		i, has := of[v.Cause]
		switch {
		case v.Grade == Outside || v.Cause == "":
			out = append(out, v)
		case !has:
			of[v.Cause] = len(out)
			out = append(out, v)
		case out[i].Grade == v.Grade:
			out[i].join(v)
		case slices.Index(strength, v.Grade) > slices.Index(strength, out[i].Grade):
			v.mention(out[i])
			out[i] = v
		default:
			out[i].mention(v)
		}
	}
	return out
}

// mostHeld bounds what is looked through, and how many lines prove one cause: an archive may have
// thousands of parts.
const mostHeld = 100

// join adds a verdict of the same grade.
func (o *Verdict) join(v Verdict) {
	for _, t := range v.From {
		if !slices.Contains(o.From[:min(len(o.From), mostHeld)], t) {
			o.From = append(o.From, t)
		}
	}
	if len(o.Proof) < mostHeld {
		o.Proof = mixed(o.Proof, v.Proof)
	}
	o.Share = max(o.Share, v.Share)
	if sureness(v.Sure) > sureness(o.Sure) {
		o.Sure = v.Sure
	}
	if o.BecauseOf != v.BecauseOf {
		o.BecauseOf = ""
	}
}

// mention adds a verdict of a weaker grade: a line of proof, and no place that the cause rests on.
func (o *Verdict) mention(v Verdict) {
	if len(o.Proof) >= mostHeld {
		return
	}
	for _, t := range v.From[:min(1, len(v.From))] {
		o.Proof = append(slices.Clip(o.Proof), fmt.Sprintf("in %s it is a %s", t.Part.where(), v.Grade))
	}
}

// mixed takes from two lists in turn, so that the first lines are of both.
func mixed(a, b []string) (out []string) {
	for i := range max(len(a), len(b)) {
		for _, list := range [][]string{a, b} {
			if i < len(list) {
				out = append(out, list[i])
			}
		}
	}
	return out
}

var strength = []Grade{Risk, Outside, Candidate, Found}

// weigh adds a sign to the verdicts of a group.
func weigh(all []*Verdict, s Sign, from *Told) []*Verdict {
	s.Sure, s.Proof = atMost(s.Sure), slices.Clip(s.Proof) // more is added to it, and it may be a piece of the figures
	for _, v := range all {
		same := v.Cause == s.Cause && (v.Grade == Against) == (s.Grade == Against)
		if s.Grade == Outside || v.Grade == Outside {
			same = s.Grade == v.Grade && s.Cause == v.Cause && from == v.From[0]
		}
		if !same {
			continue
		}
		if v.Grade == Found && s.Grade == Found && v.From[0].Part.Kind != from.Part.Kind {
			v.Sure = finding.Supported
		} else if s.Grade == Found && s.Sure == finding.Supported {
			v.Sure = s.Sure
		}
		if slices.Index(strength, s.Grade) > slices.Index(strength, v.Grade) {
			v.Grade, v.Where, v.Remedy = s.Grade, s.Where, s.Remedy
			v.Proof = append(slices.Clone(s.Proof), v.Proof...)
		} else {
			v.Proof = append(v.Proof, s.Proof...)
		}
		v.Share = max(v.Share, s.Share)
		v.BecauseOf = cmp.Or(v.BecauseOf, s.BecauseOf)
		if !slices.Contains(v.From, from) {
			v.From = append(v.From, from)
		}
		return all
	}
	return append(all, &Verdict{Sign: s, Group: from.Group, From: []*Told{from}})
}

// contradicted takes out what another part bounds, and marks without a root.
func contradicted(all []*Verdict) (out []*Verdict) {
	found := func(cause string) bool {
		return slices.ContainsFunc(all, func(v *Verdict) bool { return v.Grade == Found && v.Cause == cause })
	}
	for _, v := range all {
		if v.Grade == Against {
			continue
		}
		against := slices.IndexFunc(all, func(x *Verdict) bool { return x.Grade == Against && x.Cause == v.Cause && v.Cause != "" })
		if against >= 0 {
			if v.Grade != Found {
				continue
			}
			v.Grade = Candidate
			v.Proof = append(v.Proof, all[against].Proof...)
			v.From = append(v.From, all[against].From...)
		}
		out = append(out, v)
	}
	for _, v := range out {
		if v.BecauseOf != "" && (v.BecauseOf == v.Cause || !found(v.BecauseOf)) {
			v.BecauseOf = ""
		}
	}
	return out
}

// ordered puts roots in the order of what they cost, each followed by its mechanisms.
func ordered(all []*Verdict) (out []Verdict) {
	slices.SortStableFunc(all, func(x, y *Verdict) int {
		return cmp.Or(slices.Index(strength, y.Grade)-slices.Index(strength, x.Grade),
			cmp.Compare(sureness(y.Sure), sureness(x.Sure)), cmp.Compare(y.Share, x.Share))
	})
	taken := map[*Verdict]bool{}
	var put func(v *Verdict)
	put = func(v *Verdict) {
		if taken[v] {
			return
		}
		taken[v] = true
		out = append(out, *v)
		for _, m := range all {
			if m.BecauseOf == v.Cause && m.BecauseOf != "" {
				put(m)
			}
		}
	}
	for _, v := range all {
		if v.BecauseOf == "" {
			put(v)
		}
	}
	for _, v := range all { // causes that name each other
		put(v)
	}
	return out
}

func sureness(c finding.Confidence) int {
	if c == finding.Supported {
		return 1
	}
	return 0
}
