package systool

import (
	"cmp"
	"fmt"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
)

var sar = &attach.Kind{
	Name: "sar",
	Rows: true,
	Hints: []string{"Linux ", "/s", "%", "kb", "runq-sz", "totsck", "dentunusd", "INTR", " all ", " dev",
		" sd", " vd", " nvme", " dm-"},
	Claim: claimSar,
	Read:  readSar,
	Apart: newRun,
	When:  sysstatWhen,
}

func claimSar(lines []paste.Line) int { return claimSysstat(sarTool, lines) }

func readSar(p *attach.Part) attach.Reading {
	s := parseSysstat(p)
	v := &verdict{}
	v.Who.Host = s.host
	n, gap := 0, 0.0
	for _, t := range s.tables {
		n, gap = max(n, t.times()), max(gap, t.interval())
	}
	v.Title = "sar, " + samples(n)
	if n == 0 {
		v.Title = "sar, averages"
	}
	if gap >= 60 {
		v.Title += fmt.Sprintf(" of %s min", plain(gap/60))
	}
	rows := 0
	for _, t := range s.tables {
		rows += len(t.rows)
		t.dropAverages()
	}
	if rows == 0 {
		v.cutOff("sar")
		return v.done()
	}
	s.sarCPU(v)
	s.sarQueue(v)
	s.sarMemory(v)
	s.sarPaging(v)
	s.sarDisks(v)
	s.sarNetwork(v)
	s.sarOther(v)
	if len(v.Figures) == 0 || !s.ofHealth() {
		v.unsure = true
		v.means("these tables are context: they say nothing of slowness")
		v.next("sar -u -q -B -W -d 1 10", "CPUs, queue, reclaim, swap and disks")
	}
	if n == 0 {
		v.ease("nothing in it is short on average")
	}
	v.ease("nothing in it is short at the median of the samples")
	if gap >= 60 {
		v.not(fmt.Sprintf("a sample is an average over %s min: a stall of seconds does not show", plain(gap/60)))
	}
	v.not("these are figures of the machine: a service may wait for a lock or for another server")
	return v.done()
}

// dropAverages leaves the line of averages out where samples are there.
func (t *table) dropAverages() {
	if t.times() == 0 {
		return
	}
	rows := t.rows[:0:0]
	for _, r := range t.rows {
		if !r.average {
			rows = append(rows, r)
		}
	}
	t.rows = rows
}

func (s *sysstatTables) sarCPU(v *verdict) {
	t := s.with("CPU", "%idle")
	if t == nil {
		return
	}
	t.flaw(v)
	rows := t.byCPU()
	if s.cpus == 0 && t.everyCPU(rows) {
		s.cpus = len(rows) - 1
	}
	v.cpus(rows, s.cpus)
	if !v.torn && (v.Signs == nil || !v.has()) {
		v.Means = "" // the other tables may say more
	}
	all := &table{names: t.names}
	for _, r := range t.rows {
		if len(r.cells) > 0 && r.cells[0] == "all" {
			all.rows = append(all.rows, r)
		}
	}
	for _, e := range []struct {
		column, cause string
		much          float64
	}{{"%steal", "cpu-steal", stealMuch}, {"%iowait", "disk-wait", iowaitMuch}} {
		all.episode(v, e.column, e.cause, e.much)
	}
}

// episode: samples of a minute and more are averages themselves, so one of them that stands out is
// a time at which something was, though the median does not show it.
func (t *table) episode(v *verdict, column, cause string, much float64) {
	if t.interval() < 60 || t.median(column) >= much {
		return
	}
	worst := row{}
	for _, r := range t.rows {
		if worst.cells == nil || t.num(r, column) > t.num(worst, column) {
			worst = r
		}
	}
	f := t.num(worst, column)
	if f >= noteworthy && f < much && f >= standsOut*t.median(column) {
		v.unsure = true
		text := fmt.Sprintf("%s %s at %s, %s at the median", column, plain(f), worst.time, plain(t.median(column)))
		v.figure("%s", text)
		v.means("%s: more than at other times, and no proof that anything waited for it", text)
	}
	if f >= much {
		v.candidate(cause, 0, fmt.Sprintf("%s %s at %s, %s at the median", column, plain(f),
			worst.time, plain(t.median(column))))
		v.means("%s was %s at %s: whether the service was slow then is not in it", column, plain(f), worst.time)
	}
}

