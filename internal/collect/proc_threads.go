package collect

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/format"
)

var _ = registerLocal(&Local{
	Name:   "threads",
	Doc:    "Reads schedstat and switches of the process' threads at the start and the end, and their states now and then, one by one, as top does.",
	Order:  21,
	Tier:   TierSystem,
	Member: "threads.txt",
	Probe:  func(p Process) error { return canRead(p, pidFile(p.PID, "task/"+strconv.Itoa(p.PID)+"/schedstat")) },
	Record: recordThreads,
})

// How many threads are read: a reading costs some us. After each round readings.every pauses for so
// long that all of them cost a thousandth of a CPU.
const (
	maxThreads = 512
	maxGlance  = 128
)

func recordThreads(ctx context.Context, p Process, w io.Writer) (*evidence.Cost, error) {
	r := newReadings(p, w)
	sums := func() { r.sums(p.PID) }
	if r.do(sums) {
		r.every(ctx, glanceEvery, func(int) { r.glance(p.PID) })
	}
	r.do(sums)
	return r.end()
}

// glanceEvery is out of step with the 100 ms periods of CPU quotas: in step it would see the same
// part of each period again and again.
const glanceEvery = 230 * time.Millisecond

// sums writes for each thread how long it ran and was queued, and how often it switched, as one
// reading: "TID: schedstat's three numbers, voluntary, involuntary".
func (r *readings) sums(pid int) {
	tids, all, err := r.fs.Threads(pid, maxThreads)
	if err != nil {
		return
	}
	t := monotonic()
	text := fmt.Appendf(nil, "threads %d\n", all)
	for _, tid := range tids {
		dir := r.fs.Path(pidFile(pid, "task/"+strconv.Itoa(tid)))
		sched, err := readAtMost(dir+"/schedstat", 200)
		if err != nil {
			continue // the thread ended, or the kernel has no such file
		}
		status, err := readAtMost(dir+"/status", 8<<10)
		if err != nil {
			continue
		}
		r.n += 2
		text = fmt.Appendf(text, "%d: %s %s %s\n", tid, bytes.TrimSpace(sched),
			statusField(status, "voluntary_ctxt_switches"), statusField(status, "nonvoluntary_ctxt_switches"))
	}
	r.buf = format.AppendReading(r.buf, t, pidFile(pid, "task/*/schedstat"), text)
}

// glance writes each thread's name and state.
func (r *readings) glance(pid int) {
	tids, all, err := r.fs.Threads(pid, maxGlance)
	if err != nil {
		return
	}
	t := monotonic()
	text := fmt.Appendf(nil, "threads %d\n", all)
	for _, tid := range tids {
		b, err := readAtMost(r.fs.Path(pidFile(pid, "task/"+strconv.Itoa(tid)+"/stat")), 1<<10)
		if err != nil {
			continue
		}
		r.n++
		// "TID (comm) S": the rest of the line is about the process, or in schedstat.
		if end := bytes.LastIndexByte(b, ')'); end > 0 && end+3 <= len(b) {
			text = append(append(text, bytes.ReplaceAll(b[:end+3], []byte("\n"), []byte(" "))...), '\n')
		}
	}
	r.buf = format.AppendReading(r.buf, t, pidFile(pid, "task/*/stat"), text)
}
