package systool

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
)

var vmstat = &attach.Kind{
	Name:  "vmstat N",
	Rows:  true,
	Hints: []string{"procs", "kthr", "proz", " b ", "   ", "-----"},
	Claim: claimVmstat,
	Read:  readVmstat,
}

// vmstatColumns are those that every version has, in their order; buff and cache are inact and
// active with -a. Versions since 2.6.11 add st, since 4.0.5 gu. A time may follow.
var vmstatColumns = []string{"r", "b", "swpd", "free", "buff", "cache", "si", "so", "bi", "bo",
	"in", "cs", "us", "sy", "id", "wa", "st", "gu"}

const vmstatLeast = 16

// vmstatHeader gives the columns of a line of names. Other languages translate some of them, so the
// place counts where r, b and the pair us and sy are there.
func vmstatHeader(text string) ([]string, bool) {
	f := fields(text)
	us := slices.Index(f, "us")
	if len(f) < vmstatLeast || f[0] != "r" || f[1] != "b" || us != 12 || f[13] != "sy" ||
		f[14] != "id" || f[6] != "si" {
		return nil, false
	}
	if !slices.Contains(f, "swpd") && !slices.Contains(f, "inact") {
		copy(f[2:6], vmstatColumns[2:6])
	}
	return f, true
}

// vmstatGroups is the line above the names.
func vmstatGroups(text string) bool {
	if strings.HasPrefix(text, "procs ") && strings.Contains(text, "memory") && strings.Contains(text, "cpu") {
		return true // without dashes, as before procps 3
	}
	text = strings.ToLower(text)
	return strings.Count(text, "-") > 20 && (strings.Contains(text, "swap") || strings.Contains(text, "cpu")) &&
		(strings.HasPrefix(text, "pro") || strings.HasPrefix(text, "kthr") ||
			strings.HasPrefix(text, "--procs") || text[0] >= utf8.RuneSelf)
}

// untimed takes off a time that somebody's script put before each row.
func untimed(text string) string {
	text = strings.TrimSpace(text)
	if first, rest, ok := strings.Cut(text, " "); ok && strings.Count(first, ":") == 2 && clockTime(first) {
		return strings.TrimSpace(rest)
	}
	return strings.TrimSpace(strings.TrimPrefix(text, "--time--"))
}

// vmstatRow reports whether these cells are a row: whole numbers, of which the last are shares of
// the CPUs' time. A row is known without its header by that.
func vmstatRow(text string) bool {
	if text == "" || text[0] > '9' || text[0] != ' ' && text[0] < '0' {
		return false
	}
	f := fields(text)
	if len(f) < vmstatLeast {
		return false
	}
	numbers := 0
	for ; numbers < len(f) && numbers < len(vmstatColumns); numbers++ {
		if _, ok := whole(f[numbers]); !ok {
			break
		}
	}
	if numbers < vmstatLeast || len(f)-numbers > 3 {
		return false
	}
	total := 0
	for _, c := range f[12:numbers] {
		n, _ := whole(c)
		total += n
	}
	// Rounding, and a first row whose guest time is counted twice.
	return total >= 95 && total <= 105
}

// vmstatWhole reports whether a line is complete: some mails break each.
func vmstatWhole(text string) bool {
	text = untimed(text)
	if vmstatGroups(text) {
		text = strings.ToLower(text)
		return strings.Contains(text, "cpu-") || strings.HasSuffix(text, "cpu")
	}
	if _, ok := vmstatHeader(text); ok {
		return !strings.ContainsAny(text, "0123456789")
	}
	return vmstatRow(text)
}

func claimVmstat(lines []paste.Line) int {
	groups, above, told := false, false, 0
	n := claimLogical(lines, broken{whole: vmstatWhole}, func(at int, text string) bool {
		text = untimed(text)
		_, names := vmstatHeader(text)
		if groups && !names {
			return false
		}
		f, below := fields(text), above
		groups, above = vmstatGroups(text), names
		if names || vmstatRow(text) {
			told++
			return true
		}
		// The row right below the names, where the text ends in it.
		return groups || below && at == len(lines)-1 && len(f) > 1 && len(f) < vmstatLeast && numeric(f)
	})
	return attach.ClaimIf(told > 0, n)
}

// vmstatRun is the rows of one run of vmstat, the one since boot apart.
type vmstatRun struct {
	table
	boot   []row
	starts []int // where in the rows each run but the first starts
}

// former takes the rows of all runs but the last one out, and says what they were.
func (run *vmstatRun) former() (out []string) {
	from := 0
	for _, to := range run.starts {
		if t := (table{names: run.names, rows: run.rows[from:to]}); to > from && to < len(run.rows) {
			c := t.cpuUse()
			out = append(out, fmt.Sprintf("in an earlier run, %s: %s; r %s, b %s", samples(to-from), c, plain(c.runnable), plain(c.blocked)))
			from = to
		}
	}
	run.rows = run.rows[from:]
	return out
}