func (s *sysstatTables) sarQueue(v *verdict) {
	t := s.with("runq-sz")
	if t == nil {
		return
	}
	queue, blocked := t.median("runq-sz"), t.median("blocked")
	lo, hi := t.span("runq-sz")
	of := ""
	if s.cpus > 0 {
		of = " on " + attach.Plural(s.cpus, "CPU")
	}
	at := "at the median"
	if t.times() == 0 {
		at = "on average"
	}
	if lo != hi {
		at += fmt.Sprintf(" (%s to %s)", plain(lo), plain(hi))
	}
	v.figure("runq-sz %s %s%s, load %s", plain(queue), at, of, fixed(t.median("ldavg-1")))
	if len(t.rows) >= enoughSamples { // no rule finds a queue by fewer
		v.fact(RunQueue, queue)
		if s.cpus > 0 {
			v.fact(RunQueuePerCPU, queue/float64(s.cpus))
		}
	}
	proof := v.Figures[len(v.Figures)-1]
	t.loadPeak(v)
	switch idle := s.idle(); {
	case s.cpus > 0 && queue >= queueMatters*float64(s.cpus)+1 && idle >= 30:
		v.means("%s threads run or want to at the instants of counting, and the CPUs are %s %% idle: no queue that lasts", plain(queue), plain(idle))
	case s.cpus > 0 && queue >= queueMatters*float64(s.cpus)+1 && len(t.rows) < enoughSamples:
		share := (queue - float64(s.cpus)) / queue
		v.candidate("cpu-contention", share, proof)
		v.candidate("runqueue-saturation", share, proof)
		v.means("more threads want to run than there are CPUs: %s on %d, in %s", plain(queue),
			s.cpus, samples(len(t.rows)))
		v.not("whose threads wait, and whether they are the service's")
		v.next("pidstat -u -w -t -p PID 1 10", "%wait and nvcswch/s of the service's own threads")
	case s.cpus > 0 && queue >= queueMatters*float64(s.cpus)+1:
		v.found("cpu-contention", finding.Possible, (queue-float64(s.cpus))/queue, proof)
		if queue >= queueMuch*float64(s.cpus) {
			v.candidate("runqueue-saturation", 0, proof)
		}
		v.means("more threads want to run than there are CPUs: %s on %d", plain(queue), s.cpus)
		v.not("whose threads wait, and whether they are the service's")
		v.next("pidstat -u -w -t -p PID 1 10", "%wait and nvcswch/s of the service's own threads")
	case s.cpus == 0 && queue >= 4:
		v.unsure = true
		v.means("%s threads are runnable at the median: a queue only if there are fewer CPUs", plain(queue))
		v.next("nproc", "the queue is to be held against the number of CPUs")
	case blocked >= 2:
		v.candidate("disk-wait", 0, fmt.Sprintf("%s threads blocked on I/O, the median", plain(blocked)))
		v.figure("%s threads blocked on I/O at the median", plain(blocked))
		v.means("%s threads wait for I/O at the median, and %s run or want a CPU: they are what the load average counts", plain(blocked), plain(queue))
		v.next("pidstat -d 1 10", "which processes wait for the disk")
	}
}

func (s *sysstatTables) sarMemory(v *verdict) {
	if t := s.with("kbmemfree", "kbmemused"); t != nil {
		free, used := t.median("kbmemfree")*1024, t.median("kbmemused")*1024
		available, cache := t.median("kbavail")*1024, (t.median("kbcached")+t.median("kbbuffers"))*1024
		total := free + used
		if share := t.median("%memused"); share > 0 {
			total = used * 100 / share
		}
		if !t.has("kbavail") {
			available = free + cache
		}
		m := memory{total: total, free: free, cache: cache, available: available, hasAvailable: t.has("kbavail")}
		v.figure("memory: %s of %s %s", bytes(available), bytes(total), m.left())
		t.leastMemory(v, m)
		if total > 0 {
			v.fact(MemoryAvailable, part(available/total))
			if available/total < memoryShort {
				s := screen{mem: m}
				s.scarce(v)
			}
		}
		v.not("%memused counts the page cache in some versions: what counts is what is available")
	}
	if t := s.with("kbswpfree", "%swpused"); t != nil {
		if !t.swapFilled(v) {
			v.figure("%s %% of swap used", plain(t.median("%swpused")))
		}
	}
	if t := s.with("pswpin/s"); t != nil {
		in, out := t.median("pswpin/s")*4096, t.median("pswpout/s")*4096
		v.fact(SwapInRate, in)
		v.fact(SwapOutRate, out)
		v.figure("swap in %s/s, out %s/s", bytes(in), bytes(out))
		v.swapping(in, out, len(t.rows), swapProof(in, out, len(t.rows)))
		t.episode(v, "pswpin/s", "page-fault", swapMuch)
	}
}

