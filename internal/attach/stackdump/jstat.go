package stackdump

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// jstat reads jstat -gcutil, -gc and -gccause: a row for each sample.
var jstat = &attach.Kind{
	Name:  "jstat",
	Hints: []string{"YGC"},
	Claim: func(lines []paste.Line) int {
		head := strings.Fields(lines[0].Text)
		if !jstatHead(head) {
			return 0
		}
		n := 0
		for i, l := range lines {
			f := strings.Fields(l.Text)
			if l.Command != "" || len(f) == 0 && i > 0 {
				break
			}
			if !jstatHead(f) && !jstatRow(head, f) {
				break
			}
			n = i + 1
		}
		if n < 2 {
			return 0
		}
		return n
	},
	Read: readJstat,
}

// jstatHead reports whether a line is the heading of one of jstat's tables of collections.
func jstatHead(f []string) bool {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(f, n) })
	}
	return has("YGC") && has("FGC", "YGCT") && has("GCT", "YGCT", "OGC", "NGC") &&
		has("S0", "S0C", "EC", "OC", "OGC", "NGC", "MC", "O", "PC", "PGC", "MCMN")
}

func jstatRow(head, f []string) bool {
	if len(f) < min(len(head), 6) || len(f) > len(head)+12 {
		return false
	}
	for _, w := range f[:min(len(f), 6)] {
		if _, ok := decimal(w); !ok && w != "-" {
			return false
		}
	}
	return true
}

// jstatEvery is the interval in the command, in s: "jstat -gcutil 4711 1000" and "1s".
func jstatEvery(command string) float64 {
	f := strings.Fields(command)
	if i := slices.IndexFunc(f, func(w string) bool { return strings.HasSuffix(w, "jstat") }); i >= 0 {
		words := 0
		for _, w := range f[i+1:] {
			if strings.HasPrefix(w, "-") {
				continue
			}
			if words++; words == 2 {
				unit := 1e-3
				if s, ok := strings.CutSuffix(w, "ms"); ok {
					w = s
				} else if s, ok := strings.CutSuffix(w, "s"); ok {
					w, unit = s, 1
				}
				v, _ := strconv.ParseFloat(w, 64)
				if v > 0 && v < 1e9 {
					return v * unit
				}
				return 0
			}
		}
	}
	return 0
}

func readJstat(p *attach.Part) attach.Reading {
	var head []string
	var rows [][]string
	for _, l := range p.Lines {
		f := strings.Fields(l.Text)
		if jstatHead(f) {
			head = f
			continue
		}
		rows = append(rows, f)
	}
	r := attach.Reading{Title: "jstat, " + attach.Plural(len(rows), "sample"), State: attach.CannotTell}
	col := func(row []string, name string) float64 {
		i := slices.Index(head, name)
		if i < 0 || i >= len(row) {
			return 0
		}
		v, _ := decimal(row[i])
		return v
	}
	if len(rows) == 0 { // a heading twice
		r.Means = "No sample is in it."
		return r
	}
	first, last := rows[0], rows[len(rows)-1]
	young, full, spent := col(last, "YGC")-col(first, "YGC"), col(last, "FGC")-col(first, "FGC"), 0.0
	clock := "GCT" // the column of time; some tables have none, or that of the young generation
	if !slices.Contains(head, clock) {
		clock = "YGCT"
	}
	timed := slices.Contains(head, clock)
	spent = col(last, clock) - col(first, clock)
	counts := func(young, full float64) string {
		if !slices.Contains(head, "FGC") {
			return whole(young) + " young collections"
		}
		return fmt.Sprintf("%s young and %s full collections", whole(young), whole(full))
	}
	seconds := col(last, "Timestamp") - col(first, "Timestamp")
	if every := jstatEvery(p.Command); seconds <= 0 {
		seconds = every * float64(len(rows)-1)
	}
	r.Not = "Collectors that run beside the program count into GCT as well (CGCT): not all of it is a pause."
	r.Next = []attach.Next{{Command: "jcmd PID VM.log what=gc,safepoint", Why: "each pause, with its length"}}
	if slices.Contains(head, "O") {
		r.Figures = append(r.Figures, fmt.Sprintf("the old generation is %.0f %% full", col(last, "O")))
	} else if size := col(last, "OC"); size > 0 && slices.Contains(head, "OU") {
		r.Figures = append(r.Figures, fmt.Sprintf("the old generation is %.0f %% full", 100*col(last, "OU")/size))
	}
	if len(rows) < 2 || young < 0 || full < 0 || spent < 0 {
		r.Boot = true
		line := counts(col(last, "YGC"), col(last, "FGC")) + " since its start"
		if timed {
			line += fmt.Sprintf(", %s in all", span(col(last, clock)))
		}
		r.Figures = append([]string{line}, r.Figures...)
		r.Means = "Sums since the JVM's start: they say nothing of now."
		r.Next = []attach.Next{{Command: "jstat -gcutil -t PID 1000 10",
			Why: "ten samples with their times: how much of each second"}}
		return r
	}
	share := 0.0
	line := counts(young, full) + " between the first sample and the last"
	if timed {
		line += fmt.Sprintf(", %s in all", span(spent))
	}
	if timed && seconds > 0 {
		share = min(1, spent/seconds)
		line += fmt.Sprintf(": %.1f %% of %s", 100*share, span(seconds))
	}
	r.Figures = append([]string{line}, r.Figures...)
	mean := spent / max(1, young+full)
	switch {
	case !timed:
		r.Means = "How long they took is not in these columns."
	case seconds > 0 && share < muchStopped && mean < longStop, young+full == 0:
		r.State, r.Means, r.Next = attach.Healthy, "Collections take little of the time.", nil
	case seconds <= 0 && mean < longStop:
		r.Means = "Collections are short in the mean; what share of the time they take is not in it, since the interval is not."
	default:
		r.Means = "Collections take a part of the time that requests feel."
		r.Signs = append(r.Signs, attach.Sign{Cause: "jvm-safepoint", Grade: attach.Candidate,
			Share: share, Proof: []string{line}})
	}
	return r
}

