package stackdump

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var (
	// gcOpen is the start of a collection whose line was broken: its bracket is not closed.
	gcOpen = pattern.New(`(?:^|: )\[(?:GC|Full GC)(?: \([^()]*(?:\(\))?[^()]*\))* *$`)
	// gcPiece is what follows: a generation, the heap, or the time.
	gcPiece = pattern.New(`^(?:\[?(?:PSYoungGen|ParOldGen|PSOldGen|PSPermGen|Metaspace|ParNew|DefNew|CMS|CMS Perm *|Tenured|Perm *): .*\],?|\d+[KMG]->\d+[KMG]\(\d+[KMG]\),?(?: [\d.,]+ secs\].*)?|[\d.,]+ secs\].*)$`)
)

// mostPieces bounds the lines of one collection.
const mostPieces = 8

// brokenGC returns how many lines one collection takes that somebody broke into pieces; 0: none
// starts here, or its time is not in it.
func brokenGC(lines []paste.Line) int {
	if first := lines[0].Text; !strings.Contains(first, "[GC") &&
		!strings.Contains(first, "[Full GC") || !gcOpen.MatchString(first) {
		return 0
	}
	for n := 1; n < len(lines) && n <= mostPieces && lines[n].Command == ""; n++ {
		text := strings.TrimSpace(lines[n].Text)
		if !gcPiece.MatchString(text) {
			return 0
		}
		if strings.Contains(text, " secs]") {
			return n + 1
		}
	}
	return 0
}

// unbroken is a collection on one line.
func unbroken(lines []paste.Line) string {
	var all []string
	for _, l := range lines {
		all = append(all, strings.TrimSpace(l.Text))
	}
	return strings.Join(all, " ")
}

// zgcRow is a row of ZGC's statistics: the mean and the most of 10 s, 10 min, 10 h and all.
var zgcRow = pattern.New(`^(?:\[[^\]]*\])*\s*(Critical|Phase|Subphase|Collector|Memory|Contention|System|Generation|Young \w+|Old \w+): (\S.*?) {2,}((?:[\d.]+ / [\d.]+ +){4})(ops/s|ms|MB/s|MB|threads|load|%|pages/s)$`)

// zgcStats is what these rows say.
type zgcStats struct {
	rows, critical int     // rows; of them, those of threads that waited for the collector
	stalled        string  // one of them that is not zero
	pause          float64 // the longest stop of all threads, in s
	rate           float64 // most memory that was allocated, in MB/s
	rated          bool
}

func (z *zgcStats) line(text string) bool {
	m := zgcRow.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	z.rows++
	most := 0.0
	for _, pair := range strings.Fields(strings.ReplaceAll(m[3], " / ", "/")) {
		_, v, _ := strings.Cut(pair, "/")
		n, _ := decimal(v)
		most = max(most, n)
	}
	switch {
	case m[1] == "Critical" && strings.HasSuffix(m[2], "Stall"):
		z.critical++
		if most > 0 && (z.stalled == "" || m[4] == "ms") {
			z.stalled = fmt.Sprintf("%s: at most %s %s", strings.ToLower(m[2]),
				strings.TrimSuffix(fmt.Sprintf("%.1f", most), ".0"), m[4])
		}
	case strings.HasPrefix(m[2], "Pause ") && m[4] == "ms":
		z.pause = max(z.pause, most/1e3)
	case strings.HasPrefix(m[2], "Allocation Rate"):
		z.rate, z.rated = most, true
	}
	return true
}