// leastMemory: memory may run out in rows that the median does not show.
func (t *table) leastMemory(v *verdict, m memory) {
	median, total := m.available, m.total
	least, worst := median, row{}
	for _, r := range t.rows {
		if len(r.cells) < len(t.names) {
			continue // it is cut
		}
		available := t.num(r, "kbmemfree") + max(0, t.num(r, "kbcached")) + max(0, t.num(r, "kbbuffers"))
		if t.has("kbavail") {
			available = t.num(r, "kbavail")
		}
		if available >= 0 && available*1024 < least {
			least, worst = available*1024, r
		}
	}
	if worst.cells == nil || least >= memoryShort*total || median < memoryShort*total {
		return
	}
	proof := fmt.Sprintf("%s of memory %s at %s, %s at the median", bytes(least), m.left(), worst.time, bytes(median))
	v.figure("%s", proof)
	v.candidate("direct-reclaim", 0, proof)
	v.candidate("page-fault", 0, proof)
	v.means("memory was nearly used up at %s: whether threads had to free memory themselves is not in it", worst.time)
	v.next("sar -B 1 10", "pgscand/s: whether threads free memory themselves; majflt/s")
}

// Shares of swap, in percent: it counts as filled from the first on, after it grew by the second.
const (
	swapFull  = 80
	swapGrown = 20
)

// swapFilled: swap that fills over the rows is no state to call healthy.
func (t *table) swapFilled(v *verdict) bool {
	if len(t.rows) < 2 {
		return false
	}
	first, last := t.rows[0], t.rows[len(t.rows)-1]
	from, to := t.num(first, "%swpused"), t.num(last, "%swpused")
	if from < 0 || to < swapFull || to-from < swapGrown {
		return false
	}
	v.unsure = true
	v.figure("swap filled: %s %% used at %s, %s %% at %s", plain(from), first.time, plain(to), last.time)
	v.means("swap filled up over the rows: whether pages come back from it is not in it")
	v.next("vmstat 1 10", "si and so: whether pages come back from swap")
	return true
}

// Rates a second from which on paging is more than a trace.
const (
	directScanMuch = 1000 // pages
	directScanSome = 10   // pages, in one sample
	majorMuch      = 500  // faults of the whole machine
	swapMuch       = 256  // pages read back from swap
)

func (s *sysstatTables) sarPaging(v *verdict) {
	t := s.with("majflt/s")
	if t == nil {
		return
	}
	major := t.median("majflt/s")
	v.fact(MajorFaultRate, major)
	v.figure("%s major faults/s", plain(major))
	proof := v.Figures[len(v.Figures)-1]
	if t.has("pgscand/s") {
		direct, kswapd := t.median("pgscand/s"), t.median("pgscank/s")
		v.fact(DirectScanRate, direct)
		v.figure("%s pages/s scanned by threads themselves (pgscand/s), %s by kswapd", plain(direct), plain(kswapd))
		scan := v.Figures[len(v.Figures)-1]
		_, most := t.span("pgscand/s")
		switch {
		case direct >= directScanMuch && len(t.rows) >= enoughSamples:
			v.found("direct-reclaim", finding.Possible, 0, scan)
			v.means("threads have to free memory themselves before they get any")
			v.not("which threads, and for how long each")
			v.next("grep -E 'allocstall|compact_stall' /proc/vmstat; sleep 10; grep -E 'allocstall|compact_stall' /proc/vmstat", "how often allocations stall")
		case most >= directScanSome:
			v.candidate("direct-reclaim", 0, fmt.Sprintf("pgscand/s %s at most, %s at the median",
				plain(most), plain(direct)))
			v.means("in some samples threads freed memory themselves: %s pages/s at most", plain(most))
		case most == 0 && t.times() > 0:
			v.against("direct-reclaim", "pgscand/s 0 in all samples")
		}
	}
	if major < majorMuch {
		t.episode(v, "majflt/s", "page-fault", majorMuch)
		return
	}
	v.candidate("page-fault", 0, proof)
	v.means("%s times a second a thread of this machine reads a page from disk or swap when it touches memory", plain(major))
	v.next("pidstat -r 1 10", "whose major faults they are: majflt/s")
}

