package report

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// Latency over time, as a line of characters: the longest request that started in each column.
// Under it stand marks where something held up the process.

var sparks = []rune("▁▂▃▄▅▆▇█")

// latencyLine is the picture, ready to be printed.
type latencyLine struct {
	spark string
	top   int64 // the longest request
	width int64 // ns of a column
	marks []markLine
}

// markLine has a mark in each column in which something held, as high as the part of its time for
// which it did. Stop-the-worlds, which are short, have one of one height.
type markLine struct {
	name string
	line string
	said string // how often, and how long
}

// markNames are the bands that are marked, with their names.
var markNames = []struct {
	kind  account.BandKind
	name  string
	least int64 // ns from which on one is worth a mark
}{
	{account.BandThrottled, "throttled", 1e6},
	{account.BandReclaim, "reclaim", 1e6},
	{account.BandSTW, "STW", 1e6},
	{account.BandMark, "GC", 0},
}

// latency makes the picture, nil where there is nothing to see.
func (r *Report) latency(columns int) *latencyLine {
	begin, end := r.Recording.BeginNS, r.Recording.EndNS
	s := &r.Series
	if end <= begin || columns < 8 || len(s.Dots)+len(s.Density.Cells) < 2 {
		return nil
	}
	l := &latencyLine{width: (end - begin + int64(columns) - 1) / int64(columns)}
	top := make([]int64, columns)
	at := func(t int64) int { return int(min(max(0, t-begin)/l.width, int64(columns)-1)) }
	for _, c := range s.Density.Cells {
		// A cell's columns may be wider or narrower than these.
		from := s.Density.Begin + int64(c.Column)*s.Density.Width
		for i := at(from); i <= at(from+s.Density.Width-1); i++ {
			top[i] = max(top[i], c.Low)
		}
	}
	for i := range s.Dots {
		top[at(s.Dots[i].Begin)] = max(top[at(s.Dots[i].Begin)], s.Dots[i].NS)
	}
	for _, ns := range top {
		l.top = max(l.top, ns)
	}
	if l.top == 0 {
		return nil
	}
	var b strings.Builder
	for _, ns := range top {
		if ns == 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(sparks[min(int(float64(ns)/float64(l.top)*float64(len(sparks))), len(sparks)-1)])
	}
	l.spark = b.String()
	for i := range markNames {
		if m := r.mark(i, columns, l.width, at); m.name != "" {
			l.marks = append(l.marks, m)
		}
	}
	return l
}

// mark makes the line of one kind of bands; without a name if there are none.
func (r *Report) mark(kind, columns int, wide int64, at func(int64) int) markLine {
	k := markNames[kind]
	held, any := make([]int64, columns), make([]bool, columns)
	var n int
	var most int64
	for _, b := range r.Series.Bands {
		ns := b.End - b.Begin
		if b.Kind != k.kind || b.Ours || ns < k.least || b.End <= r.Recording.BeginNS || b.Begin >= r.Recording.EndNS {
			continue
		}
		n++
		most = max(most, ns)
		for i := at(b.Begin); i <= at(max(b.Begin, b.End-1)); i++ {
			any[i] = true
			from := r.Recording.BeginNS + int64(i)*wide
			held[i] += max(0, min(b.End, from+wide)-max(b.Begin, from))
		}
	}
	if n == 0 {
		return markLine{}
	}
	var b strings.Builder
	for i, ns := range held {
		switch {
		case !any[i]:
			b.WriteByte(' ')
		case k.kind == account.BandSTW:
			b.WriteRune('▪')
		default:
			b.WriteRune(sparks[min(int(float64(ns)/float64(wide)*float64(len(sparks))), len(sparks)-1)])
		}
	}
	return markLine{name: k.name, line: strings.TrimRight(b.String(), " "),
		said: fmt.Sprintf("%d x to %s", n, finding.Duration(most))}
}
