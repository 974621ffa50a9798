package database

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
)

// seconds reads a duration as Go prints it ("1.25s", "352.2µs", "1m2s"), as people write it ("200
// ms", "7.77 sec"), or a bare number of seconds. ok is false for anything else.
func seconds(s string) (v float64, ok bool) {
	s = strings.TrimRight(strings.TrimSpace(s), ",;})]")
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		return v, sane(v)
	}
	s = strings.ReplaceAll(strings.ReplaceAll(s, " ", ""), "μ", "µ")
	for _, u := range [][2]string{{"microseconds", "us"}, {"milliseconds", "ms"}, {"seconds", "s"},
		{"msec", "ms"}, {"usec", "us"}, {"sec", "s"}, {"min", "m"}} {
		if p, found := strings.CutSuffix(s, u[0]); found {
			s = p + u[1]
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, false
	}
	return d.Seconds(), sane(d.Seconds())
}

func sane(v float64) bool { return v >= 0 && v < 1e9 && !math.IsNaN(v) }

// dur prints seconds with three figures that matter: "1.25 s", "24.3 ms", "80 µs".
func dur(s float64) string {
	switch {
	case s == 0:
		return "0"
	case s >= 100:
		return fmt.Sprintf("%.0f s", s)
	case s >= 0.9995:
		return three(s) + " s"
	case s >= 0.0009995:
		return three(s*1e3) + " ms"
	}
	return three(s*1e6) + " µs"
}

// exact prints seconds to the millisecond, for differences.
func exact(s float64) string {
	if s < 1 {
		return dur(s)
	}
	return strconv.FormatFloat(s, 'f', 3, 64) + " s"
}

func three(v float64) string {
	prec := 2
	if v >= 9.995 {
		prec = 1
	}
	if v >= 99.95 {
		prec = 0
	}
	s := strconv.FormatFloat(v, 'f', prec, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// count prints a number of things: 99800100 as 99.8 M.
func count(v float64) string {
	switch {
	case v >= 1e9:
		return three(v/1e9) + " G"
	case v >= 1e6:
		return three(v/1e6) + " M"
	case v >= 1e4:
		return three(v/1e3) + " k"
	}
	return three(v)
}

func bytesText(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if v >= u.size {
			return three(v/u.size) + " " + u.name
		}
	}
	return three(v) + " bytes"
}

func percent(part, whole float64) string {
	if whole <= 0 {
		return "0 %"
	}
	return three(100*part/whole) + " %"
}

func number(s string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimRight(strings.TrimSpace(s), ",;})]"), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false
	}
	return v, true
}

func ratio(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return min(1, part/whole)
}

// withoutBlanks is a record of JSON as its program wrote it: many that pass logs on put a blank
// behind each colon. Any other line stays as it is.
func withoutBlanks(text string) string {
	if !strings.HasPrefix(text, "{") || !strings.Contains(text, `": `) {
		return text
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil {
		return text
	}
	return b.String()
}

// often says how often something took how long, in seconds.
func often(v []float64) string {
	if len(v) == 1 {
		return "once, " + dur(v[0])
	}
	return fmt.Sprintf("%s, %s", times(len(v)), spread(v))
}

// spread is the median of times and the longest of them, or the only one.
func spread(v []float64) string {
	if len(v) == 1 {
		return dur(v[0])
	}
	return fmt.Sprintf("median %s, at most %s", dur(attach.Median(v)), dur(slices.Max(v)))
}
