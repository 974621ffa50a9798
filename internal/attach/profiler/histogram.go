package profiler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// bucket is a row of a histogram: how many values were at least low and below high.
type bucket struct {
	low, high float64
	n         float64
}

// histogram is one distribution as the BPF tools print it.
type histogram struct {
	key     string // what stands above it: "disk = 'sda'", "@usecs[java]"
	unit    string // of values: "usecs", "msecs", "nsecs"; "": the column says something else
	label   string // of the column: "usecs", "runqlen", "@ns"
	buckets []bucket
	wrong   float64 // values that are no times
	renamed bool    // the program's text says another unit than the map's name
	behind  bool    // its key is a stack of the kernel's own threads, which work behind everybody
	cut     bool    // it ends within a row: what is above is not in it
	last    float64 // how many values its last row has
	added   float64 // s: what all values add up to, as the tool prints it below
	counted float64 // of how many values that is
}

var (
	// "     1024 -> 2047       : 27       |*                   |"
	arrowRow = pattern.New(`^\(?(\d+)\s*->\s*(\d+)\)?\s*:\s*(\d+)\s*(\|.*)?$`)
	// "  1.0 -> 7.9       : 38       |#      |", with open ends: bitesize of perf-tools
	openRow = pattern.New(`^(\d+\.\d)?\s*->\s*(\d+\.\d)?\s*:\s*(\d+)\s*\|[# ]*\|$`)
	// "     3      : 27       |*        |" as runqlen prints it
	singleRow = pattern.New(`^(\d+)\s*:\s*(\d+)\s*\|[* ]*\+?\|?$`)
	// "    512 |@@@@@            12", with the count behind the bar: SystemTap and DTrace
	tailRow  = pattern.New(`^(-?\d+)\s*\|[@# ]*\s(\d+)$`)
	tailHead = pattern.New(`^value\s+(?:\|-{20,}|-+ Distribution -+)\s+count$`)
	// "[16, 32)             725 |@@                |", "[0]  12 |@|", "(..., 0)  5 ||"
	bracketRow = pattern.New(`^[\[(]([-\d.]+[KMGTPk]?)(?:, ?([-\d.]+[KMGTPk]?|\.\.\.)[\])]|\])\s+(\d+)\s*(\|.*)?$`)
	// "     usecs               : count     distribution"
	// "  >=(ms) .. <(ms)   : I/O      |Distribution      |" in perf-tools
	arrowHead = pattern.New(`^(.*?\S)\s*:\s*(?:count\s+distribution|I/O\s+\|?Distribution\s*\|?)$`)
	// "|****    |", behind which a person may have written: a bar that is whole
	closedBar = pattern.New(`\|[*@# ]*\|`)
	// "        64 -> 127        :", "[64, 12": a row that the end of the text cut
	cutRow = pattern.New(`^(?:\d+\s*->\s*\d*\s*:?|\[\d+[KMGTPk]?,(?: ?\d*[KMGTPk]?\)?)?)$`)
	// "@usecs:", "@[java]:", "@us[java, 12]:"
	mapHead = pattern.New(`^(@\w*(?:\[.*\])?):$`)
)

// bucketOf reads a row of a histogram.
func bucketOf(text string) (b bucket, ok bool) {
	if m := arrowRow.FindStringSubmatch(text); m != nil {
		low, ok1 := number(m[1])
		high, ok2 := number(m[2])
		n, ok3 := number(m[3])
		return bucket{low, high + 1, n}, ok1 && ok2 && ok3 && high >= low
	}
	if m := openRow.FindStringSubmatch(text); m != nil && m[1]+m[2] != "" {
		low, _ := number(m[1])
		high, ok := number(m[2])
		if !ok {
			high = 8 * low
		}
		n, ok := number(m[3])
		return bucket{low, high, n}, ok
	}
	if m := bracketRow.FindStringSubmatch(text); m != nil {
		low, ok1 := power(m[1])
		n, ok2 := number(m[3])
		high := low + 1
		if m[2] == "..." {
			high = low * 2
		} else if m[2] != "" {
			var ok bool
			if high, ok = power(m[2]); !ok {
				return b, false
			}
		}
		return bucket{low, high, n}, ok1 && ok2
	}
	if m := singleRow.FindStringSubmatch(text); m != nil {
		low, ok1 := number(m[1])
		n, ok2 := number(m[2])
		return bucket{low, low + 1, n}, ok1 && ok2
	}
	return b, false
}