func parseVmstat(p *attach.Part) (run vmstatRun) {
	run.names = vmstatColumns
	since := 0 // rows since the last header
	first := false
	omitted := option(p, 'y')
	for _, text := range logical(p.Lines, broken{whole: vmstatWhole}) {
		text = untimed(text)
		if names, ok := vmstatHeader(text); ok {
			// A header comes again each screen; sooner, it is another run.
			if !first && !omitted && (len(run.rows)+len(run.boot) == 0 || since < 5) {
				first = true
				if len(run.rows) > 0 {
					run.starts = append(run.starts, len(run.rows))
				}
			}
			run.names, since = names, 0
			continue
		}
		if !vmstatRow(text) {
			continue
		}
		r := row{text: text}
		if first {
			run.boot = append(run.boot, r)
			first = false
			continue
		}
		since++
		run.rows = append(run.rows, r)
	}
	return run
}

// medians of a column over the samples, without the row since boot.
func (t *table) median(names ...string) float64 {
	var all []float64
	for _, r := range t.rows {
		all = append(all, t.num(r, names...))
	}
	return attach.Median(all)
}

// range is the least and the most of a column.
func (t *table) span(names ...string) (lo, hi float64) {
	for i, r := range t.rows {
		f := t.num(r, names...)
		if i == 0 || f < lo {
			lo = f
		}
		hi = max(hi, f)
	}
	return lo, hi
}

// stillBlocks is the blocks of 1 KiB a second below which disks do next to nothing.
const stillBlocks = 4

func (t *table) cpuUse() cpuUse {
	_, in := t.span("bi")
	_, out := t.span("bo")
	return cpuUse{
		still: t.has("bi") && t.median("bi")+t.median("bo") < stillBlocks && in+out < 25*stillBlocks,
		us:    t.median("us") + t.median("gu"), sy: t.median("sy"), wa: t.median("wa"),
		st: t.median("st"), id: t.median("id"),
		samples: len(t.rows), runnable: t.median("r"), blocked: t.median("b"),
	}
}

func readVmstat(p *attach.Part) attach.Reading {
	run := parseVmstat(p)
	v := &verdict{}
	if len(run.rows) == 0 {
		return run.bootOnly(v, p)
	}
	former := run.former()
	v.Title = "vmstat, " + samples(len(run.rows))
	if len(run.boot) > 0 {
		v.Title += " after the row since boot"
	}
	if len(former) > 0 {
		v.unsure = true // which of them is of the slow time is not in it
		v.Title += ", the last of " + attach.Plural(len(former)+1, "run")
	}
	c := run.cpuUse()
	if calm, busy, ok := run.phases(); ok {
		return v.ofPhases(calm, busy)
	}
	v.figure("%s (medians)", c)
	lo, hi := run.span("r")
	if lo == hi {
		v.figure("r %s in each sample, b %s", plain(lo), plain(c.blocked))
	} else {
		v.figure("r %s at the median (%s), b %s", plain(c.runnable), between(lo, hi), plain(c.blocked))
	}
	if in, out := run.median("bi"), run.median("bo"); in+out >= muchBlocks {
		_, most := run.span("bo")
		v.figure("disks: %s/s read, %s/s written (medians; %s/s at most)", kB(in), kB(out), kB(most))
	}
	lo, hi = run.span("cs")
	v.figure("%s context switches/s", between(lo, hi))
	v.fact(SwitchRate, run.median("cs"))
	run.swap(v, p)
	c.judge(v)
	if len(run.rows) < enoughSamples {
		v.Glance = true
	}
	run.outliers(v)
	v.Figures = slices.Insert(v.Figures, min(2, len(v.Figures)), former...)
	swap := "nothing is read back from swap"
	if _, most := run.span("si"); most > 0 {
		swap = "little is read back from swap"
	}
	if c.id < 30 {
		v.means("the CPUs are %s %% busy, with some room; iowait is %s %%, and %s",
			plain(100-c.id-c.wa), plain(c.wa), swap)
	}
	v.ease("the CPUs have room (%s %% idle, %s %% iowait), and %s", plain(c.id), plain(c.wa), swap)
	run.lookAlikes(v, c)
	if len(run.boot) > 0 && !v.has() {
		if wa := run.num(run.boot[0], "wa"); wa >= 5 {
			v.not(fmt.Sprintf("the %s %% iowait of the first row is an average since boot", plain(wa)))
		}
	}
	if !v.has() && !v.unsure {
		v.not("a machine at ease may hold a service which waits for a lock or for another server")
	}
	v.not("whose time it is: these are figures of the whole machine")
	return v.done()
}

// bootOnly reads a row that is the first of its run, or names without a whole row.
func (run *vmstatRun) bootOnly(v *verdict, p *attach.Part) attach.Reading {
	v.Title = "vmstat, only the row since boot"
	v.Boot, v.unsure = true, true
	when, swapped := "since boot", " since boot"
	if !slices.Contains(fields(p.Command), "vmstat") {
		v.Title = "vmstat, one row: of all time since boot, if it is the first of its run"
		when, swapped = "in it", ""
	}
	if len(run.boot) > 0 {
		t := run.table
		t.rows = run.boot
		v.figure("%s: %s", when, t.cpuUse())
		v.figure("r %s, b %s at that moment", t.cell(run.boot[0], "r"), t.cell(run.boot[0], "b"))
		if in, out := t.num(run.boot[0], "si"), t.num(run.boot[0], "so"); in+out > 0 {
			v.figure("swap%s: %s/s in, %s/s out, in units of vmstat, KiB by default",
				swapped, plain(in), plain(out))
		}
	} else {
		v.cutOff("vmstat")
		if f := fields(p.Lines[len(p.Lines)-1].Text); numeric(f) && len(f) > 1 {
			v.figure("r %s, b %s in a row that is cut off", f[0], f[1])
		}
	}
	v.means("the first row of vmstat is an average since boot, and says nothing about now")
	v.next("vmstat 1 30", "samples while it is slow")
	return v.done()
}

