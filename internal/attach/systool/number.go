package systool

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// number reads a figure as tools print it: 12, 1.5, 1,5 where the locale has a decimal comma, 12%,
// 1,234 with a comma between thousands. NaN and infinities are none.
func number(s string) (float64, bool) {
	s = strings.TrimSuffix(s, "%")
	if s == "" || len(s) > 32 {
		return 0, false
	}
	if whole, part, ok := strings.Cut(s, ","); ok {
		switch {
		case strings.ContainsAny(part, ",."), len(part) == 3 && strings.Trim(whole, "-0") != "":
			s = strings.ReplaceAll(s, ",", "")
		default:
			s = whole + "." + part
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || strings.ContainsAny(s, "xXpP_") {
		return 0, false
	}
	return f, true
}

// whole reads a number without a fraction or a sign.
func whole(s string) (int, bool) {
	if len(s) > 18 {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && s[0] != '+'
}

// numeric reports whether all of these are figures.
func numeric(cells []string) bool {
	return !slices.ContainsFunc(cells, func(c string) bool { _, ok := number(c); return !ok })
}

// figures reports whether one of these is a figure: a line of names has none, and where rows were
// put behind it, it has.
func figures(cells []string) bool {
	return slices.ContainsFunc(cells, func(c string) bool { _, ok := number(c); return ok })
}

// binaryPrefixes in the order of their powers of 1024.
const binaryPrefixes = "kmgtpe"

// size reads an amount of memory in bytes: 512, 6.5m, 3.7Gi, 1.2GiB, 15kB. A figure without a unit
// is multiplied by unit.
func size(s string, unit float64) (float64, bool) {
	end := strings.LastIndexAny(s, "0123456789") + 1
	f, ok := number(s[:end])
	if !ok {
		return 0, false
	}
	suffix := strings.ToLower(s[end:])
	if suffix == "" {
		return f * unit, true
	}
	power := strings.IndexByte(binaryPrefixes, suffix[0]) + 1
	rest := suffix
	if power > 0 {
		rest = suffix[1:]
	}
	if rest != "" && rest != "b" && rest != "ib" && rest != "i" {
		return 0, false
	}
	return f * math.Pow(1024, float64(power)), true
}

// humanSize is size for tools of containers, whose kB, MB and GB are decimal; KiB and MiB are not.
func humanSize(s string) (float64, bool) {
	f, ok := size(s, 1)
	if n := len(s); ok && n > 2 && s[n-1] == 'B' && s[n-2] != 'i' {
		power := strings.IndexByte(binaryPrefixes, strings.ToLower(s)[n-2]) + 1
		f *= math.Pow(1000.0/1024, float64(power))
	}
	return f, ok
}

// plain writes a figure with at most two decimals, and none that mean nothing.
func plain(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "?"
	}
	digits := 2
	switch {
	case math.Abs(f) >= 1000:
		digits = 0
	case math.Abs(f) >= 100:
		digits = 1
	}
	s := strconv.FormatFloat(f, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if digits == 0 && math.Abs(f) >= 1e4 {
		return thousands(s)
	}
	return s
}

// fixed writes a load average as all tools do.
func fixed(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

// thousands sets groups of three digits apart by a blank.
func thousands(s string) string {
	for at := len(s) - 3; at > 0 && s[at-1] != '-'; at -= 3 {
		s = s[:at] + " " + s[at:]
	}
	return s
}

// bounded makes a float of an untrusted text fit to be written as bytes.
func bounded(f float64) int64 {
	if f < 0 || f != f {
		return 0
	}
	return int64(min(f, 1<<62))
}