// tailBucketOf reads a row with the count behind the bar, of which only a heading above it tells
// that it is none of a database's table.
func tailBucketOf(text string) (b bucket, ok bool) {
	m := tailRow.FindStringSubmatch(text)
	if m == nil {
		return b, false
	}
	low, ok1 := number(m[1])
	n, ok2 := number(m[2])
	return bucket{low, max(2*low, low+1), n}, ok1 && ok2
}

// power reads a border such as 512, 1K or 256M. The K of bpftrace is 1024; old versions print k.
func power(s string) (float64, bool) {
	if s == "..." {
		return 0, true
	}
	factor := 1.0
	if i := strings.Index("KMGTP", strings.ToUpper(s[len(s)-1:])); i >= 0 {
		s = s[:len(s)-1]
		for range i + 1 {
			factor *= 1024
		}
	}
	f, ok := number(s)
	return f * factor, ok
}

// total is how many values there are.
func (h *histogram) total() (n float64) {
	for _, b := range h.buckets {
		n += b.n
	}
	return n
}

// at is the bucket in which the value of a rank lies, such as 0.5 for the median.
func (h *histogram) at(rank float64) bucket {
	want, sum := h.total()*rank, 0.0
	for _, b := range h.buckets {
		sum += b.n
		if b.n > 0 && sum >= want {
			return b
		}
	}
	if len(h.buckets) == 0 {
		return bucket{}
	}
	return h.buckets[len(h.buckets)-1]
}

// from counts the values that are at least this large for sure: of a bucket across it, none.
func (h *histogram) from(least float64) (n float64) {
	for _, b := range h.buckets {
		if b.low >= least*0.95 { // 1024 us are called a ms
			n += b.n
		}
	}
	return n
}

// mayBe counts the values that may be this large: those of a bucket across it, too.
func (h *histogram) mayBe(least float64) (n float64) {
	for _, b := range h.buckets {
		if b.high > least*1.05 {
			n += b.n
		}
	}
	return n
}

// part is the share of the values that are at least this large: of a bucket across it, between none
// and all.
func (h *histogram) part(least float64) string {
	n := max(h.total(), 1)
	low, high := pct(h.from(least)/n), pct(h.mayBe(least)/n)
	if low == high {
		return low
	}
	return strings.TrimSuffix(low, " %") + " to " + high
}

// end is where the last bucket ends that has values.
func (h *histogram) end() float64 { return h.at(1).high }

// seconds is what a unit of the values is; 0 if they are no times.
func (h *histogram) seconds() float64 {
	switch h.unit {
	case "nsecs":
		return 1e-9
	case "usecs":
		return 1e-6
	case "msecs":
		return 1e-3
	case "secs":
		return 1
	}
	return 0
}

