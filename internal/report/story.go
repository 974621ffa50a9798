package report

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

// story is a root with the mechanisms as which it shows: one chain, told once.
type story struct {
	n    int
	root *finding.Finding
	seen []*finding.Finding // mechanisms, largest first
}

// stories lists the roots in their order, each with its mechanisms.
func (r *Report) stories() (l []story) {
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.BecauseOf == "" || len(l) == 0 {
			l = append(l, story{n: len(l) + 1, root: f})
			continue
		}
		l[len(l)-1].seen = append(l[len(l)-1].seen, f)
	}
	return l
}

// shows are the words for a cause as it shows to whoever looks at the service: the end of a
// sentence "that shows as ...". A cause without words is called by its name.
var shows = map[string]string{
	"thread-churn":          "threads made and ended",
	"gomaxprocs-over-quota": "more Ps than the quota feeds",
	"gomaxprocs":            "Ps that do not fit the CPUs",
	"cpu-steal":             "CPU time that the hypervisor takes",
	"softirq":               "softirqs on its threads",
	"page-fault":            "page faults",
	"tlb-shootdown":         "TLB flushes",
	"kernel-lock":           "waits for locks of the kernel",
	"spinning":              "spinning threads",
	"runqueue-saturation":   "threads that queue for CPUs",
	"cpu-throttled":         "throttling",
	"cpu-contention":        "waits for CPUs that others have",
	"direct-reclaim":        "direct reclaim",
	"numa-balancing":        "NUMA migration",
	"mmap-lock":             "waits for mmap_lock",
	"frequent-gc":           "frequent GC",
	"disk-wait":             "waits for the disk",
	"syscall-stall":         "long system calls",
	"netpoll-late":          "sockets that are noticed late",
	"timer-late":            "late timers",
	"stw-pause":             "stop-the-world pauses",
	"sweep-assist":          "long sweeps",
	"mark-assist":           "mark assists",
	"gc-queue":              "queues for the collector",
	"sched-latency":         "a run queue in Go",
	"jvm-safepoint":         "waits for safepoints",
	"logger-lock":           "a queue for the logger's lock",
	"thp-bloat":             "memory in huge pages",
	"interpreter-lock":      "a queue for the interpreter's lock",
	"lock-contention":       "queues for locks",
	"pool-exhaustion":       "an exhausted pool",
	"event-loop":            "a busy event loop",
}

// tells says as what the root shows, "" if it shows as nothing else. A mechanism that is larger
// than its root still comes after it: the root is what can be cured.
func (s *story) tells() string {
	if len(s.seen) == 0 {
		return ""
	}
	var parts []string
	larger := false
	for _, f := range s.seen {
		words := shows[f.Cause]
		if words == "" {
			words = f.Cause
		}
		of := percent(f.Share)
		if wholeOf(f) != wholeOf(s.root) {
			of += " " + wholeOf(f)
		}
		parts = append(parts, fmt.Sprintf("%s (%s, %s)", words, f.Cause, of))
		larger = larger || f.Share > s.root.Share && wholeOf(f) == wholeOf(s.root)
	}
	last := parts[len(parts)-1]
	if rest := parts[:len(parts)-1]; len(rest) > 0 {
		last = strings.Join(rest, ", ") + " and " + last
	}
	out := "That shows as " + last
	if larger {
		out += "; the cause stands before what it shows as, however large"
	}
	return out + "."
}

// wholeOf says of what a finding's share is.
func wholeOf(f *finding.Finding) string {
	switch {
	case f.Explains.Bytes > 0:
		return "of memory"
	case f.Explains.CPUNS > 0:
		return "of CPU time"
	case f.Explains.WaitedNS > 0:
		return "of the time in which it has work"
	case f.Scope == finding.Usual:
		return "of every request's time"
	case f.Explains.NS > 0:
		return "of the slow requests' time"
	}
	return "of the process' time"
}

