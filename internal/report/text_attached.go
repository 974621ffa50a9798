package report

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
)

// Bounds of the one screen. Without them all is told.
const (
	fullParts    = 6 // parts that are told in full
	shortParts   = 14
	maxProof     = 3
	maxFigures   = 3
	maxPlaces    = 4
	maxNext      = 2
	maxUnknown   = 4
	maxFlaws     = 2
	maxTellCause = 6
)

// attachments prints the answer to what was attached: the causes, then each part, then what is not
// known and what would decide.
func (p *page) attachments(r *Report) {
	for level := range attachedLevels {
		p.b.Reset()
		p.painted("whystall: ", p.paint(bold, "whystall: "), bold, 4, r.Attached.title(), shortenWords)
		p.line("")
		p.attached(r.Attached, level)
		p.inputErrors(r)
		if p.all || strings.Count(p.b.String(), "\n") <= mostLines {
			return
		}
	}
}

// most is how many of a list are told where one screen has room for n.
func (p *page) most(n int) int {
	if p.all {
		return math.MaxInt
	}
	return n
}

// attachedLevels is how often the screen is made with less detail until it fits: all parts in full;
// the healthy ones in a line; all in a line but those with a finding; all in a line.
const attachedLevels = 4

// attachedSection is the same below a report on a trace or a case.
func (p *page) attachedSection(r *Report) {
	if r.Attached == nil {
		return
	}
	p.heading("ATTACHED", r.Attached.title())
	p.attached(r.Attached, 1)
}

func (p *page) attached(a *Attached, level int) {
	title, style := a.headline()
	p.line("%s", p.paint(style, title))
	for i := range a.Causes {
		if i == p.most(maxTellCause) {
			p.line("  and %d more: -v tells all", len(a.Causes)-i)
			break
		}
		p.attachedCause(&a.Causes[i], p.told(a))
	}
	if len(a.Parts) > 0 && len(a.Causes) > 0 {
		p.line("")
	}
	p.attachedParts(a, level)
	for _, n := range a.Notes {
		p.par("  ", n)
	}
	p.attachedUnknown(a)
	p.attachedNext(a)
}

// told lists the sentences that the parts below the causes say: proof need not say them again.
func (p *page) told(a *Attached) (said []string) {
	for i := range a.Parts {
		if len(a.Parts) <= p.most(fullParts) {
			said = append(said, a.Parts[i].Figures[:min(len(a.Parts[i].Figures), p.most(maxFigures))]...)
		}
	}
	return said
}

func (p *page) attachedCause(c *AttachedCause, told []string) {
	label := c.label()
	indent := "  "
	if c.BecauseOf != "" {
		indent = "    "
	}
	p.painted(indent+label, indent+p.paint(bold, label), "", len(indent)+2, c.says(), shortenWords)
	if from := c.places(); from != "" {
		p.par(indent+"  in ", from)
	}
	n := 0
	for _, s := range c.Proof {
		if n == p.most(maxProof) {
			break
		}
		if !among(told, s) {
			p.par(indent+"  - ", s)
			n++
		}
	}
	if c.Remedy != "" && c.Grade == GradeFound {
		p.par(indent+"  do: ", c.Remedy)
	}
}

func among(said []string, sentence string) bool {
	for _, s := range said {
		if s == sentence {
			return true
		}
	}
	return false
}

// inFull reports whether a part is told in full at a level.
func (t *AttachedPart) inFull(level, parts int) bool {
	switch {
	case parts == 1 || level == 0:
		return true
	case level == 1:
		return t.State != AttachedHealthy && t.State != AttachedContext
	case level == 2:
		return t.State == AttachedIll
	}
	return false
}

func (p *page) attachedParts(a *Attached, level int) {
	full, short, left := 0, 0, 0
	for i := range a.Parts {
		t := &a.Parts[i]
		switch {
		case full < p.most(fullParts) && t.inFull(level, len(a.Parts)):
			full++
			p.attachedPart(a, t)
		case short < p.most(shortParts):
			short++
			p.par("  "+t.place()+"  ", t.Title+": "+t.State)
		default:
			left++
		}
	}
	if left > 0 {
		p.line("  and %s: -v tells all", plural(int64(left), "more part", "more parts"))
	}
}

func (p *page) attachedPart(a *Attached, t *AttachedPart) {
	head := t.Title
	if len(a.Parts) > 1 {
		head += "  [" + t.State + "]"
	}
	label := t.place() + "  "
	p.painted("  "+label, "  "+p.paint(dim, label), bold, 4, head, shortenWords)
	for i, s := range t.Figures {
		if i == p.most(maxFigures) {
			break
		}
		p.par("    - ", s)
	}
	if t.Means != "" {
		p.par("    ", sentence(t.Means))
	}
	if t.Not != "" {
		p.par("    It does not say: ", sentence(t.Not))
	}
	for i, s := range t.Flaws {
		if i == p.most(maxFlaws) {
			p.line("    and %d more flaws", len(t.Flaws)-i)
			break
		}
		p.par("    not read: ", s)
	}
}

func (p *page) attachedUnknown(a *Attached) {
	n := 0
	for _, u := range a.Unknown {
		if u.Is != "" {
			continue
		}
		if n++; n > p.most(maxUnknown) {
			continue
		}
		s := "not known"
		if u.Guess != "" {
			s += ", nearest to " + u.Guess
		}
		p.par("  "+u.place()+"  ", s)
	}
	if n > p.most(maxUnknown) {
		p.line("  and %d more ranges that are not known", n-maxUnknown)
	}
	if aside := a.aside(); aside != "" {
		p.par("  set aside: ", aside)
	}
}

