package stackdump

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// gcLog reads what the JVM logs of its collections: -Xlog:gc since JDK 9, -XX:+PrintGC and
// +PrintGCDetails before it, and Cassandra's lines of the same.
var gcLog = &attach.Kind{
	Name: "JVM GC log",
	Hints: []string{"][gc", "[gc", " secs]", "Heap before", "Heap after", "[GC", "[Full GC",
		"GC(", "<GC", "[Times: ", "GCInspector", "[Parallel Time:", "[Eden: ", "[CMS-", "[Pause ",
		" us", "[memory", "Critical: ", "Phase: ", "Memory: ", "Collector: "},
	Marks: []string{"] GC(", "Allocation Stall (", "<GC(", "[GC (", "[GC pause", "[Full GC",
		"GCInspector", "[CMS-con", "[Pause "},
	Scattered: true,
	Claim: func(lines []paste.Line) int {
		n := 0
		for n < len(lines) && lines[n].Command == "" {
			if more := brokenGC(lines[n:]); more > 0 {
				n += more
				continue
			}
			if !isGCLine(lines[n].Text, n > 0) {
				break
			}
			n++
		}
		return n
	},
	Read: readGCLog,
}

var (
	gcTag    = pattern.New(`^(?:\[[^\]]{1,40}\])*\[(?:info|debug|trace|warning|error) *\]\[gc[a-z,]* *\] `)
	gcNumber = pattern.New(`\bGC\(\d+\) [A-Z]`)
	// "GC(5) Pause Young (Normal) (G1 Evacuation Pause) 38M->3M(64M) 2.811ms"
	gcPause = pattern.New(`\bGC\(\d+\) (Pause [\w -]+?|Garbage Collection|(?:Minor|Major) Collection)(?: \([^()]*\))*(?: (\d+)([KMG])(?:\(\d+%\))?->(\d+)([KMG])\((?:(\d+)([KMG])|\d+%)\))?(?: ([\d.,]+)(ms|s)?)?$`)
	// "Garbage Collection (Proactive) 672M(66%)->712M(70%)": a cycle of ZGC, which stops nobody
	gcCycle = pattern.New(`(?:Garbage Collection|(?:Minor|Major) Collection) \([^()]*\) \d+[KMG]\((\d+)%\)->\d+[KMG]\((\d+)%\)`)
	gcStall = pattern.New(`Allocation Stall \((.*)\) ([\d.,]+)ms`)
	// "[GC (Allocation Failure) 629120K->69888K(629120K), 0.0585007 secs]"
	gcOld = pattern.New(`\[(GC|Full GC)(?:\b|\d).*, ([\d.,]+) secs\]`)
	// gcBeside is a phase of G1 that runs beside the program.
	gcBeside = pattern.New(`\[GC concurrent-`)
	// "[Pause Full 1589M->1002M(1690M), 4077.274 ms]": Shenandoah before JDK 9
	gcShen = pattern.New(`\[(Pause [A-Z][\w ()]*?)(?: (\d+)([KMG])->(\d+)([KMG])\((\d+)([KMG])\))?, ([\d.,]+) ms\]`)
	// "Pause Full GC (G)               4085272 us": its table at the end
	gcShenSum = pattern.New(`^(?:Pause|Concurrent) [A-Z][\w ().-]* \d+ us(?:,|$)|^[A-Z][\w :<>-]* +\d+ us(?:,|$)`)
	// "[Eden: ... Survivors: ... Heap: 3816.0M(4096.0M)->3734.5M(4096.0M)]"
	gcG1Heap  = pattern.New(`\bHeap: [\d.,]+[BKMG]\([\d.,]+[BKMG]\)->([\d.,]+)([BKMG])\(([\d.,]+)([BKMG])\)`)
	gcHeap    = pattern.New(`(\d+)([KMG])->(\d+)([KMG])\((\d+)([KMG])\)`)
	gcClasses = pattern.New(`\[(?:Metaspace|(?:CMS |PS)?Perm(?:Gen)?) *: [^\]]*\]`) // no part of the heap
	gcOldMore = pattern.New(`^(?:(?:\d{4}-\S+: )?[\d.,]+: )?\[(?:GC|Full GC|CMS|ParNew|Times|YG occupancy|Parallel Time|Code Root|Clear CT|Other|Eden|GC Worker|Ext Root|Update RS|Scan RS|Object Copy|Termination|Processed Buffers|Choose CSet|Ref |Redirty|Humongous|Free CSet|Evacuation|Rescan|weak refs|scrub|Unloading|class unloading)\b.*`)
	// With -XX:+PrintTenuringDistribution a collection's line goes on behind a list of ages.
	gcAges   = pattern.New(`^(?:Desired survivor size \d+ bytes, new threshold \d+|- age +\d+: +\d+ bytes|: \d+[KMG]->\d+[KMG]\(\d+[KMG]\), [\d.,]+ s)`)
	gcRest   = pattern.New(`^: \d+[KMG]->\d+[KMG]\(\d+[KMG]\), ([\d.,]+) s`)
	gcTimes  = pattern.New(`\[Times: user=([\d.,]*\d) sys=([\d.,]*\d),? real=([\d.,]*\d) secs\]`)
	gcOldAt  = pattern.New(`(?:^|: )(\d+[.,]\d{3}): \[`)
	gcUptime = pattern.New(`^(?:\[[^\]]*\])*?\[(\d+[.,]?\d*)(ms|s)\]`)
	gcISO    = pattern.New(`(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,]\d{3})`)
	// IBM's JVM before 1.4.2 logs a line for each phase of a cycle; this one has its whole time.
	gcIBM = pattern.New(`^<GC\(\d+\): freed \d+ bytes, \d+% free \((\d+)/(\d+)\), in (\d+) ms>$`)
	// gcIBMMore is what stands around it.
	gcIBMMore = pattern.New(`^<(?:GC[(\[]\d+[)\]]|AF\[\d+\]): `)
	// Up to Cassandra 2.0 a line sums up what its timer found.
	gcCassOld = pattern.New(`GCInspector\.java \(line \d+\) GC for (\w+): (\d+) ms(?: for (\d+) collections)?, (\d+) (?:used|reclaimed leaving \d+ used); max is (\d+)`)
	// "[memory ] [OC#7] 9.02-9.10: OC 81KB->14KB (192KB), 0.1 s, sum of pauses 38.8 ms, longest
	// pause 20.1 ms." of JRockit R28; "[memory ] 9.02-9.10: GC 81K->14K (192K), 38.8 ms", which is
	// the sum as well, before it.
	gcRockit = pattern.New(`\[memory *\] ?(?:\[[OY]C#\d+\] )?([\d.]+)(?:-[\d.]+)?: ((?:[a-z]+ )*GC|[OY]C) \d+KB?->(\d+)(K)B? \((\d+)(K)B?\)(?:, [\d.]+ s, sum of pauses|,) ([\d.]+) ms(?:, longest pause ([\d.]+) ms)?`)
	gcCass   = pattern.New(`GCInspector\.java:\d+ - (.*?) GC in (\d+)ms`)
)

