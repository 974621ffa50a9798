package report

import "strings"

// attachments prints the answer to what was attached, for a ticket.
func (m *markdown) attachments(r *Report) {
	m.line("## whystall: %s\n", escape(r.Attached.title()))
	m.attached(r.Attached)
	for _, in := range r.Inputs {
		if in.Error != "" {
			m.line("- %s", escape(in.Error))
		}
	}
}

// attachedSection is the same below a report on a trace or a case.
func (m *markdown) attachedSection(r *Report) {
	if r.Attached == nil {
		return
	}
	m.line("\n### Attached: %s\n", escape(r.Attached.title()))
	m.attached(r.Attached)
}

func (m *markdown) attached(a *Attached) {
	title, _ := a.headline()
	m.line("**%s**\n", escape(sentenceCase(title)))
	for i := range a.Causes {
		c := &a.Causes[i]
		indent := ""
		if c.BecauseOf != "" {
			indent = "  "
		}
		m.line("%s- **%s** %s", indent, escape(strings.TrimSpace(c.label())), escape(c.says()))
		if from := c.places(); from != "" {
			m.line("%s  - in %s", indent, escape(from))
		}
		for _, s := range c.Proof[:min(len(c.Proof), maxProof)] {
			m.line("%s  - %s", indent, escape(s))
		}
		if c.Remedy != "" && c.Grade == GradeFound {
			m.line("%s  - do: %s", indent, escape(c.Remedy))
		}
	}
	for i := range a.Parts {
		m.attachedPart(&a.Parts[i], i < fullParts)
	}
	for _, s := range a.Notes {
		m.line("\n%s", escape(sentence(s)))
	}
	for _, u := range a.Unknown {
		if u.Is != "" {
			continue
		}
		s := "not known"
		if u.Guess != "" {
			s += ", nearest to " + u.Guess
		}
		m.line("\n%s: %s", code(u.place()), escape(s))
	}
	if aside := a.aside(); aside != "" {
		m.line("\nNo output: %s", escape(aside))
	}
	for i, n := range a.Next {
		if i == maxNext {
			break
		}
		m.line("\nNext: %s %s", code(n.Command), escape(sentence(n.Why)))
	}
}

func (m *markdown) attachedPart(t *AttachedPart, full bool) {
	m.line("\n%s **%s** (%s)\n", code(t.place()), escape(t.Title), t.State)
	if !full {
		return
	}
	for _, s := range t.Figures[:min(len(t.Figures), maxFigures)] {
		m.line("- %s", escape(s))
	}
	if t.Means != "" {
		m.line("\n%s", escape(sentence(t.Means)))
	}
	if t.Not != "" {
		m.line("\nIt does not say: %s", escape(t.Not))
	}
}