// aside says where what is no output stands: source code, a configuration, versions. What a person
// wrote is named only where nothing else is known.
func (a *Attached) aside() string {
	places := map[string][]string{}
	var sorts []string
	for _, u := range a.Unknown {
		if u.Is == "" || (u.Words || u.Beside) && len(a.Parts) > 0 {
			continue
		}
		if places[u.Is] == nil {
			sorts = append(sorts, u.Is)
		}
		places[u.Is] = append(places[u.Is], u.lines())
	}
	var out []string
	for _, s := range sorts {
		l := places[s]
		text := s + " " + strings.Join(l[:min(len(l), maxPlaces)], ", ")
		if more := len(l) - maxPlaces; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func (p *page) attachedNext(a *Attached) {
	for i, n := range a.Next {
		if i == p.most(maxNext) {
			break
		}
		if i == 0 {
			p.line("")
		}
		p.command("NEXT  ", n.Command)
		p.par("      ", n.Why)
	}
}

// inputErrors names the files that could not be used.
func (p *page) inputErrors(r *Report) {
	for _, in := range r.Inputs {
		if in.Error != "" {
			p.par("  ", in.Error)
		}
	}
}

// title says what was attached, in one line.
func (a *Attached) title() string {
	var files []string
	seen := map[string]bool{}
	for _, t := range a.Parts {
		if !seen[t.File] {
			seen[t.File] = true
			files = append(files, t.File)
		}
	}
	for _, u := range a.Unknown {
		if !seen[u.File] {
			seen[u.File] = true
			files = append(files, u.File)
		}
	}
	var name string
	switch len(files) {
	case 0:
		name = "nothing to read"
	case 1:
		name = middle(path.Base(files[0]), maxTarget)
	default:
		name = fmt.Sprintf("%d files", len(files))
	}
	switch len(a.Parts) {
	case 0:
		return name + ", of no kind that is known"
	case 1:
		return name + ", " + a.Parts[0].Kind
	}
	return fmt.Sprintf("%s, %d parts", name, len(a.Parts))
}

// headline is the answer in a few words, and how it is painted.
func (a *Attached) headline() (title, style string) {
	var roots, candidates, outside, risks int
	for _, c := range a.Causes {
		switch c.Grade {
		case GradeFound:
			if c.BecauseOf == "" {
				roots++
			}
		case GradeCandidate:
			candidates++
		case GradeOutside:
			outside++
		case GradeRisk:
			risks++
		}
	}
	switch {
	case roots == 1:
		return "FOUND", red
	case roots > 1:
		return fmt.Sprintf("FOUND %d CAUSES", roots), red
	case a.State == AttachedIll:
		return "SOMETHING IS WRONG", red
	case candidates == 1:
		return "CANNOT TELL: THIS CAUSE WOULD FIT", yellow
	case candidates > 1:
		return "CANNOT TELL: THESE CAUSES WOULD FIT", yellow
	case outside > 0:
		return "THE TIME IS OUTSIDE WHAT WHYSTALL CAN LOOK INTO", yellow
	case risks > 0:
		return "A RISK, AND NOTHING THAT SHOWS A LOSS", yellow
	case len(a.Parts) == 0:
		return "NOT KNOWN", yellow
	case a.State == AttachedUnsure && a.nothingOpen():
		return "NOTHING IN IT SAYS WHETHER ANYTHING IS SLOW", yellow
	case a.State == AttachedUnsure:
		return "CANNOT TELL", yellow
	}
	return "HEALTHY, AS FAR AS THIS SHOWS", green
}

// nothingOpen reports whether all outputs are known, and no command would tell more.
func (a *Attached) nothingOpen() bool {
	return len(a.Next) == 0 && !slices.ContainsFunc(a.Unknown, func(u AttachedUnknown) bool { return u.Is == "" })
}

// label names a cause and how sure it is.
func (c *AttachedCause) label() string {
	switch c.Grade {
	case GradeFound:
		return c.Cause + " (" + c.Confidence + ")  "
	case GradeOutside:
		return "outside  "
	}
	return c.Cause + " (" + c.Grade + ")  "
}

func (c *AttachedCause) says() string {
	s := c.Title
	if c.BecauseOf != "" {
		s += ", because of " + c.BecauseOf
	}
	return s
}

// places names the parts that a cause rests on, where they are several.
func (c *AttachedCause) places() string {
	if len(c.From) < 2 {
		return ""
	}
	var all []string
	for _, w := range c.From[:min(len(c.From), maxPlaces)] {
		all = append(all, w.place())
	}
	if more := len(c.From) - maxPlaces; more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return strings.Join(all, ", ")
}

// place is a range for people: "paste.txt:3-14".
func (w Where) place() string { return Printable(w.String()) }

// lines is a range without its file.
func (w Where) lines() string {
	if w.First == w.Last {
		return fmt.Sprint(w.First)
	}
	return fmt.Sprintf("%d-%d", w.First, w.Last)
}

// String is the same with a name as it came.
func (w Where) String() string {
	name := middle(path.Base(w.File), 28)
	switch w.First {
	case 0:
		return name
	case w.Last:
		return fmt.Sprintf("%s:%d", name, w.First)
	}
	return fmt.Sprintf("%s:%d-%d", name, w.First, w.Last)
}