func isGCLine(text string, inside bool) bool {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > 4096 {
		return false
	}
	if strings.Contains(text, "[Pause ") && (gcShen.MatchString(text) || strings.HasSuffix(text, ", start]")) {
		return true
	}
	if strings.Contains(text, "[memory") && gcRockit.MatchString(text) {
		return true
	}
	if strings.HasSuffix(text, " us") || strings.Contains(text, " us, ") {
		row := shenText(text)
		return gcShenSum.MatchString(row) && (inside || strings.HasPrefix(row, "Pause ") ||
			strings.HasPrefix(row, "Concurrent "))
	}
	if gcEnd(text) > 0 || gcStart.MatchString(text) || heapHead.MatchString(text) ||
		inside && (heapSure.MatchString(text) || heapLine.MatchString(text) || text == "}") {
		return true
	}
	if inside && (gcAges.MatchString(text) || strings.HasPrefix(text, "Good progress for ") ||
		strings.HasPrefix(text, "Using ") && strings.Contains(text, " workers for ")) {
		return true
	}
	if strings.Contains(text, " / ") && zgcRow.MatchString(text) {
		return true
	}
	if strings.Contains(text, "[gc") && gcStall.MatchString(text) {
		return true // whatever stands before it
	}
	if gcTag.MatchString(text) || gcNumber.MatchString(text) || gcOld.MatchString(text) ||
		gcCass.MatchString(text) || gcCassOld.MatchString(text) || gcIBMMore.MatchString(text) ||
		strings.Contains(text, "[CMS-concurrent-") {
		return true
	}
	return (inside || strings.Contains(text, "[Times: ")) && (gcOldMore.MatchString(text) || gcTimes.MatchString(text))
}

// collections is what the lines say, in seconds and bytes.
type collections struct {
	gcClock
	pauses      []float64
	means       bool      // some pauses are the mean of a sum
	begun       float64   // when the first pause was logged
	stalls      []float64 // of threads that had to wait for ZGC or Shenandoah
	full        int
	fullVain    int     // of them, those that freed next to nothing
	cycles      int     // that run beside the program and say what they freed
	vain        int     // of them, those that freed next to nothing
	left        float64 // of the heap in use after the last one; percent
	noRoom      int     // objects found no room to be moved to
	most        float64
	longest     string  // what that one was
	after, heap float64 // of the last one
	cpu, real   float64 // of pauses that say both
	sys         float64 // of cpu, the kernel's
	unread      int     // lines of pauses whose time cannot be read
	stats       zgcStats
	phases      gcPhases
	atLongest   bool   // the last pause is the longest so far
	open        string // the name of a collection whose line goes on in a later one; "": none does
}

