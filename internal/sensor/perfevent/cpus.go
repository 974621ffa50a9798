package perfevent

import (
	"fmt"
	"strconv"
	"strings"
)

const maxCPUs = 1 << 13

// parseCPUs reads a list of the kernel's: "0-3,8,10-11".
func parseCPUs(list string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("list of CPUs %.60q: %w", list, err)
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(to); err != nil {
				return nil, fmt.Errorf("list of CPUs %.60q: %w", list, err)
			}
		}
		if a < 0 || b < a || b >= maxCPUs || len(cpus)+b-a >= maxCPUs {
			return nil, fmt.Errorf("list of CPUs %.60q: no such range", list)
		}
		for ; a <= b; a++ {
			cpus = append(cpus, a)
		}
	}
	return cpus, nil
}
