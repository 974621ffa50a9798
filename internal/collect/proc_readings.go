package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/format"
	"github.com/whystall/whystall/internal/sensor/proc"
)

// readings writes a member of the kernel's files as they came, one after another, each under a line
// with its time and path. A person can read it as well; format.Gather reads it back.
type readings struct {
	fs   proc.FS
	w    io.Writer
	buf  []byte
	n    int64 // files read
	cpu  int64 // ns of CPU time that the rounds took
	fail error // of writing the member; not that a file cannot be read, which the member says
}

// maxReading bounds one file: /proc/vmstat has 6 KB, the kept part of /proc/interrupts with 256
// CPUs 20 KB.
const maxReading = 1 << 20

func newReadings(p Process, w io.Writer) *readings {
	return &readings{fs: proc.FS{Root: p.Root}, w: w, buf: format.AppendReadingsHead(nil, os.Getpagesize(), userHZ)}
}

// file reads a file and writes the part of it that keep returns; nil keeps all. A file that does
// not exist leaves no trace, as older and newer kernels have different files. One that may not be
// read leaves its reason.
func (r *readings) file(name string, keep func([]byte) []byte) bool {
	t := monotonic()
	b, err := readAtMost(r.fs.Path(name), maxReading)
	r.n++
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
		return false
	case err != nil:
		r.buf = format.AppendUnread(r.buf, t, name, root(err).Error())
		return false
	}
	if keep != nil {
		b = keep(b)
	}
	r.buf = format.AppendReading(r.buf, t, name, b)
	return true
}

// text writes a text that did not come from a file.
func (r *readings) text(name, text string) {
	r.buf = format.AppendReading(r.buf, monotonic(), name, []byte(text))
}

// unread writes why something could not be read.
func (r *readings) unread(name, why string) {
	r.buf = format.AppendUnread(r.buf, monotonic(), name, why)
}

func (r *readings) flush() bool {
	if r.fail == nil && len(r.buf) > 0 {
		_, r.fail = r.w.Write(r.buf)
	}
	r.buf = r.buf[:0]
	return r.fail == nil
}

// do runs one round of readings and counts its CPU time, for which it locks the thread that long.
// It reports whether the member could be written.
func (r *readings) do(round func()) bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := threadCPU()
	round()
	ok := r.flush()
	r.cpu += threadCPU() - c
	return ok
}

// every runs a round each interval until ctx ends. After each thousand rounds it doubles the
// interval, so that an hour is bounded as well. A round that costs more than a thousandth of a CPU
// lengthens it at once.
func (r *readings) every(ctx context.Context, interval time.Duration, round func(n int)) {
	t := time.NewTimer(untilBeat(interval))
	defer t.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		before := r.cpu
		if !r.do(func() { round(n) }) {
			return
		}
		if n%1000 == 0 {
			interval *= 2
		}
		t.Reset(untilBeat(max(interval, min(time.Duration(r.cpu-before)*1000, 10*time.Second))))
	}
}

// beat is the unit of our own timers, which fire at multiples of it by the monotonic clock: waking
// up costs more than most of the work done then, and timers that fire together cost one wake-up.
const beat = 100 * time.Millisecond

// untilBeat is the time until a timer of ours fires: about interval, up to a multiple of beat if
// interval is one.
func untilBeat(interval time.Duration) time.Duration {
	if interval%beat != 0 {
		return interval
	}
	return max(interval-time.Duration(monotonic())%beat, interval/2)
}

// end writes what is left and returns the cost of all rounds, as Record returns it.
func (r *readings) end() (*evidence.Cost, error) {
	r.flush()
	return &evidence.Cost{CPUNS: r.cpu, Records: r.n}, r.fail
}

func readAtMost(name string, limit int64) ([]byte, error) {
	// Package os would ask whether the file can be polled, which costs more than reading it.
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer syscall.Close(fd)
	b := make([]byte, 0, 4096)
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := syscall.Read(fd, b[len(b):cap(b)])
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: name, Err: err}
		case n == 0:
			return b, nil
		default:
			if b = b[:len(b)+n]; int64(len(b)) >= limit {
				return b[:limit], nil
			}
		}
	}
}

// keepLines returns a filter for the lines whose first word, without a colon at its end, is wanted.
func keepLines(want func(first string) bool) func([]byte) []byte {
	return func(b []byte) (out []byte) {
		for line := range bytes.Lines(b) {
			f := bytes.TrimLeft(line, " \t")
			end := bytes.IndexAny(f, " \t\n:")
			if end >= 0 && want(string(f[:end])) {
				out = append(out, line...)
			}
		}
		return out
	}
}

func pidFile(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// canRead is a probe: it reads the file, at most 64 KiB of it.
func canRead(p Process, name string) error {
	_, err := readAtMost(proc.FS{Root: p.Root}.Path(name), 1<<16)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, root(err))
	}
	return nil
}

// canOpen is a probe for files that are costly to read.
func canOpen(p Process, name string) error {
	f, err := os.Open(proc.FS{Root: p.Root}.Path(name))
	if err != nil {
		return fmt.Errorf("open %s: %w", name, root(err))
	}
	return f.Close()
}
