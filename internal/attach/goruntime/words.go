package goruntime

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

// ms writes milliseconds.
func ms(v float64) string { return finding.Duration(int64(v*1e6 + 0.5)) }

// seconds writes seconds.
func seconds(v float64) string { return ms(v * 1e3) }

// percent writes a share of 1.
func percent(v float64) string {
	switch p := 100 * v; {
	case p == 0:
		return "0 %"
	case p < 0.1:
		return "under 0.1 %"
	case p < 10:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}

// count writes a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// waits is "1 waits" or "7 wait".
func waits(n int) string { return count(n, "waits", "wait") }

// each writes a rate per second.
func each(v float64) string {
	if v >= 10 {
		return fmt.Sprintf("%.0f", v)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// number parses what a runtime prints: no sign, no exponent that is out of bounds.
func number(s string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return v, err == nil && v >= 0 && v < 1e15
}

// whole parses a decimal number of at most nine digits.
func whole(s string) (int, bool) {
	if len(s) == 0 || len(s) > 9 {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0
}

// digits is how many digits a string starts with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// ratio is a/b, 0 where there is no b.
func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// byMost sorts keys by their counts, the largest first.
func byMost[K cmp.Ordered](m map[K]int) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b K) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	return keys
}

// decimal writes bytes with the units that people divide by in their heads: 374069984 is 374 MB.
func decimal(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if v >= u.size {
			return strconv.FormatFloat(v/u.size, 'g', 3, 64) + " " + u.name
		}
	}
	return fmt.Sprintf("%.0f B", v)
}

// longest says how long n goroutines wait, the longest of them.
func longest(n, minutes int) string {
	if n == 1 {
		return ", for " + count(minutes, "minute", "minutes")
	}
	return ", the longest for " + count(minutes, "minute", "minutes")
}

// whole100 writes percent that are printed whole, without what is behind the point.
func whole100(v float64) string {
	if v < 1 {
		return "less than 1 %"
	}
	return fmt.Sprintf("%.0f %%", v)
}