func whole(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }

// jvmHeap is jcmd's GC.heap_info and GC.class_histogram: what is in the heap.
var jvmHeap = &attach.Kind{
	Name: "JVM heap",
	Hints: []string{"#instances", "heap  ", "PSYoungGen", "def new generation",
		"par new generation", "garbage-first heap", "ZHeap", "Shenandoah Heap"},
	Claim: func(lines []paste.Line) int {
		n, own := 0, 0
		for i, l := range lines {
			t := strings.TrimSpace(l.Text)
			if l.Command != "" || t == "" && i == 0 {
				break
			}
			if heapSure.MatchString(t) {
				own++
			} else if t != "" && (own == 0 || !heapLine.MatchString(t)) {
				break
			}
			if t != "" {
				n = i + 1
			}
		}
		return attach.ClaimIf(own > 0, n)
	},
	Read: func(p *attach.Part) attach.Reading {
		r := attach.Reading{Title: "JVM heap, what is in it", State: attach.CannotTell, Glance: true}
		for _, l := range p.Lines {
			t := strings.TrimSpace(l.Text)
			if m := heapTotal.FindStringSubmatch(t); m != nil {
				bytes, _ := strconv.ParseFloat(m[2], 64)
				line := fmt.Sprintf("%s objects with %s bytes (%.1f MiB) in all", m[1], m[2], bytes/(1<<20))
				r.Figures = append([]string{line}, r.Figures...)
			} else if f := strings.Fields(strings.Replace(t, "<no name>", "<no_name>",
				1)); len(f) >= 4 && strings.HasSuffix(f[0], ":") && len(r.Figures) < 3 {
				r.Figures = append(r.Figures, fmt.Sprintf("%s bytes in %s objects of %s", f[2], f[1], f[3]))
			} else if heapSure.MatchString(t) && !strings.Contains(t, "#instances") && len(r.Figures) < 3 {
				r.Figures = append(r.Figures, strings.Join(f, " "))
			}
		}
		r.Means = "It says what fills the heap at one instant, and nothing of pauses or of who waited for them."
		r.Next = []attach.Next{{Command: "jstat -gcutil -t PID 1000 10",
			Why: "how much of each second collections take"}}
		return r
	},
}

var (
	// heapHead is what -XX:+PrintHeapAtGC prints around each collection.
	heapHead  = pattern.New(`^\{?Heap (?:before|after) (?:GC|gc) invocations=\d+`)
	heapTotal = pattern.New(`^Total +(\d{1,15}) +(\d{1,18})$`)
	heapSure  = pattern.New(`^(num +#instances +#bytes +class name|(garbage-first heap|PSYoungGen|def new generation|par new generation|ZHeap|Shenandoah Heap)\b.*(total|used|max))`)
	heapLine  = pattern.New(`^(\d+: +\d+ +\d+ +\S.*|-{10,}|Total +\d+ +\d+|region size|Metaspace +(?:used|total)|class space +used|data space +\d|(eden|from|to|object|the) +space|ParOldGen|PSOldGen|PSPermGen|tenured generation|concurrent[ -]mark-sweep|compacting perm gen|No shared spaces|\d+[KMG] total|\d+ x \d+|Status:|Reserved region:|- \[|Collection set:|Heap Region)`)
)
