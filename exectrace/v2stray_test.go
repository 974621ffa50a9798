package exectrace

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"time"
)

// A batch whose header's time is damaged does not stretch the recording, be it in the middle of the
// trace or forged behind its end.
func TestStrayTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a trace seven times")
	}
	data, err := os.ReadFile("testdata/srv-go1.22.12.trace")
	if err != nil {
		t.Fatal(err)
	}
	end := func(data []byte) (Time, int64, string) {
		tr, err := New(bytes.NewReader(data), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		var first, last Time
		for ev := range tr.Events() {
			if first == 0 {
				first = ev.Time
			}
			last = ev.Time
		}
		said := ""
		for _, g := range tr.Gaps() {
			said += g.Reason + "\n"
		}
		return last - first, tr.Stats().Events, said
	}
	whole, events, said := end(data)
	if said != "" {
		t.Fatalf("the trace as it is has gaps: %s", said)
	}
	// with is the trace with the time in the header at off moved.
	with := func(off int, moved func(uint64) uint64) []byte {
		i := off + 1
		for range 2 {
			_, n := binary.Uvarint(data[i:])
			i += n
		}
		ts, n := binary.Uvarint(data[i:])
		out := binary.AppendUvarint(append([]byte{}, data[:i]...), moved(ts))
		return append(out, data[i+n:]...)
	}
	var batches []int
	off := headerLen
	for off < len(data) {
		h, ok := parseHeader(data[off:])
		if !ok {
			t.Fatalf("no header at %d", off)
		}
		if h.kind == evEventBatch && h.m != ^uint64(0) {
			batches = append(batches, off)
		}
		off += h.n + h.size
	}
	hour := uint64(time.Hour / 64)
	for name, damaged := range map[string][]byte{
		"later, the first":  with(batches[0], func(ts uint64) uint64 { return ts + hour }),
		"later, the middle": with(batches[len(batches)/2], func(ts uint64) uint64 { return ts + hour }),
		"later, the last":   with(batches[len(batches)-1], func(ts uint64) uint64 { return ts + hour }),
		"earlier":           with(batches[len(batches)/2], func(ts uint64) uint64 { return ts - min(ts, hour) }),
		"zero, the first":   with(batches[1], func(uint64) uint64 { return 0 }),
		"behind the end": append(append([]byte{}, data...),
			with(batches[len(batches)-1], func(ts uint64) uint64 { return ts + hour })[batches[len(batches)-1]:]...),
	} {
		took, n, said := end(damaged)
		if took > whole || n >= events+10000 || !strings.Contains(said, " from all others") {
			t.Errorf("%s: %v of %v, %d events of %d, gaps: %s", name, took, whole, n, events, said)
		}
	}
}