// sarDiskNames are the columns of iostat for what sar -d says of a device. Old versions count
// sectors.
var (
	sarDiskNames    = []string{"r/s", "await", "aqu-sz", "%util", "rkB/s", "wkB/s"}
	sarOldDiskNames = []string{"r/s", "await", "aqu-sz", "%util", "rsec/s", "wsec/s"}
)

func (s *sysstatTables) sarDisks(v *verdict) {
	t := s.with("DEV", "await")
	if t == nil {
		if t := s.with("tps", "bread/s"); t != nil {
			v.figure("%s transfers/s, reads %s/s, writes %s/s (medians)", plain(t.median("tps")),
				bytes(t.median("bread/s")*512), bytes(t.median("bwrtn/s")*512))
		}
		return
	}
	var all []report
	last, names := "", sarDiskNames
	if t.has("rd_sec/s") {
		names = sarOldDiskNames
	}
	for _, r := range t.rows {
		if r.time != last || all == nil {
			all = append(all, report{disks: map[string]disk{}})
			last = r.time
		}
		one := diskRow{names: names}
		for _, c := range []string{t.cell(r, "tps"), t.cell(r, "await"),
			t.cell(r, "aqu-sz", "avgqu-sz"), t.cell(r, "%util"), t.cell(r, "rd_sec/s", "rkB/s"),
			t.cell(r, "wr_sec/s", "wkB/s")} {
			one.text += cmp.Or(c, "0") + " "
		}
		if at := len(all) - 1; len(all[at].order) < maxDisks {
			all[at].disks[r.cells[0]] = disk{one}
			all[at].order = append(all[at].order, r.cells[0])
		}
	}
	c := cpuUse{}
	if cpu := s.with("CPU", "%iowait"); cpu != nil {
		c.wa = cpu.median("%iowait")
	}
	for i, d := range devices(all) {
		if i < 1 {
			v.figure("%s", d)
		}
		if i < 16 {
			v.factOf(DeviceAwait, d.worst(), d.name)
		}
		d.judge(v, c, len(all))
		d.lateByOne(v)
	}
}

// group splits a table by its first column.
func (t *table) group() map[string]*table {
	out := map[string]*table{}
	for _, r := range t.rows {
		if len(r.cells) == 0 {
			continue
		}
		one := out[r.cells[0]]
		if one == nil {
			if len(out) >= maxDisks {
				continue
			}
			one = &table{names: t.names}
			out[r.cells[0]] = one
		}
		one.rows = append(one.rows, r)
	}
	return out
}

func (s *sysstatTables) sarOther(v *verdict) {
	if t := s.with("cswch/s"); t != nil {
		v.figure("%s context switches/s, %s new processes/s", plain(t.median("cswch/s")), plain(t.median("proc/s")))
		v.fact(SwitchRate, t.median("cswch/s"))
	}
	if t := s.with("totsck"); t != nil {
		v.figure("%s sockets, %s TCP in TIME_WAIT", plain(t.median("totsck")), plain(t.median("tcp-tw")))
	}
	for _, on := range [][2]string{{"%scpu", "a CPU"}, {"%sio", "the disk"}, {"%smem", "memory"}} {
		column, what := on[0], on[1]
		t := s.with(column)
		if t == nil {
			continue
		}
		share := t.median(column)
		v.figure("some threads wait for %s %s %% of the time", what, plain(share))
		if share < 20 {
			continue
		}
		proof := v.Figures[len(v.Figures)-1]
		switch column {
		case "%scpu":
			v.candidate("cpu-contention", share/100, proof)
			v.candidate("cpu-throttled", share/100, proof)
		case "%sio":
			v.candidate("disk-wait", share/100, proof)
		case "%smem":
			v.candidate("direct-reclaim", share/100, proof)
			v.candidate("page-fault", share/100, proof)
		}
	}
}
