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

// timesOr is times, with a word of its own for never.
func timesOr(n int, never string) string {
	if n == 0 {
		return never
	}
	return times(n)
}

// mostTied is how many names are listed that share the first place.
const mostTied = 3

// chiefly says which of several names counts most: the only one, the one with more than half, the
// one with more than any other, or all that share the first place. Each has before in front of it.
func chiefly[V int | float64](n map[string]V, before string) string {
	names, all := attach.Largest(n), V(0)
	if len(names) == 0 {
		return ""
	}
	for _, v := range n {
		all += v
	}
	tied := 1
	for tied < len(names) && n[names[tied]] == n[names[0]] {
		tied++
	}
	switch {
	case len(names) == 1:
		return before + names[0]
	case tied > 1 && tied <= mostTied:
		return "as often " + before + strings.Join(names[:tied], " as "+before)
	case tied > 1:
		return fmt.Sprintf("as often %s%s as %d others", before, names[0], tied-1)
	case 2*n[names[0]] > all:
		return "mostly " + before + names[0]
	}
	return "most often " + before + names[0]
}

// lateRequest is in s what a request does not take that is answered fast.
const lateRequest = 1.0

// fastAsARule says of requests whose median is short that they are fast, and how many are not.
func (r *result) fastAsARule(took []float64) attach.Reading {
	late := 0
	for _, v := range took {
		if v >= lateRequest {
			late++
		}
	}
	r.Means = "Requests are answered fast in the median."
	if late == 0 {
		return r.done(attach.Healthy)
	}
	r.Means = fmt.Sprintf("Requests are answered fast in the median; %d of %d took %s or longer.",
		late, len(took), dur(lateRequest))
	return r.done(attach.CannotTell)
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

// sampleGap says where samples are missing: they come at one interval.
func sampleGap(r *result, at []time.Time) bool {
	var steps []float64
	for i := 1; i < len(at); i++ {
		steps = append(steps, at[i].Sub(at[i-1]).Seconds())
	}
	if len(steps) < 3 || slices.Max(steps) < 5*attach.Median(steps) || slices.Max(steps) < 10 {
		return false
	}
	r.figure(fmt.Sprintf("no sample for %s, where they come every %s", dur(slices.Max(steps)),
		dur(attach.Median(steps))))
	return true
}
