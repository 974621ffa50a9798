package systool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

var df = &attach.Kind{
	Name:  "df",
	Hints: append([]string{"Filesystem", "Use%", "Mounted on", "IUse%", "Dateisystem"}, dfShares...),
	Claim: claimDf,
	Read:  readDf,
}

// dfShares are names of the share used in languages whose other names differ as well.
var dfShares = []string{"Uso%", "Uti%", "已用%", "使用%", "Использовано%"}

func dfHeader(f []string) bool {
	if len(f) >= 6 && !figures(f) && slices.ContainsFunc(f, func(s string) bool { return slices.Contains(dfShares, s) }) {
		return true
	}
	return len(f) >= 6 && (f[0] == "Filesystem" || f[0] == "Dateisystem") &&
		slices.ContainsFunc(f, func(s string) bool {
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

// dfLeft is what is left in a file system, as df wrote it: the cell before the share used.
func dfLeft(f []string) string {
	for i, c := range f {
		if strings.HasSuffix(c, "%") && i >= 3 {
			return f[i-1]
		}
	}
	return ""
}

// readOnly reports whether a row is of an image or a disc, which is always full.
func readOnly(f []string) bool {
	return slices.ContainsFunc([]string{"/dev/loop", "/dev/sr", "/dev/cdrom"}, func(s string) bool { return strings.HasPrefix(f[0], s) }) ||
		slices.Contains(f, "squashfs") || slices.Contains(f, "iso9660")
}

func readDf(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "df"
	if slices.ContainsFunc(p.Lines, func(l paste.Line) bool { return inodeHeader(fields(l.Text)) }) {
		v.Title = "df -i"
		dfInodes(v, p.Lines)
		return v.done()
	}
	full, most, where, left := 0, -1.0, "", ""
	for _, l := range p.Lines {
		f := fields(l.Text)
		share, ok := dfRow(f)
		if !ok || readOnly(f) || dfHeader(f) {
			continue
		}
		none := dfLeft(f) == "0"
		if none {
			full++
		}
		if share > most || share == most && none {
			most, where, left = share, f[len(f)-1], dfLeft(f)
		}
	}
	if most >= 0 {
		v.figure("%s is the fullest: %s %% used", where, plain(most))
	}
	switch {
	case full > 0:
		v.unsure = true
		v.figure("%s full", attach.Plural(full, "file system"))
		v.means("%s is full: writes there fail, which is an error and not a wait", where)
	case most >= 99:
		v.unsure = true
		v.means("%s is nearly full, with %s left: writes there do not fail yet", where, left)
	}
	v.means("no file system is full: it says nothing of slowness")
	if !slices.ContainsFunc(p.Lines, func(l paste.Line) bool { return strings.Contains(l.Text, "IUse%") }) {
		v.not("how full they were before, nor whether inodes are left: df -i says that")
	}
	return v.done()
}

// inodeHeader reports whether df counts inodes and not space.
func inodeHeader(f []string) bool {
	return dfHeader(f) && slices.Contains(f, "IUsed") && slices.Contains(f, "IFree")
}

// dfInodes says how many inodes are left. df rounds their share up, so it is worked out anew.
func dfInodes(v *verdict, lines []paste.Line) {
	var names []string
	most, where, text, full := -1.0, "", "", 0
	for _, l := range lines {
		f := fields(l.Text)
		if dfHeader(f) {
			names = f
			continue
		}
		at := slices.Index(names, "Inodes")
		back := len(names) - 1 - at // the last name is two words, the last cell one
		if i := len(f) - back; at >= 0 && i >= 0 && i+2 < len(f) && inodeHeader(names) &&
			!strings.HasPrefix(f[0], "/dev/loop") {
			all, ok := whole(f[i])
			used, ok2 := whole(f[i+1])
			free, ok3 := whole(f[i+2])
			if !ok || !ok2 || !ok3 || all <= 0 || used < 0 || free < 0 {
				continue
			}
			if free == 0 {
				full++
			}
			if share := float64(used) / float64(all); share > most {
				most, where = share, f[len(f)-1]
				text = fmt.Sprintf("%s has used most of its inodes: %s %% (%d of %d, %d left)",
					where, plain(100*share), used, all, free)
			}
		}
	}
	switch {
	case most < 0:
		v.unsure = true
		v.means("no row has all figures of inodes")
		return
	case full > 0:
		v.unsure = true
		v.means("%s without a free inode: no new file can be made there, which is an error and not a wait", attach.Plural(full, "file system"))
	case most >= 0.95:
		v.unsure = true
		v.means("%s has few inodes left, and not none: new files can still be made, and nothing fails yet", where)
	default:
		v.means("inodes are left on each file system: it says nothing of slowness")
	}
	v.figure("%s", text)
	v.not("how much space is left: that is df -h")
}
