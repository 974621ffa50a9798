package attach

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
)

// Own gives a part memory of its own. The text that it was cut from, and all lines of that, need
// not be held for it then: an archive may have thousands of files with a part each.
func (p *Part) Own() {
	var all strings.Builder
	for _, l := range p.Lines {
		all.WriteString(l.Raw)
		if !strings.Contains(l.Raw, l.Text) {
			all.WriteString(l.Text)
		}
	}
	rest, seen := all.String(), map[string]string{}
	own := func(s *string) { // of few words that stand in many lines
		if v, ok := seen[*s]; ok {
			*s = v
			return
		}
		v := strings.Clone(*s)
		seen[v], *s = v, v
	}
	p.Lines, p.own = slices.Clone(p.Lines), true
	for i := range p.Lines {
		l := &p.Lines[i]
		rest = ownText(l, rest)
		for _, s := range []*string{&l.Command, &l.Host, &l.Path, &l.Source} {
			own(s)
		}
	}
	for _, s := range []*string{&p.Command, &p.Prompt, &p.Script, &p.Slept, &p.Title, &p.Host, &p.Path, &p.Session} {
		own(s)
	}
}

// ownText points a line into a text that starts with what it says. It returns what follows.
func ownText(l *paste.Line, text string) (rest string) {
	raw, n := len(l.Raw), len(l.Text)
	in := strings.Index(l.Raw, l.Text)
	l.Raw, rest = text[:raw], text[raw:]
	if in >= 0 {
		l.Text = l.Raw[in : in+n]
		return rest
	}
	l.Text = rest[:n]
	return rest[n:]
}