// between writes the least and the most of a figure.
func between(lo, hi float64) string {
	if plain(lo) == plain(hi) {
		return plain(lo)
	}
	return plain(lo) + " to " + plain(hi)
}

// swap judges pages that come back from swap: whoever touches them waits.
func (run *vmstatRun) swap(v *verdict, p *attach.Part) {
	unit := map[string]float64{"k": 1000, "K": 1024, "m": 1e6, "M": 1 << 20}[vmstatUnit(p)]
	if unit == 0 {
		unit = 1024
	}
	in, out := run.median("si")*unit, run.median("so")*unit
	v.fact(SwapInRate, in)
	v.fact(SwapOutRate, out)
	_, most := run.span("si")
	run.burst(v, unit)
	if in == 0 && out == 0 && most == 0 {
		return
	}
	v.Figures = slices.Insert(v.Figures, 1, fmt.Sprintf("swap in %s/s, out %s/s (medians)",
		finding.Bytes(bounded(in)), finding.Bytes(bounded(out))))
	v.swapping(in, out, len(run.rows), swapProof(in, out, len(run.rows)))
	// What the disk writes is then mostly memory that does not fit, and others' reads wait for it.
	if written := run.median("bo") * 1024; out >= 1<<20 && out >= written/2 {
		v.swapsOut = true
		v.means("memory is short: %s of the %s that the disk writes each second goes to swap",
			finding.Bytes(bounded(min(out, written))), finding.Bytes(bounded(written)))
	}
}

// burst says that much went to swap in few samples, which the median does not show.
func (run *vmstatRun) burst(v *verdict, unit float64) {
	_, most := run.span("so")
	if most *= unit; run.median("so") > 0 || most < 1<<20 {
		return
	}
	proof := fmt.Sprintf("%s/s went to swap in one sample", bytes(most))
	v.Figures = slices.Insert(v.Figures, 1, proof)
	v.candidate("direct-reclaim", 0, proof)
	v.means("memory was short in a sample, in which %s/s went to swap: whether threads waited for it is not in it", bytes(most))
	v.next("sar -B 1 10", "pgscand/s: whether threads free memory themselves")
}

// swapProof says the figure beside it in other words: a proof that repeats a figure is not shown.
func swapProof(in, out float64, n int) string {
	return fmt.Sprintf("%s/s come back from swap and %s/s go there, at the median of %s",
		bytes(in), bytes(out), samples(n))
}

// swapping is a sign where pages come back all the time.
func (v *verdict) swapping(in, out float64, samples int, proof string) {
	switch {
	case in >= 1<<20 && samples >= enoughSamples:
		v.found("page-fault", finding.Possible, 0, proof)
		v.remedy("page-fault", remedyMajor)
		v.means("memory is short: threads wait for pages which come back from swap")
		v.next("pidstat -r 1 10", "whose major faults they are: majflt/s")
	case in >= 64<<10 || out >= 1<<20:
		v.candidate("page-fault", 0, proof)
		v.candidate("direct-reclaim", 0, proof)
		v.next("pidstat -r 1 10", "whose major faults they are: majflt/s")
		v.next("sar -B 1 10", "pgscand/s: whether threads free memory themselves")
	}
}

// vmstatUnit is the argument of -S.
func vmstatUnit(p *attach.Part) string {
	f := strings.Fields(p.Command)
	for i, w := range f {
		if w == "-S" && i+1 < len(f) {
			return f[i+1]
		}
		if rest, ok := strings.CutPrefix(w, "-S"); ok && rest != "" {
			return rest
		}
	}
	return ""
}

// outliers says that some samples differ from the median, which is not their judge.
func (run *vmstatRun) outliers(v *verdict) {
	_, b := run.span("b")
	_, wa := run.span("wa")
	_, st := run.span("st")
	c := run.cpuUse()
	var all []string
	for _, o := range []struct {
		is   bool
		text string
	}{
		{b >= 5 && c.blocked < 1, "b " + plain(b)}, {wa >= iowaitMuch && c.wa < iowaitMatters,
			"iowait " + plain(wa) + " %"},
		{st >= stealMuch && c.st < stealMatters, "steal " + plain(st) + " %"},
	} {
		if o.is {
			all = append(all, o.text)
		}
	}
	if len(all) > 0 {
		v.unsure = true
		v.not(fmt.Sprintf("single samples stand out (%s at most): whether a slow request met one is not in it", strings.Join(all, ", ")))
	}
}
