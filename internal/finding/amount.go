package finding

import (
	"fmt"
	"math"
	"strconv"
)

// Duration writes ns with three figures and a unit.
func Duration(ns int64) string {
	f := float64(ns)
	switch {
	case ns < 0:
		return "-" + Duration(-max(ns, -math.MaxInt64)) // the least number has no negative
	case f >= 999.5e6:
		return figures(f/1e9) + " s"
	case f >= 999.5e3:
		return figures(f/1e6) + " ms"
	case f >= 999.5:
		return figures(f/1e3) + " us"
	}
	return strconv.FormatInt(ns, 10) + " ns"
}

// Bytes writes an amount of memory with three figures and a binary unit.
func Bytes(n int64) string {
	f := float64(n)
	switch {
	case f >= 1<<30:
		return figures(f/(1<<30)) + " GiB"
	case f >= 1<<20:
		return figures(f/(1<<20)) + " MiB"
	case f >= 1<<10:
		return figures(f/(1<<10)) + " KiB"
	}
	return fmt.Sprintf("%d B", n)
}

func figures(f float64) string {
	switch {
	case f >= 99.95:
		return fmt.Sprintf("%.0f", f)
	case f >= 9.995:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}
