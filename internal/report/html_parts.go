package report

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/report/webpage"
)

// pageVerdict is the answer where attachments are all there is.
func (a *Attached) pageVerdict() webpage.Verdict {
	title, style := a.headline()
	v := webpage.Verdict{Kind: webpage.Blind, Title: sentenceCase(title)}
	switch style {
	case red:
		v.Kind = webpage.Found
	case green:
		v.Kind = webpage.Nothing
	}
	named := false
	for i := range a.Causes {
		c := &a.Causes[i]
		switch {
		case c.Grade != GradeFound:
			v.Text = append(v.Text, strings.TrimSpace(c.label())+": "+sentence(c.says()))
		case !named && c.BecauseOf == "":
			v.Title += ": " + c.Title
			named = true
		}
	}
	return v
}

// pageAttached is what was attached, nil where nothing was.
func pageAttached(a *Attached) *webpage.Attached {
	if a == nil {
		return nil
	}
	out := &webpage.Attached{Notes: slices.Clone(a.Notes)}
	for i := range a.Parts {
		t := &a.Parts[i]
		out.Parts = append(out.Parts, webpage.AttachedPart{Place: t.Where.String(), Title: t.Title,
			State: t.State, Figures: slices.Clone(t.Figures),
			Means: sentence(t.Means), Not: sentence(t.Not), Flaws: slices.Clone(t.Flaws)})
	}
	for _, u := range a.Unknown {
		s := u.Where.String()
		switch {
		case u.Is != "":
			continue
		case u.Guess != "":
			s += ": nearest to " + u.Guess
		}
		out.Unknown = append(out.Unknown, s)
	}
	for _, n := range a.Next {
		out.Next = append(out.Next, webpage.Text{Title: n.Command, Text: sentence(n.Why)})
	}
	return out
}