// unitOf says which time a column's label names; "" if none.
func unitOf(label string) string {
	words := strings.FieldsFunc(strings.ToLower(label),
		func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') })
	for _, w := range words {
		switch {
		case w == "usecs", w == "us", w == "usec", w == "microseconds", w == "lat_us":
			return "usecs"
		case w == "msecs", w == "ms", w == "msec", w == "milliseconds":
			return "msecs"
		case w == "nsecs", w == "ns", w == "nsec", w == "nanoseconds":
			return "nsecs"
		case w == "secs", w == "seconds":
			return "secs"
		}
	}
	return ""
}

// worstOf is the first with values enough for what is said of them. They stand by falling p99.
func worstOf(all []*histogram, enough float64) *histogram {
	for _, h := range all {
		if h.total() >= enough {
			return h
		}
	}
	return all[0]
}

// slower is another one that is slow, though it has too few values for a p99; nil: none is.
func slower(all []*histogram, than *histogram) *histogram {
	for _, h := range all {
		s, n := h.seconds(), h.total()
		if h != than && s > 0 && n >= 10 && h.from(0.010/s) >= n/20 {
			return h
		}
	}
	return nil
}

func (h *histogram) add(b bucket) {
	at, found := slices.BinarySearchFunc(h.buckets, b, func(a, b bucket) int { return cmp.Compare(a.low, b.low) })
	if found {
		h.buckets[at].n += b.n
	} else if len(h.buckets) < 1024 {
		h.buckets = slices.Insert(h.buckets, at, b)
	}
}

// linear sets the ends of buckets of equal width, of which only the lower border is printed: where
// one of these is no power of two, they are not of doubling width.
func (h *histogram) linear() {
	width := math.Inf(1)
	doubling := true
	for i, b := range h.buckets {
		doubling = doubling && (b.low <= 0 || b.low == math.Exp2(math.Round(math.Log2(b.low))))
		if i > 0 {
			width = min(width, b.low-h.buckets[i-1].low)
		}
	}
	for i := range h.buckets {
		if !doubling && !math.IsInf(width, 1) {
			h.buckets[i].high = h.buckets[i].low + width
		}
	}
}

// value writes a value of this histogram.
func (h *histogram) value(v float64) string {
	if s := h.seconds(); s > 0 {
		return lasts(v * s)
	}
	return count(v)
}

// says is the line of figures of one histogram.
func (h *histogram) says() string {
	n := h.total()
	if n == 0 {
		return strings.TrimPrefix(h.key+": no values", ": ")
	}
	mid, far := h.at(0.5), h.at(0.99)
	line := fmt.Sprintf("median %s to %s, p99 %s to %s, %s values", h.value(mid.low),
		h.value(mid.high), h.value(far.low), h.value(far.high), count(n))
	if last := h.at(1); n < enoughForP99 {
		line = fmt.Sprintf("%s, median %s to %s, the largest %s to %s",
			attach.Plural(int(n), "value"), h.value(mid.low), h.value(mid.high), h.value(last.low), h.value(last.high))
	}
	if s := h.seconds(); s > 0 && n > 0 {
		said := 0.0
		for _, least := range []float64{0.001, 0.010} {
			if over := h.from(least / s); over > 0 && over == said {
				break
			} else if over > 0 {
				said = over
				line += fmt.Sprintf("; %s (%s) from %s on", count(over), pct(over/n), h.value(h.border(least/s)))
			} else if h.cut {
				line += "; it is cut off above " + h.value(h.buckets[len(h.buckets)-1].high)
				break
			} else {
				line += "; none from " + h.value(h.border(least/s)) + " on"
				break
			}
		}
	}
	if last := h.at(1); n >= enoughForP99 && !h.cut && last.low > far.low {
		line += fmt.Sprintf("; the largest %s to %s", h.value(last.low), h.value(last.high))
	}
	if h.wrong > 0 {
		line += fmt.Sprintf("; %s of more than 30 years left out, which a clock gives that went backwards", count(h.wrong))
	}
	if h.key != "" {
		line = h.key + ": " + line
	}
	return line
}

// sum says between what the values add up to; "" if they are no times, or some are not in it.
func (h *histogram) sum() string {
	s, low, high := h.seconds(), 0.0, 0.0
	if s == 0 || h.cut || h.wrong > 0 {
		return ""
	}
	for _, b := range h.buckets {
		low += b.n * b.low
		high += b.n * b.high
	}
	return fmt.Sprintf("; %s to %s in all", lasts(low*s), lasts(high*s))
}

// average is what a line below a histogram says: the mean and the sum of all of its values.
var average = pattern.New(`^avg = \d+ ([num]?secs), total: (\d{1,18}) \w+, count: (\d{1,15})$`)

// addUp notes what such a line says.
func (h *histogram) addUp(text string) {
	m := average.FindStringSubmatch(text)
	if m == nil {
		return
	}
	total, _ := number(m[2])
	n, _ := number(m[3])
	h.added += total * (&histogram{unit: m[1]}).seconds()
	h.counted += n
}

// told says what the tool itself added up; "" if it is not of all values that are here.
func (h *histogram) told() string {
	if h.added <= 0 || h.counted != h.total() {
		return ""
	}
	return fmt.Sprintf("; %s in all, %s on average", lasts(h.added), lasts(h.added/h.counted))
}

// border is where the first bucket starts that counts as at least this large; past the last one,
// from where on there is nothing for sure.
func (h *histogram) border(least float64) float64 {
	for _, b := range h.buckets {
		if b.low >= least*0.95 && b.n > 0 {
			return b.low
		}
	}
	if end := h.end(); end > least*1.05 {
		return end
	}
	return least
}

// latency reports whether a map's name says that its values are times which somebody waited.
func (h *histogram) latency() bool {
	name := strings.TrimPrefix(mapName(h.label), "@")
	return h.seconds() > 0 && slices.ContainsFunc(strings.Split(strings.ToLower(name), "_"),
		func(w string) bool { return latencyWords[w] })
}

var latencyWords = words("lat latency latencies delay wait waited waiting")
