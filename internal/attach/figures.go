package attach

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Median is the middle value, of an even number the mean of the two in the middle; 0 of none.
func Median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(of))
	return (s[len(s)/2] + s[(len(s)-1)/2]) / 2
}

// Sum adds up values.
func Sum(of []float64) (total float64) {
	for _, v := range of {
		total += v
	}
	return total
}

// Largest lists the keys by falling value, and by name where these are the same.
func Largest[V cmp.Ordered](of map[string]V) []string {
	return slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
}

// Plural writes a number of things: "1 thread", "2 threads", "3 searches".
func Plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "ch") || strings.HasSuffix(one, "ss") {
		one += "e"
	}
	return strconv.Itoa(n) + " " + one + "s"
}