func (z *zgcStats) judge(r *attach.Reading) {
	r.Title = "ZGC's statistics, " + attach.Plural(z.rows, "row")
	r.Means = "The mean and the most of ten seconds, minutes and hours: none of these rows says that anybody waited."
	if z.pause > 0 {
		r.Figures = append(r.Figures, "the longest stop of all threads: "+span(z.pause))
	}
	if z.rated {
		r.Figures = append(r.Figures, fmt.Sprintf("memory is allocated at %.0f MB/s at most", z.rate))
	}
	switch {
	case z.stalled != "":
		r.Figures = append([]string{z.stalled}, r.Figures...)
		r.Means = "Threads had to wait for the collector: it did not keep up with what is allocated."
		r.Not = "How many threads waited, and when: the table has the mean and the most."
	case z.pause >= longStop:
		r.Means = "Some stops are long enough for requests to feel them; when, the table does not say."
	case z.critical > 0:
		r.State = attach.Healthy
		r.Figures = append([]string{fmt.Sprintf("0 in all %d rows of threads that wait for the collector", z.critical)}, r.Figures...)
		r.Means = "No thread had to wait for the collector. Critical is the name of the group of rows."
	}
}

var (
	// gcStart is the start of a pause whose line goes on below a list of ages.
	gcStart = pattern.New(`(?:^|: )\[(?:GC pause(?: \([^()]*(?:\(\))?[^()]*\))*|Full GC(?: \([^()]*(?:\(\))?[^()]*\))* \d+[KMG]->\d+[KMG]\(\d+[KMG]\)) *$`)
	// gcOpens is the start of a collection whose line goes on in another one: other lines were
	// written into it, or CMS left off what it did beside the program.
	gcOpens = pattern.New(`\[(?:CMS|ASCMS)(?:\d|\[)|\[Full GC\[Unloading`)
	gcTail  = pattern.New(`, ([\d.,]+) secs\](?: \[Times: [^\]]*\])?$`)
)

// gcEnd is the time of a collection that this line only ends, in seconds; 0: it ends none. Its
// brackets close more than they open, since the collection starts in another line.
func gcEnd(text string) float64 {
	m := gcTail.FindStringSubmatch(text)
	if m == nil || strings.Count(text, "]") <= strings.Count(text, "[") ||
		!strings.HasPrefix(text, ", ") && !gcHeap.MatchString(text) {
		return 0
	}
	v, ok := decimal(m[1])
	if !ok {
		return 0
	}
	return v
}

// opened keeps the name of a collection whose time is in a later line.
func (c *collections) opened(text string) {
	if c.size(text, false); gcName.MatchString(text) {
		c.open = gcName.FindStringSubmatch(text)[1]
	} else if strings.Contains(text, "[Full GC") {
		c.open = "Full GC"
	}
}

// ended takes a collection at the line that ends it. CMS collects the whole heap where it gives up.
func (c *collections) ended(s float64, text string) {
	what, full := cmp.Or(c.open, "GC"), strings.HasPrefix(c.open, "Full GC")
	c.open = ""
	if strings.Contains(text, "(concurrent mode failure)") || strings.Contains(text, "(promotion failed)") {
		what, full = "Full GC", true
	}
	c.pause(s, what, full)
	c.size(text, full)
}

// size takes how full the heap is after a collection: it is the largest space of a line.
func (c *collections) size(text string, full bool) {
	all := gcHeap.FindAllStringSubmatch(gcClasses.ReplaceAllString(text, ""), 8)
	if len(all) == 0 {
		return
	}
	h := slices.MaxFunc(all, func(a, b []string) int { return cmp.Compare(kmg(a[5], a[6]), kmg(b[5], b[6])) })
	c.after, c.heap = kmg(h[3], h[4]), kmg(h[5], h[6])
	c.inVain(full, kmg(h[1], h[2]))
}

// inVain counts a collection of the whole heap that freed less than a fiftieth of what was in use.
func (c *collections) inVain(full bool, before float64) {
	if full && before > 0 && c.after >= 0.98*before {
		c.fullVain++
	}
}

// summed takes a line which says only the sum of its collections: their mean stands for each.
func (c *collections) summed(what, ms, times string) {
	v, ok := decimal(ms)
	n, _ := decimal(times)
	n = min(max(n, 1), 1000)
	c.means = c.means || n > 1
	for range int(n) {
		if ok {
			c.pause(v/1e3/n, what, false)
		}
	}
}
