package format

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// KindGCTrace is a log that holds lines of GODEBUG=gctrace=1.
const KindGCTrace Kind = "gctrace lines"

// A gctrace line may be quoted: in the help of a metric, or in the text of a record.
var _ = register(&row{
	kind: KindGCTrace, name: "gctrace", rank: rankLog,
	line:     func(line string) bool { return gctraceStart(line) >= 0 },
	anywhere: hasGCTrace,
	yields:   []Kind{KindMetrics, KindRecords},
	parse:    alone(func(log []byte, _ int64) ([]evidence.Record, error) { return GCTrace(log) }),
	streams: []evidence.Stream{ // Time is ns since the program started
		{Name: "/go/gctrace/cycle:ns",
			Doc: "Interval. One GC cycle, first stop-the-world to last; Value its wall time."},
		{Name: "/go/gctrace/stw:ns", Doc: "Sample. Stop-the-world time of the cycle that started then."},
		{Name: "/go/gctrace/cpu:percent", Doc: "Sample. Share of CPU time since the program started that GC used."},
		{Name: "/go/gctrace/forced:events", Doc: "Event. The cycle was asked for by runtime.GC."},
	},
	also: []string{"/go/gc/cycles:gc-cycles", "/go/gc/heap/goal:bytes", "/go/gc/heap/live:bytes",
		"/go/sched/gomaxprocs:threads"},
})

// maxCycles bounds what a log can make us hold: days of an ordinary program, half an hour of one at
// 50 cycles a second.
const maxCycles = 100_000

// GCTrace parses the lines that GODEBUG=gctrace=1 prints, wherever they stand in a log. Their shape
// since Go 1.5 (package runtime's documentation):
//
//	gc 7 @1.234s 5%: 0.018+1.2+0.003 ms clock, 0.14+0.35/1.1/0+0.02 ms cpu, 4->5->1 MB,
//	4 MB goal, 0 MB stacks, 0 MB globals, 8 P (forced)
//
// The line is one; Time is ns since the program started. A line that starts like this and goes on
// otherwise is an error; the rest is returned with it.
func GCTrace(log []byte) ([]evidence.Record, error) {
	var (
		out    []evidence.Record
		first  error
		text   = string(log)
		cycles int
	)
	for n := 1; text != ""; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		at := gctraceStart(line)
		if at < 0 {
			continue
		}
		if cycles++; cycles > maxCycles {
			return out, fmt.Errorf("read gctrace: line %d: more than %d cycles: the rest is left out", n, maxCycles)
		}
		records, err := gctraceLine(line[at:])
		if err != nil && first == nil {
			first = fmt.Errorf("read gctrace: line %d: %w", n, err)
		}
		out = append(out, records...)
	}
	return out, first
}

// gctraceStart returns the offset of "gc 7 @" in a line of a log, -1 if it is not there.
func gctraceStart(line string) int {
	for from := 0; ; {
		i := strings.Index(line[from:], "gc ")
		if i < 0 {
			return -1
		}
		i += from
		digits := strings.TrimLeft(line[i+3:], "0123456789")
		boundary := i == 0 || strings.ContainsRune(" \t:|\"", rune(line[i-1]))
		if boundary && len(digits) < len(line)-i-3 && strings.HasPrefix(digits, " @") {
			return i
		}
		from = i + 3
	}
}

// hasGCTrace reports whether a log has such a line anywhere.
func hasGCTrace(log []byte) bool {
	for len(log) > 0 {
		line, rest, _ := bytes.Cut(log, []byte("\n"))
		if bytes.Contains(line, []byte("gc ")) && gctraceStart(string(line)) >= 0 {
			return true
		}
		log = rest
	}
	return false
}

