package kinds

import (
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/whystall/whystall/internal/attach"
)

// dense is a text of lines of one kind, made as it is read.
type dense struct {
	line func(i int) string
	left int
	i    int
	rest string
}

func (d *dense) Read(b []byte) (n int, err error) {
	for n < len(b) {
		if d.rest == "" {
			if d.left <= 0 {
				return n, io.EOF
			}
			d.rest = d.line(d.i)
			d.i++
			d.left -= len(d.rest)
		}
		c := copy(b[n:], d.rest)
		d.rest = d.rest[c:]
		n += c
	}
	return n, nil
}

// A text that has nothing but lines of one kind is held within bounds, whatever its length: what is
// kept of it, with what was said of it, and what reading it leaves behind at its end.
func TestHeldOfDenseTexts(t *testing.T) {
	gc := func(i int) string {
		return fmt.Sprintf("gc %d @%.3fs 1%%: 0.034+41+0.004 ms clock, 0.068+0.20/24/49+0.009 ms cpu, 30->30->15 MB, 31 MB goal, 2 P\n", i+1, float64(i)/2)
	}
	strace := func(i int) string {
		return fmt.Sprintf("2210 10:%02d:%02d.%06d read(7, \"GET /items/%d\"..., 4096) = 212 <0.000%03d>\n", i/60000%60, i/1000%60, i%1000*1000, i, i%900)
	}
	vmstat := func(i int) string {
		if i == 0 {
			return "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n"
		}
		return fmt.Sprintf(" %d  0      0 %d 123456 4567890    0    0    12    %d 1200 %d 10  3 86  1  0\n", i%5, 800000+i%1000, i%50, 2300+i%100)
	}
	for _, c := range []struct {
		name string
		line func(i int) string
		size int
		kind string
		most uint64 // bytes held
	}{
		{"gctrace of 12 MB", gc, 12e6, "gctrace", 12 << 20},
		{"strace of 12 MB", strace, 12e6, "strace", 16 << 20},
		{"vmstat of 7 MB", vmstat, 7e6, "vmstat N", 24 << 20},
		{"vmstat of 12 MB", vmstat, 12e6, "vmstat N", 16 << 20},
	} {
		all := Table()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		parts, _, _, err := attach.Stream("x", &dense{line: c.line, left: c.size}, all)
		a := attach.Explain(parts, nil)
		runtime.GC()
		runtime.ReadMemStats(&after)
		if err != nil || len(parts) == 0 || parts[0].Kind.Name != c.kind {
			t.Errorf("%s: %d parts, %v", c.name, len(parts), err)
		} else if len(a.Told) == 0 || len(a.Told[0].Figures) == 0 {
			t.Errorf("%s: nothing is said of it", c.name)
		}
		if held := after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc); held > c.most {
			t.Errorf("%s: %d bytes are held, want at most %d", c.name, held, c.most)
		} else {
			t.Logf("%s: %.1f MiB held", c.name, float64(held)/(1<<20))
		}
		runtime.KeepAlive(a)
		runtime.KeepAlive(parts)
	}
}
