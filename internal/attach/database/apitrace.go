package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// apiTrace is what Kubernetes' programs log of a request that took long: its steps, each with its
// time (k8s.io/utils/trace).
var apiTrace = &attach.Kind{
	Name:      "Kubernetes trace",
	Hints:     []string{"Trace["},
	Marks:     []string{"Trace["},
	Single:    true,
	Scattered: true,
	Claim:     func(lines []paste.Line) int { return run(lines, traceLine.MatchString) },
	Read:      readAPITrace,
}

var (
	traceLine = pattern.New(`\bTrace\[\d+\]: (?:"[^"]+"|-*\[?"|---|\[[\d.]+[mµ]?s\])`)
	traceHead = pattern.New(`\bTrace\[(\d+)\]: "([^"]+)".*\(total time: (\d+)ms\)`)
	// "Trace[7]: ---"Object stored in database" 7051ms (10:11:00.055)"; before Kubernetes 1.20
	// "Trace[7]: [1.2s] [1.1s] Object stored in database", where the second is its own time.
	traceStep = pattern.New(`\bTrace\[(\d+)\]: -*\[?"([^"]+)" .*?(\d+)ms \(`)
	traceOld  = pattern.New(`\bTrace\[(\d+)\]: \[[\d.]+[mµ]?s\] \[([\d.]+[mµ]?s)\] (.+)$`)
)

// traced is one request.
type traced struct {
	name, step   string
	total, worst float64 // s; total is 0 where its first line is not here
}

func readAPITrace(p *attach.Part) attach.Reading {
	all := map[string]*traced{}
	of := func(id string) *traced {
		if all[id] == nil && len(all) < mostOwners {
			all[id] = &traced{}
		}
		if all[id] == nil {
			return &traced{}
		}
		return all[id]
	}
	for _, l := range p.Lines {
		if m := traceHead.FindStringSubmatch(l.Text); m != nil {
			ms, _ := number(m[3])
			t := of(m[1])
			t.name, t.total = m[2], ms/1e3
		} else if m := traceStep.FindStringSubmatch(l.Text); m != nil {
			ms, _ := number(m[3])
			of(m[1]).add(m[2], ms/1e3)
		} else if m := traceOld.FindStringSubmatch(l.Text); m != nil && m[3] != "END" {
			s, _ := seconds(m[2])
			of(m[1]).add(m[3], s)
		}
	}
	r := &result{}
	r.Title = "traces of Kubernetes, " + attach.Plural(len(all), "request")
	var list []*traced
	for _, t := range all {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *traced) int { return strings.Compare(b.key(), a.key()) })
	r.Means = "What is traced here took longer than its limit; what a step waited for a trace does not say."
	r.Not = "What a step waited for: its own clock is all that a trace has."
	for i, t := range list {
		if i == 2 {
			break
		}
		r.figure(t.String())
	}
	for _, t := range list {
		if t.worst >= 0.5*max(t.total, t.worst) && t.worst >= traceFelt && storeStep.MatchString(t.step) {
			r.Means = ""
			r.outside("the store behind the API server (etcd, or what stands for it)", t.String(),
				ratio(t.worst, max(t.total, t.worst)))
			r.Not = "That the store's disk is slow: no figure of it is here."
			r.next("etcd's log and metrics, or iostat -x 1 10 on its host", "whether the store waits for its disk")
			break
		}
	}
	return r.done(attach.CannotTell)
}

// traceFelt is in s what a request to the store should not take.
const traceFelt = 0.5

// storeStep is a step that the store does.
var storeStep = pattern.New(`(?i)\b(?:database|etcd3?|storage|transaction|txn)\b`)

func (t *traced) add(step string, s float64) {
	if s > t.worst {
		t.step, t.worst = step, s
	}
}

// key sorts by time.
func (t *traced) key() string { return fmt.Sprintf("%020.6f %s", max(t.total, t.worst), t.name) }

func (t *traced) String() string {
	switch {
	case t.total == 0:
		return fmt.Sprintf("a step %q took %s", short(t.step), dur(t.worst))
	case t.worst == 0:
		return fmt.Sprintf("%q took %s, without a step in between", short(t.name), dur(t.total))
	}
	return fmt.Sprintf("%q took %s, of which %q %s", short(t.name), dur(t.total), short(t.step), dur(t.worst))
}
