//go:build !linux

package collect

import (
	"fmt"
	"runtime"

	"github.com/whystall/whystall/internal/evidence"
)

func identify(pid int, withArgs bool) (evidence.Target, procStat, error) {
	return evidence.Target{}, procStat{}, &Error{What: fmt.Sprintf("pid %d", pid),
		Why: "processes are recorded on Linux only, and this is " + runtime.GOOS +
			": give the service's address with --pprof"}
}

type life struct {
	pid   int
	start int64
	exe   string
}

func (l *life) look() (procStat, bool) { return procStat{}, true }

func children(int) []int { return nil }
