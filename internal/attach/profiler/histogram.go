package profiler

import (
	"strings"

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
	cut     bool    // it ends within a row: what is above is not in it
}

var (
	// "     1024 -> 2047       : 27       |*                   |"
	arrowRow = pattern.New(`^\(?(\d+)\s*->\s*(\d+)\)?\s*:\s*(\d+)\s*(\|.*)?$`)
	// "  1.0 -> 7.9       : 38       |#      |", with open ends: bitesize of perf-tools
	openRow = pattern.New(`^(\d+\.\d)?\s*->\s*(\d+\.\d)?\s*:\s*(\d+)\s*\|[# ]*\|$`)
	// "     3      : 27       |*        |" as runqlen prints it
	singleRow = pattern.New(`^(\d+)\s*:\s*(\d+)\s*\|[* ]*\+?\|?$`)
	// "[16, 32)             725 |@@                |", "[0]  12 |@|", "(..., 0)  5 ||"
	bracketRow = pattern.New(`^[\[(]([-\d.]+[KMGTP]?)(?:, ?([-\d.]+[KMGTP]?|\.\.\.)[\])]|\])\s+(\d+)\s*(\|.*)?$`)
	// "     usecs               : count     distribution"
	// "  >=(ms) .. <(ms)   : I/O      |Distribution      |" in perf-tools
	arrowHead = pattern.New(`^(.*?\S)\s*:\s*(?:count\s+distribution|I/O\s+\|?Distribution\s*\|?)$`)
	// "        64 -> 127        :", "[64, 12": a row that the end of the text cut
	cutRow = pattern.New(`^(?:\d+\s*->\s*\d*\s*:?|\[\d+[KMGTP]?,(?: ?\d*[KMGTP]?\)?)?)$`)
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

// power reads a border such as 512, 1K or 256M: bpftrace's K is 1024.
func power(s string) (float64, bool) {
	if s == "..." {
		return 0, true
	}
	factor := 1.0
	if i := strings.IndexByte("KMGTP", s[len(s)-1]); i >= 0 {
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
	words := strings.FieldsFunc(strings.ToLower(label), func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') })
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
