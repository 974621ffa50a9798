package goruntime

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// pprofTags is go tool pprof -tags: how the samples divide by their labels.
var pprofTags = &attach.Kind{
	Name:  "pprof -tags",
	Hints: []string{": Total "},
	Claim: func(lines []paste.Line) int {
		if !tagHead.MatchString(strings.TrimSpace(lines[0].Text)) {
			return 0
		}
		n, rows := 1, 0
		for i, l := range lines[1:] {
			t := strings.TrimSpace(l.Text)
			switch {
			case l.Command != "":
				return tagsOwn(n, rows)
			case t == "":
				continue
			case tagRow.MatchString(t):
				rows++
			case !tagHead.MatchString(t):
				return tagsOwn(n, rows)
			}
			n = i + 2
		}
		return tagsOwn(n, rows)
	},
	Read: func(p *attach.Part) attach.Reading {
		r := attach.Reading{State: attach.CannotTell}
		tags, tag := 0, ""
		for _, l := range p.Lines {
			t := strings.TrimSpace(l.Text)
			if m := tagHead.FindStringSubmatch(t); m != nil {
				tags++
				tag = m[1]
				continue
			}
			if m := tagRow.FindStringSubmatch(t); m != nil && tag != "" && len(r.Figures) < 3 {
				r.Figures = append(r.Figures, fmt.Sprintf("%s: most is %s, %s (%s)", tag, m[3], m[1], m[2]))
				tag = ""
			}
		}
		r.Title = "pprof -tags, " + attach.Plural(tags, "label")
		r.Means = "It says how the samples of a profile divide by label; what they are of, and whether time was lost, is not in it."
		r.Next = []attach.Next{{Command: "go tool pprof -top -tagfocus LABEL PROFILE",
			Why: "which functions the samples with one label are in"}}
		return r
	},
}

func tagsOwn(n, rows int) int {
	return attach.ClaimIf(rows > 0, n)
}

var (
	tagHead = pattern.New(`^([\w./-]{1,60}): Total ([\d.]+)([a-zA-Zµ]*)(?: of [\d.]+[a-zA-Zµ]* \( *[\d.]+%\))?$`)
	tagRow  = pattern.New(`^([\d.]+[a-zA-Zµ]*) \( ?([\d.]+%)\): (.*)$`)
)