// size says how much a finding explains, in a few words.
func (r *Report) size(f *finding.Finding) string {
	s := percent(f.Share) + " " + wholeOf(f)
	of := func(c *Column) string {
		n := int64(max(1, c.Requests))
		return fmt.Sprintf(", %s of %s each", finding.Duration(f.Explains.NS/n), finding.Duration(c.WallNS/n))
	}
	switch e := f.Explains; {
	case e.NS > 0 && f.Scope == finding.Usual && r.Ledger.Median.Requests > 0:
		return s + of(&r.Ledger.Median)
	case e.NS > 0 && r.Ledger.Slow.Requests > 0:
		return s + of(&r.Ledger.Slow)
	case e.CPUNS > 0:
		return s + ", " + finding.Duration(e.CPUNS)
	case e.Bytes > 0:
		return s + ", " + finding.Bytes(e.Bytes)
	case e.WaitedNS > 0:
		return s + ", " + finding.Duration(e.WaitedNS)
	}
	return s
}

// before says why a root stands before one that explains a larger share, "" where the order needs
// no word.
func before(a, b *story) string {
	f, g := a.root, b.root
	if f.Share >= g.Share {
		return ""
	}
	next := fmt.Sprintf("before %d: ", b.n)
	switch {
	case f.Scope != g.Scope && f.Scope == finding.Slow:
		what := "what every request pays"
		if g.Scope == finding.Process {
			what = "of the process as a whole"
		}
		return next + fmt.Sprintf("it makes slow requests slow; %d is %s", b.n, what)
	case f.Scope != g.Scope && f.Scope == finding.Usual:
		return next + "requests pay it, and that is of the process as a whole"
	case f.Scope == finding.Slow && f.BeyondUsual > g.BeyondUsual:
		return next + fmt.Sprintf("of what usual requests do not lose as well it takes %s, and %d takes %s", percent(f.BeyondUsual), b.n, percent(g.BeyondUsual))
	case g.Confidence == finding.Possible && f.Confidence != finding.Possible:
		return next + "that one is possible, and no more"
	case wholeOf(f) != wholeOf(g):
		return next + "that one is a share " + wholeOf(g)
	}
	return ""
}

// verdict is the answer in a sentence, and a word for it.
func (r *Report) verdict() (word, sentence, style string) {
	l := r.stories()
	if len(l) == 0 {
		title, rest := r.nothing()
		if title != nothingFound {
			return title, rest, yellow
		}
		rest = fmt.Sprintf("%s checked and ruled out", plural(int64(len(r.RuledOut)), "cause was", "causes were"))
		if n := len(r.NotChecked); n > 0 {
			rest += fmt.Sprintf("; %d could not be checked, or only in part", n)
		}
		return title, rest + ".", green
	}
	f := l[0].root
	word = "FOUND " + plural(int64(len(l)), "cause", "causes")
	return word, r.blame(f), red
}

// blame says in a sentence what the first cause does.
func (r *Report) blame(f *finding.Finding) string {
	because := "because"
	switch {
	case f.Confidence == finding.Possible:
		because = "perhaps because"
	case f.Share < 0.5:
		because = "partly because"
	}
	why := clause(f.Title)
	amount := strings.TrimPrefix(r.size(f), percent(f.Share)+" "+wholeOf(f)+", ")
	switch {
	case f.Scope == finding.Usual:
		return fmt.Sprintf("Every request pays: %s; it takes %s (%s, %s).", why, amount, percent(f.Share), f.Confidence)
	case f.Scope == finding.Slow && f.Explains.NS > 0:
		return fmt.Sprintf("Slow requests are slow %s %s; it takes %s (%s, %s).", because, why,
			amount, percent(f.Share), f.Confidence)
	}
	return fmt.Sprintf("The process as a whole: %s; it takes %s (%s).", why, r.size(f), f.Confidence)
}

// clause makes the start of a title small, unless it is a name: "GC runs", "GOMAXPROCS is".
func clause(title string) string {
	word, _, _ := strings.Cut(title, " ")
	if word == "" || word[0] < 'A' || word[0] > 'Z' || strings.ToUpper(word) == word && len(word) > 1 {
		return title
	}
	return strings.ToLower(title[:1]) + title[1:]
}
