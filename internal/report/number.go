package report

import (
	"fmt"
	"math/bits"
	"sort"
	"strconv"
)

// count prints n with spaces between thousands.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return count(n) + " " + one
	}
	return count(n) + " " + many
}

// cpus prints a quota: "0.5 CPU", "2 CPUs".
func cpus(n float64) string {
	if n <= 1 {
		return fmt.Sprintf("%.3g CPU", n)
	}
	return fmt.Sprintf("%.3g CPUs", n)
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", share*100) }

// apportion rounds parts to whole units that add up to the given number of units, as printed shares
// must. Each part gets its floor, and the largest remainders one more (the method of Hare and
// Niemeyer).
func apportion(parts []int64, units int64) []int64 {
	out := make([]int64, len(parts))
	var whole uint64
	for _, p := range parts {
		whole += uint64(max(p, 0))
	}
	if whole == 0 || units <= 0 {
		return out
	}
	rest := make([]uint64, len(parts))
	left := units
	for i, p := range parts {
		hi, lo := bits.Mul64(uint64(max(p, 0)), uint64(units))
		q, r := bits.Div64(hi%whole, lo, whole)
		out[i], rest[i] = int64(q), r
		left -= out[i]
	}
	order := make([]int, len(parts))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return rest[order[i]] > rest[order[j]] })
	for _, i := range order {
		if left == 0 {
			break
		}
		out[i]++
		left--
	}
	return out
}

// tenths prints a number of tenths: 680 is "68.0".
func tenths(n int64) string { return fmt.Sprintf("%d.%d", n/10, n%10) }

// scale is the unit of a column of the ledger.
type scale struct {
	digit    int64 // ns of the last digit that is printed
	decimals int
	name     string
}

// scaleFor returns a unit for numbers up to ns that shows at least four figures of the largest.
func scaleFor(ns int64) scale {
	switch {
	case ns >= 100e9:
		return scale{1e8, 1, "s"}
	case ns >= 10e9:
		return scale{1e7, 2, "s"}
	case ns >= 100e6:
		return scale{1e5, 1, "ms"}
	case ns >= 1e6:
		return scale{1e4, 2, "ms"}
	}
	return scale{1e2, 1, "us"}
}

func (s scale) print(digits int64) string {
	if s.decimals == 1 {
		return tenths(digits)
	}
	return fmt.Sprintf("%d.%02d", digits/100, digits%100)
}
