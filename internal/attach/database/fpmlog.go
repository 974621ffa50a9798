package database

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// fpmLog is what PHP's process manager logs of its workers: that all were busy, and that one took
// long.
var fpmLog = &attach.Kind{
	Name:      "PHP-FPM log",
	Hints:     fpmMarks,
	Marks:     fpmMarks,
	Single:    true,
	Scattered: true,
	Claim:     func(lines []paste.Line) int { return run(lines, fpmSays.MatchString) },
	Read:      readFPMLog,
}

var fpmMarks = []string{"max_children setting (", " executing too slow (", " execution timed out (",
	"] seems busy (", "failed to ptrace("}

var (
	fpmSays   = pattern.New(`(?:WARNING|ERROR|NOTICE): (?:\[pool [^\]]+\] )?(?:server reached (?:pm\.)?max_children setting|child \d+, script '|seems busy \(|failed to ptrace\()`)
	fpmFull   = pattern.New(`(?:\[pool ([^\]]+)\] )?server reached (?:pm\.)?max_children setting \((\d+)\)`)
	fpmScript = pattern.New(`child \d+, script '([^']*)'.* (executing too slow|execution timed out) \(([\d.]+) sec\)`)
	fpmAt     = pattern.New(`\[(\d{2}-[A-Z][a-z]{2}-\d{4} \d\d:\d\d:\d\d)(?:\.\d+)?\]`)
)

// fpmSaid is what the lines say.
type fpmSaid struct {
	full, busy, blind int
	limit             string
	from, to          time.Time // of those in which all workers were busy
	scripts           map[string]float64
	slow, ended       []float64 // s
}

func (s *fpmSaid) line(l paste.Line) {
	if m := fpmFull.FindStringSubmatch(l.Text); m != nil {
		s.full, s.limit = s.full+1, m[2]
		at := fpmAt.FindStringSubmatch(l.Raw + l.Text)
		if at == nil {
			return
		}
		if t, err := time.Parse("02-Jan-2006 15:04:05", at[1]); err == nil {
			if s.from.IsZero() || t.Before(s.from) {
				s.from = t
			}
			if t.After(s.to) {
				s.to = t
			}
		}
	} else if m := fpmScript.FindStringSubmatch(l.Text); m != nil {
		v, _ := number(m[3])
		if len(s.scripts) < mostOwners {
			s.scripts[m[1]] = max(s.scripts[m[1]], v)
		}
		if m[2] == "executing too slow" {
			s.slow = append(s.slow, v)
		} else {
			s.ended = append(s.ended, v)
		}
	} else if strings.Contains(l.Text, "failed to ptrace(") {
		s.blind++
	} else {
		s.busy++
	}
}

func readFPMLog(p *attach.Part) attach.Reading {
	s := fpmSaid{scripts: map[string]float64{}}
	for _, l := range p.Lines {
		s.line(l)
	}
	r := &result{}
	r.Title = "PHP-FPM's log, " + attach.Plural(len(p.Lines), "line")
	r.Means = "The manager starts workers to keep up: those that are started wait for nothing yet."
	if s.full > 0 {
		line := fmt.Sprintf("all %s workers of a pool were busy: %s", s.limit, times(s.full))
		if took := s.to.Sub(s.from); took > 0 {
			line += " in " + long(took.Seconds())
		}
		r.figure(line)
		r.candidate("pool-exhaustion", line)
		r.Means = "At these moments requests waited for a free worker, in the queue of the socket. It says so once, and not for how long."
		r.Not = "That more workers help, nor that it is so all the time: what the workers wait for is not in it."
		r.next("request_slowlog_timeout = 2s, then the slowlog", "where the workers are when a request takes long")
	}
	if s.busy > 0 {
		r.figure("few idle workers were left: " + times(s.busy))
	}
	if n := len(s.slow); n > 0 {
		r.figure(fmt.Sprintf("scripts that ran past the limit of the slow log: %s, of them %s",
			times(n), short(attach.Largest(s.scripts)[0])))
	}
	if n := len(s.ended); n > 0 {
		r.figure(fmt.Sprintf("scripts that were ended at their limit: %s, after %s at most",
			times(n), dur(slices.Max(s.ended))))
	}
	if s.full == 0 && len(s.slow)+len(s.ended) > 0 {
		r.Means = "Scripts ran past a limit of PHP-FPM's; what they waited for is in the slow log, and not here."
		r.Not = "How long a script took in all: the time is the one at which the manager looked."
		r.next("the file that slowlog names", "the stack of each slow request")
	}
	if s.blind > 0 {
		r.figure("a slow worker could not be looked into, for lack of the right to ptrace: " + times(s.blind))
		r.next("docker run --cap-add SYS_PTRACE, or the same of your container",
			"without it PHP-FPM cannot see what a slow worker does, and its slow log stays empty")
	}
	return r.done(attach.CannotTell)
}
