package goruntime

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// race is a report of Go's race detector. It is no dump: its stacks are of the past.
var race = &attach.Kind{
	Name:    "data race report",
	Hints:   []string{"DATA RACE", "==================", " by goroutine ", " by Goroutine ", " by main goroutine"},
	Claim:   claimRace,
	Reports: true,
	Read:    readRace,
}

// raceAccess parses "Previous write at 0x00c000014088 by goroutine 7:"; before Go 1.8 no address
// was printed.
var raceAccess = pattern.New(`(?i)^(previous )?(atomic )?(read|write)( at 0x[0-9a-f]+)? by ((?:main |finalizer )?goroutine(?: \d+)?)`)

var raceCreated = pattern.New(`(?i)^goroutine \d+ \((running|finished)\) created at:`)

// access is one side of a race.
type access struct {
	what, who string
	before    bool
	lost      bool // the detector has its stack no more
	frames    []raceFrame
}

type raceFrame struct {
	frame
	path string
}

// raceLine says what a line of a report is.
type raceLine int

const (
	raceNone raceLine = iota
	raceHead          // WARNING: DATA RACE
	raceSide          // who read or wrote
	raceMade          // who started a goroutine
	raceCall
	racePlace
	raceRest
)

func raceLineOf(text string) raceLine {
	t := strings.TrimSpace(text)
	switch {
	case strings.Contains(t, "WARNING: DATA RACE"):
		return raceHead
	case raceAccess.MatchString(t):
		return raceSide
	case raceCreated.MatchString(t):
		return raceMade
	case t == "", strings.HasPrefix(t, "==================") && strings.Trim(t, "=") == "",
		strings.HasPrefix(t, "Found ") && strings.HasSuffix(t, " data race(s)"), t == "exit status 66",
		strings.HasSuffix(t, "race detected during execution of test"),
		strings.HasPrefix(t, "[failed to restore the stack]"):
		return raceRest
	case strings.HasSuffix(t, "()") && len(t) < 1024:
		return raceCall
	}
	if _, ok := parsePlace(t); ok {
		return racePlace
	}
	if _, _, ok := parseCall(t); ok {
		return raceCall
	}
	return raceNone
}

// raceGap is how many lines of the program's own output may stand in a report.
const raceGap = 3

func claimRace(lines []paste.Line) int {
	head := 0 // before the warning stand a rule and what the program itself prints
	for head < min(len(lines), raceGap) && raceLineOf(lines[head].Text) != raceHead {
		head++
	}
	switch first := raceLineOf(lines[0].Text); {
	case first == raceSide:
	case head == min(len(lines), raceGap) || head > 0 && first != raceRest:
		return 0
	}
	end, other, sides := 0, 0, 0
	for i, line := range lines {
		what := raceLineOf(line.Text)
		if line.Command != "" {
			break
		}
		if what == raceNone {
			if other++; other > raceGap {
				break
			}
			continue
		}
		if what == raceSide {
			sides++
		}
		if strings.TrimSpace(line.Text) != "" {
			other = 0
			end = i + 1
		}
	}
	return attach.ClaimIf(sides > 0, end)
}

func readRace(p *attach.Part) attach.Reading {
	warnings := 0
	var sides []*access
	var open *access
	for _, line := range p.Lines {
		t := strings.TrimSpace(line.Text)
		switch raceLineOf(t) {
		case raceHead:
			warnings++
			open = nil
		case raceSide:
			m := raceAccess.FindStringSubmatch(t)
			open = &access{what: strings.ToLower(m[2] + m[3]), who: strings.ToLower(m[5]), before: m[1] != ""}
			sides = append(sides, open)
		case raceMade:
			open = nil
		case raceNone:
			// A screen's width may have put the goroutine's number into the next line.
			if id := strings.TrimSuffix(t, ":"); open != nil && len(open.frames) == 0 &&
				open.who == "goroutine" && digits(id) > 0 && digits(id) == len(id) {
				open.who += " " + id
			}
		case raceRest:
			if open != nil && strings.HasPrefix(t, "[failed to restore the stack]") {
				open.lost = true
			}
		case raceCall:
			if open != nil && len(open.frames) < 64 {
				open.frames = append(open.frames, raceFrame{frame: frame{fn: raceFunc(t)}})
			}
		case racePlace:
			if open != nil && len(open.frames) < 64 {
				open.place(t)
			}
		}
	}
	pairs := racePairs(sides)
	n := max(warnings, len(pairs))
	r := attach.Reading{Title: "Go's race detector, " + count(n, "data race", "data races"), State: attach.CannotTell,
		Means: "goroutines use one variable without a lock between them, and one writes: a bug that makes results wrong, and no cause of slowness",
		Not:   "that anything waited or stood still; a program with the race detector is itself 2 to 20 times slower"}
	for i, pair := range pairs {
		if i == 3 {
			r.Figures = append(r.Figures, count(len(pairs)-i, "more race", "more races"))
			break
		}
		r.Figures = append(r.Figures, pair)
	}
	return r
}

// place adds the place of a call. Where the call above has one, the line between is unreadable: its
// function is not known.
func (a *access) place(t string) {
	if n := len(a.frames); n == 0 || a.frames[n-1].at != "" {
		a.frames = append(a.frames, raceFrame{})
	}
	f := &a.frames[len(a.frames)-1]
	f.at, _ = parsePlace(t)
	f.path = t
}

func raceFunc(t string) string {
	if f, _, ok := parseCall(t); ok {
		return f.fn
	}
	return strings.TrimSuffix(t, "()")
}

// racePairs says each race in a line: a side, and the one before it.
func racePairs(sides []*access) (out []string) {
	seen := map[string]bool{}
	for i := 0; i < len(sides); i++ {
		line := sides[i].says()
		if i+1 < len(sides) && sides[i+1].before {
			line += ", against a " + sides[i+1].says() + " before"
			i++
		} else {
			line += "; the other access is not in the text"
		}
		if !seen[line] {
			seen[line] = true
			out = append(out, line)
		}
	}
	return out
}

// says writes "read by goroutine 9 in main.show (show.go:31), through fmt.Printf".
func (a *access) says() string {
	text := a.what + " by " + a.who
	for i, f := range a.frames {
		if f.standard() && i+1 < len(a.frames) {
			continue
		}
		if f.fn == "" {
			return text + " at " + f.at
		}
		text += " in " + f.fn + at(f.at)
		if i > 0 && a.frames[i-1].fn != "" {
			text += ", through " + a.frames[i-1].fn
		}
		return text
	}
	if a.lost {
		text += " (its stack is lost)"
	}
	return text
}

// standard reports whether a function is of Go's own library, by where its source lies.
func (f raceFrame) standard() bool {
	pkg := f.fn
	slash := strings.LastIndexByte(pkg, '/') + 1
	if dot := strings.IndexByte(pkg[slash:], '.'); dot >= 0 {
		pkg = pkg[:slash+dot]
	}
	first, _, _ := strings.Cut(pkg, "/")
	path := strings.ToLower(strings.ReplaceAll(f.path, `\`, "/"))
	_, below, ok := strings.Cut(path, "/src/")
	below = strings.TrimPrefix(below, "pkg/")
	return pkg != "main" && !strings.Contains(first, ".") && ok &&
		strings.HasPrefix(below, strings.ToLower(pkg)+"/") && strings.Contains(path, "go")
}