func readCollections(p *attach.Part) (c collections) {
	for i := 0; i < len(p.Lines); i++ {
		l := p.Lines[i]
		text := strings.TrimSpace(l.Text)
		raw := text
		if more := brokenGC(p.Lines[i:]); more > 0 {
			text = unbroken(p.Lines[i : i+more])
			raw, i = text, i+more-1
		} else if l.Raw != "" {
			raw = strings.TrimSpace(l.Raw)
		}
		c.tick(raw, l.Time)
		c.line(text)
		c.phases.line(text, c.atLongest)
	}
	return c
}

func decimal(s string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.Replace(s, ",", ".", 1), 64)
	return v, err == nil && v >= 0 && v < 1e9
}

func (c *collections) line(text string) {
	if m := gcStall.FindStringSubmatch(text); m != nil {
		v, _ := decimal(m[2])
		c.stalls = append(c.stalls, v/1e3)
		return
	}
	if m := gcTimes.FindStringSubmatch(text); m != nil && !strings.Contains(text, "[CMS-concurrent-") {
		user, _ := decimal(m[1])
		sys, _ := decimal(m[2])
		real, _ := decimal(m[3])
		if real >= 0.02 { // the JVM rounds to 10 ms
			c.cpu, c.sys, c.real = c.cpu+user+sys, c.sys+sys, c.real+real
		}
	}
	if m := gcCycle.FindStringSubmatch(text); m != nil {
		before, _ := decimal(m[1])
		c.left, _ = decimal(m[2])
		c.cycles++
		if c.left >= before-1 && c.left >= 50 {
			c.vain++
		}
		return
	}
	if m := gcPause.FindStringSubmatch(text); m != nil {
		if m[8] == "" || !strings.HasPrefix(m[1], "Pause") {
			return
		}
		if m[9] == "" && !strings.ContainsAny(m[8], ".,") {
			c.unread++ // the paste ends within the number
			return
		}
		v, ok := decimal(m[8])
		if m[9] != "s" { // in ms, though the paste may end before the unit
			v /= 1e3
		}
		if ok {
			c.pause(v, m[1], strings.Contains(m[1], "Full"))
		}
		if m[4] != "" && m[6] != "" {
			c.after, c.heap = kmg(m[4], m[5]), kmg(m[6], m[7])
			c.inVain(ok && strings.Contains(m[1], "Full"), kmg(m[2], m[3]))
		}
	} else if m := gcShen.FindStringSubmatch(text); m != nil {
		if v, ok := decimal(m[8]); ok {
			c.pause(v/1e3, m[1], strings.Contains(m[1], "Full"))
		}
		if m[4] != "" {
			c.after, c.heap = kmg(m[4], m[5]), kmg(m[6], m[7])
		}
	} else if m := gcRockit.FindStringSubmatch(text); m != nil {
		sum, ok := decimal(m[7])
		longest, several := decimal(m[8])
		switch {
		case ok && several && longest < sum: // of the others only the sum is known
			c.pause(longest/1e3, m[2], false)
			c.pause((sum-longest)/1e3, m[2], false)
		case ok:
			c.pause(sum/1e3, m[2], false)
		}
		c.after, c.heap = kmg(m[3], m[4]), kmg(m[5], m[6])
	} else if gcOpens.MatchString(text) || gcStart.MatchString(text) {
		c.opened(text)
	} else if v := gcEnd(text); v > 0 {
		c.ended(v, text)
	} else if m := gcRest.FindStringSubmatch(text); m != nil {
		if v, ok := decimal(m[1]); ok {
			c.pause(v, "GC", false)
		}
	} else if m := gcG1Heap.FindStringSubmatch(text); m != nil {
		c.after, c.heap = kmg(m[1], m[2]), kmg(m[3], m[4])
	} else if m := gcOld.FindStringSubmatch(text); m != nil && !gcBeside.MatchString(text) {
		if strings.Contains(m[0], "(to-space exhausted)") {
			c.noRoom++
		}
		if v, ok := decimal(m[2]); ok {
			what := m[1]
			if name := gcName.FindStringSubmatch(text); name != nil {
				what = name[1]
			}
			c.pause(v, what, m[1] == "Full GC")
		}
		c.size(text, m[1] == "Full GC")
	} else if m := gcIBM.FindStringSubmatch(text); m != nil {
		free, _ := decimal(m[1])
		c.heap, _ = decimal(m[2])
		c.after = max(0, c.heap-free)
		c.summed("GC", m[3], "")
	} else if m := gcCassOld.FindStringSubmatch(text); m != nil {
		c.summed(m[1], m[2], m[3])
	} else if m := gcCass.FindStringSubmatch(text); m != nil {
		if v, ok := decimal(m[2]); ok {
			c.pause(v/1e3, m[1], strings.Contains(m[1], "Old"))
		}
	} else if !c.stats.line(text) &&
		(gcOpen.MatchString(text) || strings.HasPrefix(text, "[Times: ") ||
			strings.Contains(text, "[gc,stats") && shenCut.MatchString(shenText(text))) {
		c.unread++
	}
}

