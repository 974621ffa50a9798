package paste

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// remark is what a person wrote behind a tool's line: "<-- here", "# 1 runnable of 93".
var remark = pattern.New(`\s*<-+ .*$|\s+(?:<[-=<]+|←|⇐|<<+|#+ |//+ |\(!+\)|/\*).*$`)

// leftOut is a remark that stands for lines which the person left out.
var leftOut = pattern.New(`^\s*(?:#|//|;|\*)?\s*(?:\[ ?(?:\.\.\.|…) ?\]|\.\.\.|…|<\s*(?:snip|snipped|cut|truncated|omitted)\s*>|\[(?:snip|snipped|cut|truncated|omitted)\])\s*$`)

// unremarked is the lines without remarks behind a few of them; nil where there is none, or where
// so many lines have one that it is the tool's own.
func unremarked(lines []Line) []Line {
	var out []Line
	with, all := 0, 0
	for i, l := range lines {
		if l.Text == "" || l.Command != "" {
			continue
		}
		all++
		at := remark.FindStringIndex(l.Text)
		left := leftOut.MatchString(l.Text)
		if at == nil && !left || at != nil && strings.TrimSpace(l.Text[:at[0]]) == "" && !left {
			continue
		}
		if with++; out == nil {
			out = slices.Clone(lines)
		}
		if left {
			out[i].Text, out[i].Elided = "", true
		} else {
			out[i].Text = l.Text[:at[0]]
		}
	}
	if with == 0 || with > 3 && with*2 > all {
		return nil
	}
	return out
}
