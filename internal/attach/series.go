package attach

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// A link says how a part stands to an earlier one of its kind.
type link struct {
	first, later *Part
	order        order
	why          string `prose:"yes"` // they are two places
}

// order is what is known of two parts of a kind.
type order int

const (
	untold  order = iota // nothing tells whether they are of one place, before and after
	places               // they are of two places
	sequent              // they are of one place, and the later one was taken after the first
)

// mostBack bounds how many parts of its kind a part is held against: an archive may have thousands.
const mostBack = 32

// series joins parts of one kind that are samples of one place in order, where the kind can compare
// samples. Of others it says how they stand to each other.
func series(parts []*Part) (out []*Part, links []link) {
	of := map[*Kind][]*Part{}
	for _, p := range parts {
		first := earlier(of[p.Kind], p)
		if first != nil && p.Kind.Read != nil && !p.Kind.Reports {
			l := relate(first, p)
			goesOn := p.Kind.Session != nil && p.Kind.Session(first.Command, p.Command)
			if l.order != places && !p.Kind.Scattered && inOrder(first, p) &&
				(goesOn || p.Kind.Joins && l.order == sequent) {
				first.Lines = append(first.Lines, p.Lines...)
				first.Command += "; " + p.Slept + "; " + p.Command // it may say how long it slept before
				continue
			}
			if p.Kind.Rest == nil || !p.Kind.Rest(first, p) {
				links = append(links, l)
			}
		}
		out = append(out, p)
		of[p.Kind] = append(of[p.Kind], p)
	}
	return out, links
}

// earlier is the part that another of its kind may go on with: the last one of its place, or else
// the last one. Nil: there is none but those that show another file of one folder.
func earlier(parts []*Part, p *Part) (other *Part) {
	for i := len(parts) - 1; i >= max(0, len(parts)-mostBack); i-- {
		if siblings(parts[i], p) {
			continue
		}
		if two, _ := apart(parts[i], p); !two {
			return parts[i]
		}
		if other == nil {
			other = parts[i]
		}
	}
	return other
}

func relate(first, later *Part) link {
	l := link{first: first, later: later}
	two, why := apart(first, later)
	switch {
	case two:
		l.order, l.why = places, why
	case inOrder(first, later) && alike(first.Command, later.Command):
		l.order = sequent
	}
	return l
}

// apart reports whether two parts are of two places, and by what.
func apart(a, b *Part) (bool, string) {
	switch {
	case otherHost(a.Host, b.Host):
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
	case says(a.Title, "after") && says(b.Title, "before"):
		return false
	case !ta.IsZero() && !tb.IsZero():
		return !tb.Before(ta)
	case a.File == b.File && a.Command != "" && b.Command != "":
		return true
	}
	return says(a.Title, "before") && says(b.Title, "after")
}

// alike reports whether two commands look at one thing: they name the same. "docker exec A cat F"
// is neither "docker exec B cat F" nor "cat F", and "sar -f F" is of another day than "sar". A
// command that is not known may be either.
func alike(a, b string) bool {
	return a == "" || b == "" || slices.Equal(targets(a), targets(b))
}

// leastPID is how many digits a number has that may be a process, and no interval.
const leastPID = 3

// wrappers run another command; their options and intervals stand before it.
var wrappers = []string{"sudo", "watch", "time"}

// targets are the words of a command that may say what it looks at, each once and sorted. Tools,
// options, filters and small numbers do not.
func targets(command string) (out []string) {
	for _, one := range unquoted(strings.ReplaceAll(command, "&&", ";"), ';') {
		words := slices.DeleteFunc(unquoted(unquoted(one, '|')[0], ' '), func(w string) bool { return w == "" })
		for len(words) > 0 && (slices.Contains(wrappers, words[0]) || words[0][0] == '-' || words[0][0] >= '0' && words[0][0] <= '9') {
			words = words[1:]
		}
		if len(words) == 0 || words[0] == "sleep" {
			continue
		}
		tool, named := words[0], []string(nil)
		for _, w := range words[1:] {
			number := strings.Trim(w, "0123456789.") == ""
			if !strings.HasPrefix(w, "-") && (!number || len(w) >= leastPID) {
				named = append(named, w)
			}
		}
		if strings.HasSuffix(tool, "grep") && len(named) > 0 {
			named = named[1:] // the pattern
		}
		out = append(out, named...)
	}
	slices.Sort(out)
	return slices.Compact(out)
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
