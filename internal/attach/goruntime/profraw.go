package goruntime

import (
	"fmt"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format"
	"github.com/whystall/whystall/internal/format/paste"
)

// pprofRaw is what go tool pprof -raw prints: all stacks by the numbers of their places, then the
// places, then the files.
var pprofRaw = &attach.Kind{
	Name:  "pprof -raw",
	Hints: []string{"PeriodType: ", "Samples:"},
	Claim: claimRaw,
	Read: func(p *attach.Part) attach.Reading {
		raw, flaws := parseRaw(p.Lines)
		r, err := readRaw(p.Title, raw, "go tool pprof -raw")
		if err != nil {
			r = attach.Reading{Title: "profile (go tool pprof -raw)", State: attach.CannotTell,
				Figures: []string{fmt.Sprintf("%s of %s", count(len(raw.Stacks), "stack", "stacks"),
					strings.Join(raw.Types, ", "))},
				Means: "what it counts is none of what the Go runtime's profiles count, so nothing follows for latency"}
		}
		r.Flaws = append(r.Flaws, flaws...)
		return r
	},
}

// claimRaw wants the heading of the samples with their types below it.
func claimRaw(lines []paste.Line) int {
	i := 0
	for i < len(lines) && i < 16 && lines[i].Command == "" && !isTypes(lines, i) {
		if key, _, ok := strings.Cut(lines[i].Text, ": "); !ok || !rawHeads[strings.TrimSpace(key)] {
			return 0
		}
		i++
	}
	if i >= len(lines) || !isTypes(lines, i) {
		return 0
	}
	for i += 2; i < len(lines) && lines[i].Command == "" && rawLine(strings.TrimSpace(lines[i].Text)); i++ {
	}
	return i
}

var rawHeads = map[string]bool{"PeriodType": true, "Period": true, "Time": true, "Duration": true,
	"Comment": true, "Doc": true}

func isTypes(lines []paste.Line, i int) bool {
	return strings.TrimSpace(lines[i].Text) == "Samples:" && i+1 < len(lines) && len(rawTypes(lines[i+1].Text)) > 0
}

// rawTypes parses "samples/count cpu/nanoseconds[dflt]"; nil: it is no such line.
func rawTypes(s string) (types []string) {
	for _, f := range strings.Fields(s) {
		f = strings.TrimSuffix(f, "[dflt]")
		if strings.Count(f, "/") != 1 || strings.Trim(f, "abcdefghijklmnopqrstuvwxyz_/") != "" || len(types) >= 16 {
			return nil
		}
		types = append(types, f)
	}
	return types
}

// rawLine knows a sample, a label, a place, a file, or a heading.
func rawLine(t string) bool {
	if t == "" || t == "Locations" || t == "Mappings" {
		return true
	}
	if strings.Contains(t, ":[") || strings.Contains(t, " s=") || strings.HasPrefix(t, "M=") {
		return true
	}
	head, _, ok := strings.Cut(t, ":")
	return ok && strings.Trim(head, "0123456789- ") == ""
}

// parseRaw reads the stacks with the names of their places, which stand below them.
func parseRaw(lines []paste.Line) (p *format.Profile, flaws []string) {
	p = &format.Profile{}
	names := map[string][]string{} // of a place, innermost first
	var stacks [][]string          // numbers of places
	section, last, bare := "", "", false
	for i, line := range lines {
		t := strings.TrimSpace(line.Text)
		switch {
		case t == "Samples:" && i+1 < len(lines):
			p.Types, section = rawTypes(lines[i+1].Text), t
		case t == "Locations", t == "Mappings":
			section = t
		case section == "":
			if d, ok := strings.CutPrefix(t, "Duration: "); ok {
				p.DurationNS, bare = rawDuration(d)
			}
		case section == "Samples:":
			values, where, ok := rawSample(t, len(p.Types))
			if ok && len(stacks) < maxStacks {
				stacks = append(stacks, where)
				p.Stacks = append(p.Stacks, format.ProfileStack{Values: values})
			}
		case section == "Locations":
			last = rawPlace(t, last, names)
		}
	}
	if bare {
		checkBare(p)
	}
	missing := 0
	for i, where := range stacks {
		for _, id := range where[:min(len(where), 256)] {
			if len(names[id]) == 0 {
				missing++
				p.Stacks[i].Funcs = append(p.Stacks[i].Funcs, "?")
			}
			p.Stacks[i].Funcs = append(p.Stacks[i].Funcs, names[id]...)
		}
	}
	if missing > 0 {
		flaws = append(flaws, fmt.Sprintf("%s of stacks without a line of their own: the end is cut off", count(missing, "place", "places")))
	}
	return p, flaws
}

// rawDuration parses a duration of which pprof prints four characters, so that its unit may be
// gone: "3.13", "150m" of 150.2ms. A number alone is taken as seconds, and is bare.
func rawDuration(s string) (ns int64, bare bool) {
	s = strings.ReplaceAll(s, " ", "")
	number := strings.Trim(s, "0123456789.") == ""
	for _, unit := range []string{"s", ""} {
		if v, err := time.ParseDuration(s + unit); err == nil {
			return max(0, v.Nanoseconds()), number
		}
	}
	return 0, false
}

// sureCPUs is how many CPUs a process would have used for all of a duration that is in ms, where it
// is in seconds.
const sureCPUs = 16

// checkBare drops a duration without its unit that could be one of ms as well.
func checkBare(p *format.Profile) {
	sum := 0.0
	for _, s := range p.Stacks {
		if n := len(s.Values); n > 0 {
			sum += float64(s.Values[n-1])
		}
	}
	if sum < sureCPUs*float64(p.DurationNS)/1e3 {
		p.DurationNS = 0
	}
}

// rawSample parses "1   10000000: 1 2 3 4".
func rawSample(t string, n int) (values []int64, where []string, ok bool) {
	head, rest, ok := strings.Cut(t, ":")
	f := strings.Fields(head)
	if !ok || len(f) != n {
		return nil, nil, false
	}
	for _, w := range f {
		v, isNumber := number(w)
		if !isNumber {
			return nil, nil, false
		}
		values = append(values, int64(v))
	}
	return values, strings.Fields(rest), true
}

// rawPlace parses "12: 0x430bac M=1 main.work /src/main.go:12:0 s=10", and the lines below it of
// the functions that it was inlined into. It returns the number of the place.
func rawPlace(t, last string, names map[string][]string) string {
	id, rest, ok := strings.Cut(t, ": ")
	f := strings.Fields(rest)
	if !ok || digits(id) != len(id) || len(f) == 0 || !strings.HasPrefix(f[0], "0x") {
		if f := strings.Fields(t); last != "" && len(f) >= 2 && strings.Contains(t, " s=") && len(names[last]) < 64 {
			names[last] = append(names[last], f[0])
		}
		return last
	}
	name := f[0] // its address
	for _, w := range f[1:] {
		if !strings.HasPrefix(w, "M=") && !strings.HasPrefix(w, "[") {
			name = w
			break
		}
	}
	if len(names) < maxStacks {
		names[id] = []string{name}
	}
	return id
}
