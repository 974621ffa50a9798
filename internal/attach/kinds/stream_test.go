package kinds

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/attach"
)

// longLog is lines of a web server with GC cycles among them, one in every so many lines.
func longLog(size, every int) []byte {
	var b bytes.Buffer
	for line, cycle := 0, 0; b.Len() < size; line++ {
		if line%every == 0 {
			cycle++
			fmt.Fprintf(&b, "gc %d @%.3fs 1%%: 0.034+41+0.004 ms clock, 0.068+0.20/24/49+0.009 ms cpu, 30->30->15 MB, 31 MB goal, 2 P\n", cycle, float64(cycle)/2)
			continue
		}
		fmt.Fprintf(&b, "2026-11-22T20:%02d:%02d.%03dZ INFO request method=GET path=/items/%d status=200 bytes=%d took=%dus\n", line/60000%60, line/1000%60, line%1000, line*7919%100000, line*31%9000, line*17%4000)
	}
	return b.Bytes()
}

// A long file gives what the whole of it would, read in windows.
func TestStreamOfLogs(t *testing.T) {
	data := longLog(20<<20, 3000)
	parts, _, _, err := attach.Stream("x", bytes.NewReader(data), Table())
	if err != nil || len(parts) != 1 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	want := bytes.Count(data, []byte("ms clock"))
	p := parts[0]
	if got := len(p.Lines); got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
	lines := strings.Split(string(data), "\n")
	for _, l := range p.Lines {
		if lines[l.N-1] != l.Text {
			t.Fatalf("line %d is %q, and not %q", l.N, lines[l.N-1], l.Text)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	data := longLog(100<<20, 500)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		attach.Stream("x", bytes.NewReader(data), Table())
	}
}
