package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// spoken is a server or a library whose own log says that it was late, in lines of fixed words.
type spoken struct {
	name  string   // of the kind
	marks []string // each line of it that starts the kind has one
	rules []late
	also  *pattern.Regexp // lines that may follow and say nothing of time; nil: none
	tell  func(r *result, s *saidLate)
}

// late is one line that says how long something took.
type late struct {
	re   *pattern.Regexp // group 1 is the time, group 2 whose it was
	unit float64         // of a bare number, in seconds; 0: the time has a unit
	what string          // for a person; "": tell says it
}

// saidLate is what the lines of one part say.
type saidLate struct {
	took [][]float64          // by rule; s
	of   []map[string]float64 // by rule: how often, by whose it was
	text []string             // the lines
}

// worst is the longest time of a rule, and 0 where it has none.
func (s *saidLate) worst(rule int) float64 { return slices.Max(append(s.took[rule], 0)) }

// line sums up a rule.
func (s *saidLate) line(what string, rule int) string {
	out := what + ": " + often(s.took[rule])
	if of := s.of[rule]; len(of) > 0 {
		out += ", " + chiefly(of, "")
		if len(of) > mostTied {
			out += fmt.Sprintf(", of %d in all", len(of))
		}
	}
	return out
}

func (k *spoken) kind() *attach.Kind {
	is := func(text string) bool {
		return slices.ContainsFunc(k.rules, func(l late) bool { return l.re.MatchString(text) })
	}
	return &attach.Kind{
		Name:      k.name,
		Hints:     k.marks,
		Marks:     k.marks,
		Scattered: true,
		Single:    k.also == nil,
		Claim: func(lines []paste.Line) int {
			if !is(lines[0].Text) {
				return 0
			}
			n := 1
			for n < len(lines) && lines[n].Command == "" &&
				(is(lines[n].Text) || k.also != nil && k.also.MatchString(lines[n].Text)) {
				n++
			}
			return n
		},
		Read: k.read,
	}
}

// titles reports whether the first line is a title that quotes one of the next.
func titles(lines []paste.Line) bool {
	quoted := strings.TrimLeft(lines[0].Text, "#*> ")
	return slices.ContainsFunc(lines[1:min(len(lines), 6)],
		func(l paste.Line) bool { return len(l.Text) > len(quoted) && strings.Contains(l.Text, quoted) })
}

// mostOwners bounds whose lines are told apart.
const mostOwners = 1000

func (k *spoken) read(p *attach.Part) attach.Reading {
	s := &saidLate{took: make([][]float64, len(k.rules)), of: make([]map[string]float64, len(k.rules))}
	for at, l := range p.Lines {
		if at == 0 && titles(p.Lines) {
			continue
		}
		s.text = append(s.text, l.Text)
		for i, rule := range k.rules {
			m := rule.re.FindStringSubmatch(l.Text)
			if m == nil {
				continue
			}
			if s.of[i] == nil {
				s.of[i] = map[string]float64{}
			}
			if len(m) > 2 && m[2] != "" && len(s.of[i]) < mostOwners {
				s.of[i][m[2]]++
			}
			if len(m) < 2 {
				break
			}
			v, ok := seconds(m[1])
			if rule.unit > 0 {
				v, ok = number(strings.Replace(m[1], ",", ".", 1))
				v *= rule.unit
			}
			if ok {
				s.took[i] = append(s.took[i], v)
			}
			break
		}
	}
	r := &result{}
	r.Title = k.name + ", " + attach.Plural(len(s.text), "line")
	for i, rule := range k.rules {
		if rule.what != "" && len(s.took[i]) > 0 {
			r.figure(s.line(rule.what, i))
		}
	}
	k.tell(r, s)
	return r.done(attach.CannotTell)
}