func (c *collections) pause(s float64, what string, full bool) {
	if len(c.pauses) == 0 {
		c.begun = c.last
	}
	if c.atLongest = s > c.most || len(c.pauses) == 0; c.atLongest {
		c.most, c.longest = s, what
		c.phases.reset()
	}
	c.pauses = append(c.pauses, s)
	if full {
		c.full++
	}
}

func kmg(n, unit string) float64 {
	v, _ := decimal(n)
	switch unit {
	case "B":
		return v
	case "G":
		v *= 1 << 10
		fallthrough
	case "M":
		v *= 1 << 10
	}
	return v * 1024
}

// Of a log: so many pauses, and so many seconds, from which on a share of time is one.
const (
	enoughPauses = 5
	enoughLog    = 1.0
)

func readGCLog(p *attach.Part) attach.Reading {
	c := readCollections(p)
	r := attach.Reading{Title: "JVM GC log, " + attach.Plural(len(c.pauses), "pause"), State: attach.CannotTell}
	if c.stats.rows > 0 && len(c.pauses)+len(c.stalls) == 0 {
		c.stats.judge(&r)
		return r
	}
	if len(c.phases.table) > 0 && len(c.pauses)+len(c.stalls) == 0 {
		c.phases.judgeTable(&r)
		if c.unread > 0 {
			r.Flaws = append(r.Flaws, attach.Plural(c.unread, "pause")+" cut off before its time")
		}
		return r
	}
	if c.unread > 0 && len(c.pauses)+len(c.stalls) == 0 {
		r.Title, r.Means = "JVM GC log, no pause that can be read",
			"Pauses are in it, and how long they took cannot be read: lines are cut, or broken."
		return r
	}
	if len(c.pauses)+len(c.stalls) == 0 {
		r.Means = "No pause is in it: collectors that run beside the program, or only the lines around it."
		return r
	}
	total, share := attach.Sum(c.pauses), 0.0
	time := c.covers()
	if time >= enoughLog && len(c.pauses) >= enoughPauses {
		share = min(1, total/time)
	}
	var line string
	if len(c.pauses) > 0 {
		line = fmt.Sprintf("%s of pauses in all, median %s, longest %s (%s)", span(total),
			span(attach.Median(c.pauses)), span(c.most), c.longest)
		if len(c.pauses) == 1 {
			line = fmt.Sprintf("1 pause, %s (%s)", span(c.most), c.longest)
		}
		if share > 0 {
			line += fmt.Sprintf("; %.1f %% of %s", 100*share, span(time))
		}
		r.Figures = append(r.Figures, line)
	}
	c.phases.figures(&r)
	if c.heap > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%s of %s in use after the last one (%.0f %%)",
			finding.Bytes(int64(c.after)), finding.Bytes(int64(c.heap)), 100*c.after/c.heap))
	}
	if c.full > 0 {
		line := fmt.Sprintf("%d of %d collected the whole heap", c.full, len(c.pauses))
		if c.fullVain > 0 {
			line += fmt.Sprintf("; %d freed next to nothing", c.fullVain)
		}
		r.Figures = append(r.Figures, line)
	}
	if c.vain > 0 {
		r.Figures = append(r.Figures,
			fmt.Sprintf("%d of %d cycles freed next to nothing: %.0f %% of the heap in use after the last one", c.vain, c.cycles, c.left))
	}
	if c.sys >= 0.1 && c.sys > c.cpu/2 {
		r.Figures = append(r.Figures,
			fmt.Sprintf("the kernel took %s of the %s of CPU time of the pauses, as where memory is touched for the first time", span(c.sys), span(c.cpu)))
	}
	if c.noRoom > 0 {
		r.Figures = append(r.Figures,
			fmt.Sprintf("%d of %d ran out of room to move objects to (to-space exhausted)", c.noRoom, len(c.pauses)))
	}
	c.stalled(&r)
	r.Not = "The time until all threads had stopped is not in a pause of this log: -Xlog:safepoint has it."
	if c.means {
		r.Not = "Each pause by itself: a line has the sum of several collections, and their mean stands here for each."
	}
	c.judge(&r, line, share)
	return r
}
