package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// schbench measures how soon its own threads get a CPU after a wake-up, under a load of its own.
var schbench = &attach.Kind{Name: "schbench", Claim: claimSchbench, Read: readSchbench,
	Hints: []string{"atencies percentiles (usec)", "RPS percentiles (requests)", "setting worker threads to"}}

var (
	schHead = pattern.New(`^((?:Wakeup|Request) Latencies|RPS) percentiles \((?:usec|requests)\) runtime \d+ \(s\) \((\d+) total samples\)$`)
	schRow  = pattern.New(`^(?:\* )?(\d+\.\d+)th: (\d+) +\((\d+) samples\)$`)
	schEnds = pattern.New(`^min=(\d+), max=(\d+)$`)
	schNote = pattern.New(`^(?:setting worker threads to \d+|current rps: [\d.]+|average rps: [\d.]+|sched delay: message \d+ \(usec\) worker \d+ \(usec\))$`)
)

func claimSchbench(lines []paste.Line) int {
	heads, rows := 0, 0
	n := claimed(lines, func(_ int, text string) bool {
		switch {
		case schHead.MatchString(text):
			heads++
		case heads > 0 && schRow.MatchString(text):
			rows++
		case schNote.MatchString(text), heads > 0 && schEnds.MatchString(text):
		default:
			return false
		}
		return true
	})
	return attach.ClaimIf(heads > 0 && rows > 0, n)
}

func readSchbench(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "schbench, wake-ups and requests of its own threads", State: attach.CannotTell}
	now, figures, woken := "", map[string][]string{}, 0.0
	for _, text := range texts(p) {
		if m := schHead.FindStringSubmatch(text); m != nil {
			now = m[1]
			figures[now] = nil // a later interval has all of the earlier ones
			continue
		}
		value, name := "", ""
		if m := schRow.FindStringSubmatch(text); m != nil {
			value, name = m[2], "p"+strings.TrimSuffix(m[1], ".0")
		} else if m := schEnds.FindStringSubmatch(text); m != nil {
			value, name = m[2], "longest"
		}
		f, ok := number(value)
		if !ok || now == "RPS" || now == "" {
			continue
		}
		if name == "p99" && strings.HasPrefix(now, "Wakeup") {
			woken = f
		}
		figures[now] = append(figures[now], name+" "+lasts(f/1e6))
	}
	for _, what := range []string{"Wakeup Latencies", "Request Latencies"} {
		if len(figures[what]) > 0 {
			r.Figures = append(r.Figures, strings.ToLower(what)+": "+strings.Join(figures[what], ", "))
		}
	}
	r.Means = "It loads the CPUs itself: this is how soon its threads got one, and nothing of a service."
	r.Not = "A median that is short says nothing of the late ones; and which thread had the CPU meanwhile is not in it."
	if woken >= 10000 {
		proof := fmt.Sprintf("one wake-up in a hundred waited %s or longer for a CPU", lasts(woken/1e6))
		r.Means = upper(proof) + ", under the load that schbench makes itself."
		r.Signs = append(r.Signs, attach.Sign{Cause: "cpu-contention", Grade: attach.Candidate, Proof: []string{proof}})
		r.Next = append(r.Next, ask("perf sched timehist -p PID", 0, "which threads had the CPU meanwhile"))
	}
	return r
}
