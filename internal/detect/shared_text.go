package detect

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/whystall/whystall/internal/account"
)

func percent(r float64) string {
	if r > 0 && r < 0.095 {
		return fmt.Sprintf("%.1f %%", r*100)
	}
	return fmt.Sprintf("%.0f %%", r*100)
}

func ratio(a, b int64) float64 {
	if b <= 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// scale is x*part/whole without overflow; 0 if there is no whole.
func scale(x, part, whole int64) int64 {
	if x <= 0 || part <= 0 || whole <= 0 {
		return 0
	}
	if part >= whole {
		return x
	}
	hi, lo := bits.Mul64(uint64(x), uint64(part))
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(q)
}

func perRequest(c *account.Column, ns int64) int64 {
	if c.Requests == 0 {
		return 0
	}
	return ns / int64(c.Requests)
}

// usualNS is the same account's amount in the median column.
func usualNS(r *account.Result, a *account.Account) int64 {
	for i := range r.Median.Accounts {
		m := &r.Median.Accounts[i]
		if m.Class == a.Class && m.Leaf == a.Leaf && m.Actor == a.Actor && m.Site == a.Site && m.Detail == a.Detail {
			return m.NS
		}
	}
	return 0
}

// sites prints the largest places, with their shares of whole.
func sites(ss []account.Site, whole int64, most int) string {
	var parts []string
	for i, s := range ss {
		if i == most {
			break
		}
		t := s.Func
		if s.File != "" && s.Line > 0 {
			t += fmt.Sprintf(" (%s:%d)", base(s.File), s.Line)
		}
		if s.Via != "" {
			t += " through " + s.Via
		}
		if whole > 0 {
			t += " " + percent(ratio(s.NS, whole))
		}
		parts = append(parts, t)
	}
	return strings.Join(parts, ", ")
}

func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// times prints a number of things: "1 wait", "2 waits".
func times(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
