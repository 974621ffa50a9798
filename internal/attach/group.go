package attach

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// group gives parts of one process and moment the same number. A part that names nobody belongs to
// the first group: people attach what belongs together.
func (a *Answer) group() {
	var groups [][]*Told
	for _, t := range a.Told {
		at := slices.IndexFunc(groups, func(g []*Told) bool {
			return !slices.ContainsFunc(g, func(o *Told) bool { return elsewhere(t, o) })
		})
		if at < 0 {
			at = len(groups)
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], t)
		t.Group = at + 1
	}
}

// elsewhere reports whether two parts are for sure not of one process and moment: they name
// different hosts, processes or cgroups, or they are two samples of one kind.
func elsewhere(t, o *Told) bool {
	return differ(t.Who.Host, o.Who.Host) || t.Who.PID != 0 && o.Who.PID != 0 && t.Who.PID != o.Who.PID ||
		differ(t.Who.Cgroup, o.Who.Cgroup) || t.Part.Kind == o.Part.Kind &&
		!t.Part.Kind.Scattered && !siblings(t.Part, o.Part)
}

// siblings reports whether two parts show different files of one folder, or of the host's settings:
// neither two samples of one file, nor one file of two places.
func siblings(a, b *Part) bool {
	const settings = "/proc/sys/"
	return a.Path != "" && b.Path != "" && path.Base(a.Path) != path.Base(b.Path) &&
		(path.Dir(a.Path) == path.Dir(b.Path) || strings.HasPrefix(a.Path, settings) &&
			strings.HasPrefix(b.Path, settings))
}

func differ(a, b string) bool { return a != "" && b != "" && a != b }

// series joins parts of one kind that are samples of one place in order, where the kind can compare
// samples. What cannot be told is said, and stays apart.
func series(parts []*Part) (out []*Part, notes []string) {
	noted := map[*Kind]bool{}
	for _, p := range parts {
		var last *Part
		for _, o := range out {
			if o.Kind == p.Kind {
				last = o
			}
		}
		if last == nil || p.Kind.Read == nil || p.Kind.Scattered || p.Kind.Reports || siblings(last, p) {
			out = append(out, p)
			continue
		}
		places, why := apart(last, p)
		text := ""
		switch {
		case places:
			text = fmt.Sprintf("%s: %s and %s are two places (%s): side by side, without rates",
				p.Kind.Name, last.where(), p.where(), why)
		case !inOrder(last, p):
			text = fmt.Sprintf("%s: nothing tells whether %s and %s are one place before and after, so no rate is made of them", p.Kind.Name, last.where(), p.where())
		case p.Kind.Joins, p.Kind.Session != nil && p.Kind.Session(last.Command, p.Command):
			last.Lines = append(last.Lines, p.Lines...)
			last.Command += "; " + p.Slept + "; " + p.Command // it may say how long it slept before
			continue
		}
		if text != "" && !noted[p.Kind] {
			noted[p.Kind] = true // of many places one note is enough
			notes = append(notes, text)
		}
		out = append(out, p)
	}
	return out, notes
}

// apart reports whether two parts are of two places, and by what.
func apart(a, b *Part) (bool, string) {
	switch {
	case differ(a.Host, b.Host):
		return true, "hosts " + a.Host + " and " + b.Host
	case a.PID != 0 && b.PID != 0 && a.PID != b.PID:
		return true, fmt.Sprintf("pids %d and %d", a.PID, b.PID)
	case differ(a.Path, b.Path):
		return true, a.Path + " and " + b.Path
	case differ(a.Lines[0].Source, b.Lines[0].Source):
		return true, a.Lines[0].Source + " and " + b.Lines[0].Source
	}
	return false, ""
}

// inOrder reports whether b was certainly taken after a: both follow prompts of one paste, or have
// times, or a person says so above them.
func inOrder(a, b *Part) bool {
	ta, tb := a.taken(), b.taken()
	switch {
	case !ta.IsZero() && !tb.IsZero():
		return !tb.Before(ta)
	case a.File == b.File && a.Command != "" && b.Command != "":
		return true
	}
	return says(a.Title, "before") && says(b.Title, "after")
}

// taken is when a part was taken; zero: nothing says so.
func (p *Part) taken() time.Time {
	if p.Kind.When != nil {
		if t := p.Kind.When(p); !t.IsZero() {
			return t
		}
	}
	return p.Lines[0].Time
}

// says reports whether what a person wrote has a word.
func says(title, word string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(title),
		func(r rune) bool { return r < 'a' || r > 'z' }), func(w string) bool { return w == word })
}

// where says where a part stands, for people.
func (p *Part) where() string {
	name := path.Base(p.File)
	if p.File == "" {
		name = "lines"
	}
	return fmt.Sprintf("%s %d-%d", name, p.First(), p.Last())
}
