package systool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// What vmstat says where samples differ so much that no median stands for them.

// phaseGap is percent of the CPUs' time between the two rows in the middle, from which on the mean
// of both is of no row.
const phaseGap = 30

// phases divides the rows by iowait or idle time where half of them differ from the others: then
// no median stands for them.
func (run *vmstatRun) phases() (low, high table, ok bool) {
	n := len(run.rows)
	if n%2 != 0 {
		return low, high, false
	}
	for _, column := range []string{"wa", "id"} {
		rows := slices.Clone(run.rows)
		slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(run.num(a, column), run.num(b, column)) })
		if run.num(rows[n/2], column)-run.num(rows[n/2-1], column) >= phaseGap {
			return table{names: run.names, rows: rows[:n/2]}, table{names: run.names, rows: rows[n/2:]}, true
		}
	}
	return low, high, false
}

func (v *verdict) ofPhases(halves ...table) attach.Reading {
	v.unsure = true
	for _, t := range halves {
		c := t.cpuUse()
		_, most := t.span("si")
		_, out := t.span("so")
		text := fmt.Sprintf("in %s: %s; r %s, b %s", samples(len(t.rows)), c, plain(c.runnable), plain(c.blocked))
		if most+out > 0 {
			text += fmt.Sprintf("; swap in up to %s/s, out up to %s/s, in units of vmstat", plain(most), plain(out))
		}
		v.figure("%s", text)
		if c.wa >= iowaitMuch {
			v.candidate("disk-wait", c.wa/100, text)
		}
		if t.median("si") >= 64 { // as of medians: 64 KiB/s
			v.candidate("page-fault", 0, text)
			v.candidate("direct-reclaim", 0, text)
		}
	}
	v.means("half of the samples differ from the others, so no median stands for them: which half is of the slow time is not in it")
	v.not("whose time it is: these are figures of the whole machine")
	v.next("vmstat 1 30", "samples while it is slow")
	return v.done()
}

// muchBlocks is how many blocks of 1 KiB a second are worth a figure.
const muchBlocks = 10 << 10

// lookAlikes names what looks like a shortage in samples without one.
func (run *vmstatRun) lookAlikes(v *verdict, c cpuUse) {
	var all []string
	if c.runnable >= 8 && c.id >= 30 {
		all = append(all, fmt.Sprintf("that threads queue for CPUs: r counts those that run as well, and %s %% of the CPUs' time is idle", plain(c.id)))
	}
	first, last := run.rows[0], run.rows[len(run.rows)-1]
	fell := run.num(first, "free") - run.num(last, "free")
	grew := run.num(last, "cache") - run.num(first, "cache")
	if fell >= 0.05*run.num(first, "free") && grew >= fell/2 && run.has("cache") {
		all = append(all, "that memory runs out: what is free falls as the page cache grows, which is given up when memory is wanted")
	}
	if _, in := run.span("si"); in == 0 && run.num(last, "swpd") > 0 && len(all) < 2 {
		all = append(all, "that it swaps: swpd is what was swapped out once, and nothing is read back in these samples")
	}
	if len(all) > 0 && !v.has() {
		v.not(strings.Join(all, "; nor "))
	}
}
