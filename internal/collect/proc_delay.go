package collect

import (
	"context"
	"io"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/sensor/proc"
)

var _ = registerLocal(&Local{
	Name:   "delays",
	Doc:    "Reads the kernel's delay accounting of the process once a second: block devices, swapping, reclaim, compaction.",
	Order:  24,
	Tier:   TierSystem,
	Member: "delays.txt",
	Probe: func(p Process) error {
		t, err := proc.OpenTaskstats()
		if err != nil {
			return err
		}
		defer t.Close()
		_, err = t.Process(p.PID)
		return err
	},
	Record: recordDelays,
})

func recordDelays(ctx context.Context, p Process, w io.Writer) (*evidence.Cost, error) {
	t, err := proc.OpenTaskstats()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	r := newReadings(p, w)
	once := func() {
		text, err := t.Process(p.PID)
		if err == nil {
			r.n++
			r.text("taskstats", text)
		}
	}
	ok := r.do(func() {
		// Unless this is on, only the first of the delays is counted, and the rest are 0.
		r.file("/proc/sys/kernel/task_delayacct", nil)
		once()
	})
	if ok {
		r.every(ctx, time.Second, func(int) { once() })
	}
	r.do(once)
	return r.end()
}
