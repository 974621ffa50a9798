package kernelfile

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

// printed bounds and cleans what a paste puts into a sentence.
func printed(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd || r >= 0x80 && r < 0xa0 || r >= 0x202a &&
			r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '?'
		}
		return r
	}, text)
	if r := []rune(text); len(r) > 80 {
		return string(r[:77]) + "..."
	}
	return text
}

// float is the number that a pattern found; 0 where it found none.
func float(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

// mem writes bytes with a binary unit.
func mem(bytes float64) string {
	if !(bytes >= 0) || bytes > 1<<62 {
		return "?"
	}
	return finding.Bytes(int64(bytes))
}

// dur writes ns with a unit.
func dur(ns float64) string {
	if !(ns >= 0) || ns > 1<<62 {
		return "?"
	}
	return finding.Duration(int64(ns))
}

// age writes ns in days where they are many.
func age(ns float64) string {
	if days := ns / 86400e9; days >= 2 {
		return fmt.Sprintf("%.1f days", days)
	}
	return dur(ns)
}

// percent writes a share.
func percent(share float64) string {
	switch p := share * 100; {
	case math.IsNaN(p) || math.IsInf(p, 0):
		return "?"
	case p == 0 || p >= 9.95:
		return fmt.Sprintf("%.0f %%", p)
	case p < 0.05:
		return "under 0.1 %"
	default:
		return fmt.Sprintf("%.1f %%", p)
	}
}

// number writes a count with blanks between thousands, or a small figure with its decimals.
func number(v float64) string {
	if math.IsNaN(v) || math.Abs(v) > 1e18 {
		return "?"
	}
	if math.Abs(v) < 100 && v != math.Trunc(v) {
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
	}
	text := fmt.Sprintf("%.0f", v)
	sign := ""
	if text[0] == '-' {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		if len(text) > 4 || i < len(text)-3 {
			text = text[:i] + " " + text[i:]
		}
	}
	return sign + text
}

// plural writes a count and its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(float64(n)) + " " + many
}

func ratio(part, whole float64) float64 {
	if !(whole > 0) {
		return 0
	}
	return part / whole
}
