package collect

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/sensor/proc"
)

// maxSmaps is the resident memory up to which smaps_rollup is read. The kernel walks every page
// table entry with the target's mmap_lock held, and a thread that maps memory meanwhile waits.
const maxSmaps = 512 << 20

var _ = registerLocal(&Local{
	Name:   "smaps",
	Doc:    "Reads smaps_rollup of the process once, at the end, and not at all where more than 512 MiB are resident: it takes the process' mmap_lock.",
	Order:  25,
	Tier:   TierSystem,
	Member: "smaps_rollup.txt",
	Probe: func(p Process) error {
		if err := smallEnough(p); err != nil {
			return err
		}
		// Opening checks the permission; only reading walks the page tables.
		return canOpen(p, pidFile(p.PID, "smaps_rollup"))
	},
	Record: recordSmaps,
})

func smallEnough(p Process) error {
	b, err := readAtMost(proc.FS{Root: p.Root}.Path(pidFile(p.PID, "status")), 64<<10)
	if err != nil {
		return fmt.Errorf("read %s: %w", pidFile(p.PID, "status"), root(err))
	}
	kb, err := strconv.ParseInt(strings.TrimSuffix(statusField(b, "VmRSS"), " kB"), 10, 64)
	if err != nil {
		return fmt.Errorf("read %s: no VmRSS", pidFile(p.PID, "status"))
	}
	if kb<<10 > maxSmaps {
		return fmt.Errorf("read smaps_rollup: not done: %d MiB are resident, and reading it would hold up threads that map memory; the process' share of huge pages is not known (it is read up to %d MiB)", kb>>10, maxSmaps>>20)
	}
	return nil
}

func recordSmaps(ctx context.Context, p Process, w io.Writer) (*evidence.Cost, error) {
	if p.Recording != nil {
		p.Recording()
	}
	<-ctx.Done()
	// The process may have grown meanwhile.
	if err := smallEnough(p); err != nil {
		return nil, err
	}
	r := newReadings(p, w)
	ordinary(func() {
		r.do(func() {
			r.file(pidFile(p.PID, "smaps_rollup"), nil)
			r.file(pidFile(p.PID, "status"), nil)
		})
	})
	return r.end()
}