func gctraceLine(line string) ([]evidence.Record, error) {
	head, rest, ok := strings.Cut(line, ": ")
	f := strings.Fields(head)
	if !ok || len(f) != 4 || f[2][0] != '@' {
		return nil, fmt.Errorf("want gc N @TIMEs P%%: ..., got %.60q", line)
	}
	number, err1 := strconv.ParseFloat(f[1], 64)
	start, err2 := strconv.ParseFloat(strings.TrimSuffix(f[2][1:], "s"), 64)
	percent, err3 := strconv.ParseFloat(strings.TrimSuffix(f[3], "%"), 64)
	if err1 != nil || err2 != nil || err3 != nil || !(start >= 0 && start < 1e9) ||
		!(number < 1<<53) || !(math.Abs(percent) < 1e6) {
		return nil, fmt.Errorf("want numbers, got %.60q", head)
	}
	t := int64(start * 1e9)
	out := []evidence.Record{
		{Stream: "/go/gc/cycles:gc-cycles", Shape: evidence.Counter, Time: t, Value: number},
		{Stream: "/go/gctrace/cpu:percent", Shape: evidence.Sample, Time: t, Value: percent},
	}
	for i, part := range strings.Split(strings.TrimSpace(rest), ", ") {
		part = strings.TrimSpace(part)
		switch {
		case i == 0:
			clock, ok := strings.CutSuffix(part, " ms clock")
			ms, err := sumOf(clock, 3)
			if !ok || err != nil {
				return out, fmt.Errorf("want A+B+C ms clock, got %.60q", part)
			}
			out = append(out,
				evidence.Record{Stream: "/go/gctrace/cycle:ns", Shape: evidence.Interval, Time: t,
					End: t + int64((ms[0]+ms[1]+ms[2])*1e6), Value: math.Round((ms[0] + ms[1] + ms[2]) * 1e6)},
				evidence.Record{Stream: "/go/gctrace/stw:ns", Shape: evidence.Sample, Time: t,
					Value: math.Round((ms[0] + ms[2]) * 1e6)})
		case strings.HasSuffix(part, " MB goal"):
			mb, err := strconv.ParseFloat(strings.TrimSuffix(part, " MB goal"), 64)
			if err != nil || !(mb >= 0 && mb < 1e12) {
				return out, fmt.Errorf("want a heap goal, got %.60q", part)
			}
			out = append(out, evidence.Record{Stream: "/go/gc/heap/goal:bytes",
				Shape: evidence.Sample, Time: t, Value: mb * (1 << 20)})
		case strings.Contains(part, "->"):
			sizes := strings.Split(strings.TrimSuffix(part, " MB"), "->")
			mb, err := strconv.ParseFloat(sizes[len(sizes)-1], 64)
			if err != nil || len(sizes) != 3 || !(mb >= 0 && mb < 1e12) {
				return out, fmt.Errorf("want three heap sizes, got %.60q", part)
			}
			out = append(out, evidence.Record{Stream: "/go/gc/heap/live:bytes",
				Shape: evidence.Sample, Time: t, Value: mb * (1 << 20)})
		case strings.HasSuffix(part, " P") || strings.HasSuffix(part, " P (forced)"):
			if strings.HasSuffix(part, " (forced)") {
				out = append(out, evidence.Record{Stream: "/go/gctrace/forced:events", Shape: evidence.Event, Time: t})
			}
			ps, err := strconv.Atoi(strings.Fields(part)[0])
			if err != nil || ps < 1 {
				return out, fmt.Errorf("want a number of Ps, got %.60q", part)
			}
			out = append(out, evidence.Record{Stream: "/go/sched/gomaxprocs:threads",
				Shape: evidence.Sample, Time: t, Value: float64(ps)})
		}
	}
	return out, nil
}

// sumOf parses n numbers joined by +.
func sumOf(s string, n int) ([]float64, error) {
	parts := strings.Split(s, "+")
	if len(parts) != n {
		return nil, fmt.Errorf("want %d numbers", n)
	}
	out := make([]float64, n)
	for i, p := range parts {
		v, err := strconv.ParseFloat(p, 64)
		if err != nil || !(v >= 0 && v < 1e9) {
			return nil, fmt.Errorf("want a number, got %.20q", p)
		}
		out[i] = v
	}
	return out, nil
}
