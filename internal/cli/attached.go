package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/detect"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/report"
)

// attachments is what files hold besides traces, cases and profiles: text that people attach.
type attachments struct {
	parts   []*attach.Part
	unknown []attach.Unknown
	notes   []string     // what went wrong
	remarks []string     // what was not looked at
	inputs  map[int]bool // those of which some part is known, by their index
}

// answer puts together what the attachments say, and what detectors found in records of files that
// both worlds know. nil: nothing was attached.
func (in *loaded) answer(found *finding.Result) *report.Attached {
	if in.trace != nil || in.kern != nil {
		in.attached.parts = withoutProfiles(in.attached.parts)
	}
	alone := in.trace == nil && in.kern == nil
	if len(in.attached.parts) == 0 && (!alone || len(in.cases) > 0) {
		return nil
	}
	if alone {
		defer frugal()()
	}
	a := attach.Explain(in.attached.parts, in.attached.unknown)
	out := &report.Attached{State: string(a.State), Parts: []report.AttachedPart{}, Causes: []report.AttachedCause{},
		Unknown: []report.AttachedUnknown{},
		Notes: append([]string{}, slices.Concat(a.Notes, in.attached.remarks,
			in.attached.notes)...), Next: []report.AttachedNext{}}
	for _, t := range a.Told {
		out.Parts = append(out.Parts, toldPart(t))
	}
	for _, v := range a.Causes {
		out.Causes = append(out.Causes, weighed(v))
	}
	for _, u := range a.Unknown {
		out.Unknown = append(out.Unknown,
			report.AttachedUnknown{Where: report.Where{File: u.File, First: u.First, Last: u.Last},
				Words: u.Sort == attach.SortWords, Is: string(u.Sort),
				Beside: u.Sort == attach.SortRest, Guess: u.Guess})
	}
	for _, n := range a.Next {
		out.Next = append(out.Next, report.AttachedNext(n))
	}
	if alone {
		if len(out.Parts) == 0 && len(out.Unknown) == 0 { // formats know all of it
			out.State = report.AttachedHealthy
		}
		in.alone(out, found)
	}
	return out
}

// alone adds what only the detectors know, where attachments are all there is: the files that no
// kind of text knows, and causes of which no part speaks.
func (in *loaded) alone(out *report.Attached, found *finding.Result) {
	if len(in.attached.notes) > 0 {
		out.State = worseState(out.State, report.AttachedUnsure)
	}
	for i, input := range in.inputs {
		switch {
		case input.Error != "":
			out.State = worseState(out.State, report.AttachedUnsure)
		case !in.attached.inputs[i] && input.Kind != "":
			state := report.AttachedUnsure
			if len(found.RuledOut) > 0 {
				state = report.AttachedHealthy
			}
			out.State = worseState(out.State, state)
			out.Parts = append(out.Parts, report.AttachedPart{Where: report.Where{File: input.Name},
				Kind: input.Kind, State: state,
				Title: input.Kind, Means: checkedText(found), Figures: []string{},
				Flaws: []string{}, Facts: []report.Fact{}})
		}
	}
	for _, f := range found.Findings {
		if slices.ContainsFunc(out.Causes, func(c report.AttachedCause) bool { return c.Cause == f.Cause }) {
			continue
		}
		c := report.AttachedCause{Cause: f.Cause, Grade: report.GradeFound,
			Confidence: string(notProven(f.Confidence)), Share: f.Share,
			BecauseOf: f.BecauseOf, Title: f.Title, Proof: []string{f.Summary}, From: []report.Where{}}
		for _, e := range f.Evidence {
			c.Proof = append(c.Proof, e.Text)
		}
		if len(f.Remedy) > 0 {
			c.Remedy = f.Remedy[0]
		}
		out.Causes = slices.Insert(out.Causes, countFound(out.Causes), c)
		out.State = report.AttachedIll
	}
}

func countFound(cs []report.AttachedCause) (n int) {
	for n < len(cs) && cs[n].Grade == report.GradeFound {
		n++
	}
	return n
}

