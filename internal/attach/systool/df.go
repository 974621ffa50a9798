package systool

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

var df = &attach.Kind{
	Name:  "df",
	Hints: []string{"Filesystem", "Use%", "Mounted on", "IUse%", "Dateisystem"},
	Claim: claimDf,
	Read:  readDf,
}

func dfHeader(f []string) bool {
	return len(f) >= 6 && (f[0] == "Filesystem" || f[0] == "Dateisystem") && slices.ContainsFunc(f, func(s string) bool {
		return s == "Use%" || s == "IUse%" || s == "Capacity" || s == "Verw%"
	})
}

func claimDf(lines []paste.Line) int {
	n := attach.ClaimWhile(lines, func(at int, text string) bool {
		f := fields(text)
		if dfHeader(f) {
			return true
		}
		_, share := dfRow(f)
		// A long name of a device has a line of its own.
		return at > 0 && (share || len(f) == 1 && strings.ContainsAny(text, "/:"))
	})
	if n == 0 || !dfHeader(fields(lines[0].Text)) {
		return 0
	}
	return n
}

// dfRow is the share used of one file system; false: not a row.
func dfRow(f []string) (share float64, ok bool) {
	for i, c := range f {
		if strings.HasSuffix(c, "%") && i >= 3 && i+1 < len(f) {
			return number(c)
		}
		if c == "-" && i >= 4 && i+1 < len(f) {
			return 0, true
		}
	}
	return 0, false
}

func readDf(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "df"
	full, most, where := 0, -1.0, ""
	for _, l := range p.Lines {
		f := fields(l.Text)
		share, ok := dfRow(f)
		if !ok || strings.HasPrefix(f[0], "/dev/loop") || dfHeader(f) {
			continue
		}
		if share >= 99 {
			full++
		}
		if share > most {
			most, where = share, f[len(f)-1]
		}
	}
	if most >= 0 {
		v.figure("%s is the fullest: %s %% used", where, plain(most))
	}
	if full > 0 {
		v.unsure = true
		v.figure("%s full", attach.Plural(full, "file system"))
		v.means("%s is full: writes there fail, which is an error and not a wait", where)
	}
	v.means("no file system is full: it says nothing of slowness")
	if !slices.ContainsFunc(p.Lines, func(l paste.Line) bool { return strings.Contains(l.Text, "IUse%") }) {
		v.not("how full they were before, nor whether inodes are left: df -i says that")
	}
	return v.done()
}
