package exectrace

import (
	"encoding/binary"
	"slices"
	"syscall"
	"testing"
	"time"
)

// excerpt makes a small trace of a fixture: its first batches of each kind, each cut after size
// bytes.
func excerpt(tb testing.TB, name string, version string, size int) []byte {
	data := readFixture(tb, name)
	out := append([]byte{}, data[:headerLen]...)
	copy(out[3:7], version)
	v, err := sniff(out)
	if err != nil {
		tb.Fatal(err)
	}
	x := &indexer{data: data, off: headerLen, version: v}
	for range 2 {
		g := x.next()
		if g == nil {
			break
		}
		var spans []span
		for _, b := range g.batches[:min(4, len(g.batches))] {
			spans = append(spans, b.span)
		}
		spans = append(spans, g.strings[:min(1, len(g.strings))]...)
		spans = append(spans, g.stacks[:min(1, len(g.stacks))]...)
		spans = append(spans, g.samples[:min(1, len(g.samples))]...)
		for k, s := range spans {
			b := data[s.off:min(s.end, s.off+size)]
			m, ts := ^uint64(0), g.minTs
			if k < len(g.batches) && k < 4 {
				m, ts = g.batches[k].m, g.batches[k].ts
			}
			out = append(out, evEventBatch)
			for _, u := range []uint64{g.num, m, ts, uint64(len(b))} {
				out = binary.AppendUvarint(out, u)
			}
			out = append(out, b...)
		}
		out = append(out, evEventBatch)
		for _, u := range []uint64{g.num, ^uint64(0), g.minTs, 5} {
			out = binary.AppendUvarint(out, u)
		}
		out = append(out, evFrequency, 0x88, 0xd9, 0xb9, 0x07)
		if v >= 26 {
			out = append(out, evEndOfGeneration)
		}
	}
	return out
}

func FuzzV2(f *testing.F) {
	for _, size := range []int{40, 400, 4000} {
		f.Add(excerpt(f, "srv-go1.22.12", "1.22", size))
		f.Add(excerpt(f, "srv-go1.22.12", "1.23", size))
		f.Add(excerpt(f, "srv-go1.26", "1.25", size))
		f.Add(excerpt(f, "srv-go1.26", "1.26", size))
		f.Add(excerpt(f, "caddy-go1.26", "1.26", size))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if v, err := sniff(data); err != nil || v < 22 || len(data) > 1<<20 {
			return
		}
		before := cpuTime()
		a, _ := checkAll(t, slices.Clone(data), 1)
		b, _ := checkAll(t, data, 3)
		if a != b {
			t.Fatalf("%+v with one worker, %+v with three", a, b)
		}
		// What is linear takes milliseconds, and what is not, minutes: of this process's CPU, since
		// the machine's clock goes on for others.
		if d := cpuTime() - before; d > 20*time.Second {
			t.Fatalf("%d bytes took %v", len(data), d)
		}
	})
}

// cpuTime is what this process used outside the kernel.
func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano())
}