func worseState(a, b string) string {
	for _, s := range []string{report.AttachedIll, report.AttachedUnsure} {
		if a == s || b == s {
			return s
		}
	}
	return report.AttachedHealthy
}

// notProven caps how sure a finding without requests may be.
func notProven(c finding.Confidence) finding.Confidence {
	if c == finding.Proven {
		return finding.Supported
	}
	return c
}

func checkedText(found *finding.Result) string {
	var names []string
	for _, r := range found.RuledOut {
		names = append(names, r.Cause)
	}
	if len(names) == 0 {
		return "its numbers alone decide about no cause"
	}
	return "checked by its numbers and ruled out: " + strings.Join(names, ", ")
}

func toldPart(t *attach.Told) report.AttachedPart {
	p := report.AttachedPart{Where: whereOf(t.Part), Kind: t.Part.Kind.Name, State: string(t.State), Group: t.Group,
		Above: t.Part.Title, Command: t.Part.Command, Host: t.Who.Host, Path: t.Part.Path, PID: t.Who.PID,
		Title: t.Title, Figures: append([]string{}, t.Figures...), Means: t.Means, Not: t.Not,
		Flaws:     append([]string{}, t.Flaws...),
		SinceBoot: t.Boot, Glance: t.Glance, Facts: []report.Fact{}}
	for _, f := range t.Facts {
		if f.Value == f.Value && f.Value-f.Value == 0 { // JSON has neither NaN nor infinity
			p.Facts = append(p.Facts, report.Fact{Name: string(f.Name), Value: f.Value, Of: f.Of})
		}
	}
	return p
}

func whereOf(p *attach.Part) report.Where {
	return report.Where{File: p.File, First: p.First(), Last: p.Last()}
}

// weighed says a verdict in the manual's words.
func weighed(v attach.Verdict) report.AttachedCause {
	c := report.AttachedCause{Cause: v.Cause, Grade: string(v.Grade),
		Share: min(max(v.Share, 0), 1), BecauseOf: v.BecauseOf,
		Proof: append([]string{}, v.Proof...), From: []report.Where{}}
	if v.Grade == attach.Found {
		c.Confidence = string(cmp.Or(v.Sure, finding.Possible))
	}
	for _, t := range v.From {
		c.From = append(c.From, whereOf(t.Part))
	}
	page, ok := detect.Manual(v.Cause)
	switch {
	case v.Grade == attach.Outside:
		c.Cause, c.Title = "", v.Where
	case ok:
		c.Title, c.Remedy = page.Title, cmp.Or(v.Remedy, detect.FirstRemedy(v.Cause))
	default:
		c.Title = v.Cause
	}
	return c
}

// mostPlaces bounds the places that a line of proof names.
const mostPlaces = 3

// placesOf says where a cause was read: "cpu.txt:3-9, top.txt:1-40".
func placesOf(l []report.Where) string {
	var out []string
	for _, w := range l[:min(len(l), mostPlaces)] {
		out = append(out, w.String())
	}
	if n := len(l) - len(out); n > 0 {
		out = append(out, fmt.Sprintf("%d more", n))
	}
	return strings.Join(out, ", ")
}

// findings puts what was found in attachments among the report's findings, for programs that ask
// there.
func findings(a *report.Attached) (out []finding.Finding) {
	for _, c := range a.Causes {
		if c.Grade != report.GradeFound {
			continue
		}
		f := finding.Finding{Cause: c.Cause, Scope: finding.Process, Title: c.Title,
			Confidence: finding.Confidence(c.Confidence),
			Share:      c.Share, BecauseOf: c.BecauseOf, Summary: c.Title, Remedy: []string{},
			Evidence: []finding.Evidence{}}
		source := placesOf(c.From)
		for _, s := range c.Proof {
			f.Evidence = append(f.Evidence, finding.Evidence{Text: s, Source: source})
		}
		if c.Remedy != "" {
			f.Remedy = []string{c.Remedy}
		}
		out = append(out, f)
	}
	return out
}
