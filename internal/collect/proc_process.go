package collect

import (
	"context"
	"io"
	"time"

	"github.com/whystall/whystall/internal/evidence"
)

var _ = registerLocal(&Local{
	Name:   "process",
	Doc:    "Reads stat of the process ten times a second, status once a second, limits and io at the start and the end.",
	Order:  20,
	Tier:   TierSystem,
	Member: "process.txt",
	Probe:  func(p Process) error { return canRead(p, pidFile(p.PID, "stat")) },
	Record: recordProcess,
})

func recordProcess(ctx context.Context, p Process, w io.Writer) (*evidence.Cost, error) {
	r := newReadings(p, w)
	edge := func() {
		for _, name := range []string{"stat", "status", "limits", "io"} {
			r.file(pidFile(p.PID, name), nil)
		}
	}
	if r.do(edge) {
		r.every(ctx, 100*time.Millisecond, func(n int) {
			r.file(pidFile(p.PID, "stat"), nil)
			if n%10 == 0 {
				r.file(pidFile(p.PID, "status"), nil)
			}
		})
	}
	r.do(edge)
	return r.end()
}
