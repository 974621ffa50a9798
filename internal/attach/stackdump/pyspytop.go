package stackdump

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// pySpyTop reads the screen of "py-spy top": shares of samples by function, and how many threads
// were active.
var pySpyTop = &attach.Kind{
	Name:  "py-spy top",
	Hints: []string{"Collecting samples from ", "Total Samples ", "GIL: ", "%Own"},
	Claim: claimSpyTop,
	Read:  readSpyTop,
}

var (
	spyTopGIL = pattern.New(`^GIL: +([\d.]+)%, Active: +([\d.]+)%, Threads: +(\d+)`)
	spyTopRow = pattern.New(`^([\d.]+)% +([\d.]+)% +([\d.]+)s +([\d.]+)s +(\S.*)$`)
	spyTopSum = pattern.New(`^Total Samples (\d+)`)
)

func claimSpyTop(lines []paste.Line) int {
	sure := 0
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		t := strings.TrimSpace(text)
		switch {
		case spyTopGIL.MatchString(t), strings.HasPrefix(t, "%Own") && strings.Contains(t, "OwnTime"):
			sure++
		case spyTopRow.MatchString(t), spyTopSum.MatchString(t),
			strings.HasPrefix(t, "Collecting samples from "),
			strings.HasPrefix(t, "Press Control-C to quit"), t == "...":
		default:
			return false
		}
		return true
	})
	return attach.ClaimIf(sure > 0, n)
}

// What a thread that waits for the interpreter's lock sleeps in, and from which share of one CPU on
// the lock is taken.
var gilWaits = []string{"do_futex_wait", "take_gil", "pthread_cond_timedwait",
	"futex_abstimed_wait", "sem_wait", "PyThread_acquire_lock"}

const (
	gilTaken   = 80.0
	gilHeld    = 60.0  // beside more active threads than one
	gilQueue   = 150.0 // of one CPU
	oneAtATime = 130.0
	gilThreads = 3
)

// spyAcquire is a function of Python that takes a lock, and spyLocks the share of one CPU from
// which on threads queue in it.
var spyAcquire = pattern.New(`^(?:acquire|__enter__|handle) \((?:\S*/)?(?:logging/__init__|threading)\.py(?::\d+)?\)`)

const spyLocks = 200.0

func readSpyTop(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "py-spy top", State: attach.CannotTell, Glance: true}
	gil, active, threads := 0.0, 0.0, 0
	known := false
	var rows, locks []string
	native, logger := "", false
	for _, l := range p.Lines {
		t := strings.TrimSpace(l.Text)
		if m := spyTopGIL.FindStringSubmatch(t); m != nil {
			gil, _ = decimal(m[1])
			active, _ = decimal(m[2])
			threads, _ = strconv.Atoi(m[3])
			known = true
		}
		if m := spyTopSum.FindStringSubmatch(t); m != nil {
			r.Title = "py-spy top, " + m[1] + " samples"
		}
		m := spyTopRow.FindStringSubmatch(t)
		if m == nil {
			continue
		}
		if len(rows) < 2 {
			rows = append(rows, fmt.Sprintf("%s: %s s by itself, %s s with what it calls", m[5], m[3], m[4]))
		}
		if own, ok := decimal(m[1]); ok && own >= spyLocks && spyAcquire.MatchString(m[5]) {
			locks = append(locks, fmt.Sprintf("%s: %.1f threads at a time", strings.TrimSpace(m[5]), own/100))
			logger = logger || strings.Contains(m[5], "logging/")
		}
		for _, w := range gilWaits {
			if native == "" && strings.Contains(m[5], w) && strings.Contains(m[5], "(lib") {
				native = fmt.Sprintf("%s has %s s by itself: threads that count as active, and sleep", strings.TrimSpace(m[5]), m[3])
			}
		}
	}
	if known {
		r.Figures = append(r.Figures,
			fmt.Sprintf("%s, active %g %%: %.1f at a time; the GIL was held in %g %% of the samples", attach.Plural(threads, "thread"), active, active/100, gil))
	}
	r.Figures = append(r.Figures, rows...)
	r.Means = "It shows where threads were when they were active; who waited, and for what, is not in it."
	r.Not = "How much requests lost: a busy interpreter with nobody waiting looks the same."
	r.Next = []attach.Next{{Command: "py-spy dump --pid PID", Why: "which thread has the GIL, and what the others do"}}
	queue := known && threads >= gilThreads && gil >= gilHeld && active >= gilQueue
	crowd := known && threads >= gilThreads && active >= gilTaken && active <= oneAtATime
	switch {
	case len(locks) > 0:
		cause := "lock-contention"
		r.Means = "Threads stand in the call that takes a lock: one at a time goes on."
		if logger {
			cause = "logger-lock"
			r.Means = "Threads stand in the call that takes the lock of a logger's handler: all who log go through it one after the other, and its holder writes meanwhile."
		}
		r.Not = "CPU time: a thread that waits for a lock counts as active in some versions of py-spy, so shares above 100 % are threads and no CPUs."
		r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate, Proof: locks[:1]})
	case queue:
		r.Means = "More threads are active at a time than the one that can have the GIL: the others wait for it, or run code that needs none."
		r.Signs = append(r.Signs, attach.Sign{Cause: "interpreter-lock", Grade: attach.Candidate, Proof: r.Figures[:1]})
	case crowd && gil >= gilTaken, crowd && native != "":
		proof := r.Figures[0]
		r.Means = "Of many threads about one is active at a time: they take turns, as those do which need the GIL."
		if gil < gilTaken {
			r.Not = "That the GIL is free: py-spy does not find it in some builds of Python, and prints 0 %."
		}
		proofs := []string{proof}
		if native != "" {
			proofs = append(proofs, native)
		}
		r.Signs = append(r.Signs, attach.Sign{Cause: "interpreter-lock", Grade: attach.Candidate, Proof: proofs})
	case known && active < 50:
		r.Means = "Few threads were active: the others waited, and for what is not in it."
	}
	return r
}
