package stackdump

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
)

// gcLog reads what the JVM logs of its collections: -Xlog:gc since JDK 9, -XX:+PrintGC and
// +PrintGCDetails before it, and Cassandra's lines of the same.
var gcLog = &attach.Kind{
	Name:      "JVM GC log",
	Hints:     []string{"][gc", "[gc", "[GC", "[Full GC", "GC(", "<GC", "[Times: ", "GCInspector", "[Parallel Time:", "[Eden: ", "[CMS-", "[Pause ", " us"},
	Marks:     []string{"] GC(", "<GC(", "[GC (", "[GC pause", "[Full GC", "GCInspector", "[CMS-con", "[Pause "},
	Scattered: true,
	Claim: func(lines []paste.Line) int {
		n := 0
		for n < len(lines) && lines[n].Command == "" && isGCLine(lines[n].Text, n > 0) {
			n++
		}
		return n
	},
	Read: readGCLog,
}

var (
	gcTag    = regexp.MustCompile(`^(?:\[[^\]]{1,40}\])*\[(?:info|debug|trace|warning|error) *\]\[gc[a-z,]* *\] `)
	gcNumber = regexp.MustCompile(`\bGC\(\d+\) [A-Z]`)
	// "GC(5) Pause Young (Normal) (G1 Evacuation Pause) 38M->3M(64M) 2.811ms"
	gcPause = regexp.MustCompile(`\bGC\(\d+\) (Pause [\w -]+?|Garbage Collection|(?:Minor|Major) Collection)(?: \([^()]*\))*(?: (\d+)([KMG])(?:\(\d+%\))?->(\d+)([KMG])\((?:(\d+)([KMG])|\d+%)\))?(?: ([\d.,]+)(ms|s))?$`)
	gcStall = regexp.MustCompile(`Allocation Stall \((.*)\) ([\d.,]+)ms`)
	// "[GC (Allocation Failure) 629120K->69888K(629120K), 0.0585007 secs]"
	gcOld = regexp.MustCompile(`\[(GC|Full GC)(?:\b|\d).*, ([\d.,]+) secs\]`)
	// "[Pause Full 1589M->1002M(1690M), 4077.274 ms]": Shenandoah before JDK 9
	gcShen = regexp.MustCompile(`\[(Pause [A-Z][\w ()]*?)(?: (\d+)([KMG])->(\d+)([KMG])\((\d+)([KMG])\))?, ([\d.,]+) ms\]`)
	// "Pause Full GC (G)               4085272 us": its table at the end
	gcShenSum = regexp.MustCompile(`^(?:Pause|Concurrent) [A-Z][\w ().-]* \d+ us(?:,|$)|^[A-Z][\w :<>-]* +\d+ us(?:,|$)`)
	// "[Eden: ... Survivors: ... Heap: 3816.0M(4096.0M)->3734.5M(4096.0M)]"
	gcG1Heap  = regexp.MustCompile(`\bHeap: [\d.,]+[BKMG]\([\d.,]+[BKMG]\)->([\d.,]+)([BKMG])\(([\d.,]+)([BKMG])\)`)
	gcHeap    = regexp.MustCompile(`(\d+)([KMG])->(\d+)([KMG])\((\d+)([KMG])\)`)
	gcOldMore = regexp.MustCompile(`^(?:(?:\d{4}-\S+: )?[\d.,]+: )?\[(?:GC|Full GC|CMS|ParNew|Times|YG occupancy|Parallel Time|Code Root|Clear CT|Other|Eden|GC Worker|Ext Root|Update RS|Scan RS|Object Copy|Termination|Processed Buffers|Choose CSet|Ref |Redirty|Humongous|Free CSet|Evacuation|Rescan|weak refs|scrub|Unloading|class unloading)\b.*`)
	gcTimes   = regexp.MustCompile(`\[Times: user=([\d.,]*\d) sys=([\d.,]*\d),? real=([\d.,]*\d) secs\]`)
	gcOldAt   = regexp.MustCompile(`(?:^|: )(\d+[.,]\d{3}): \[`)
	gcUptime  = regexp.MustCompile(`^(?:\[[^\]]*\])*?\[(\d+[.,]?\d*)(ms|s)\]`)
	gcISO     = regexp.MustCompile(`(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,]\d{3})`)
	// IBM's JVM before 1.4.2 logs a line for each phase of a cycle; this one has its whole time.
	gcIBM = regexp.MustCompile(`^<GC\(\d+\): freed \d+ bytes, \d+% free \((\d+)/(\d+)\), in (\d+) ms>$`)
	// gcIBMMore is what stands around it.
	gcIBMMore = regexp.MustCompile(`^<(?:GC[(\[]\d+[)\]]|AF\[\d+\]): `)
	// Up to Cassandra 2.0 a line sums up what its timer found.
	gcCassOld = regexp.MustCompile(`GCInspector\.java \(line \d+\) GC for (\w+): (\d+) ms(?: for (\d+) collections)?, (\d+) (?:used|reclaimed leaving \d+ used); max is (\d+)`)
	gcCass    = regexp.MustCompile(`GCInspector\.java:\d+ - (.*?) GC in (\d+)ms`)
)

func isGCLine(text string, inside bool) bool {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > 4096 {
		return false
	}
	if strings.Contains(text, "[Pause ") && (gcShen.MatchString(text) || strings.HasSuffix(text, ", start]")) {
		return true
	}
	if strings.HasSuffix(text, " us") || strings.Contains(text, " us, ") {
		return gcShenSum.MatchString(text) && (inside || strings.HasPrefix(text, "Pause ") || strings.HasPrefix(text, "Concurrent "))
	}
	if inside && (strings.HasPrefix(text, "Good progress for ") || strings.HasPrefix(text, "Using ") && strings.Contains(text, " workers for ")) {
		return true
	}
	if gcTag.MatchString(text) || gcNumber.MatchString(text) || gcOld.MatchString(text) || gcCass.MatchString(text) || gcCassOld.MatchString(text) || gcIBMMore.MatchString(text) || strings.Contains(text, "[CMS-concurrent-") {
		return true
	}
	return (inside || strings.Contains(text, "[Times: ")) && (gcOldMore.MatchString(text) || gcTimes.MatchString(text))
}

// collections is what the lines say, in seconds and bytes.
type collections struct {
	pauses      []float64
	means       bool      // some pauses are the mean of a sum
	begun       float64   // when the first pause was logged
	stalls      []float64 // of threads that had to wait for ZGC or Shenandoah
	full        int
	noRoom      int // objects found no room to be moved to
	most        float64
	longest     string  // what that one was
	after, heap float64 // of the last one
	first, last float64 // time of the first line and the last, in s; last is 0 where it is not known
	cpu, real   float64 // of pauses that say both
}

func readCollections(p *attach.Part) (c collections) {
	zero := time.Time{}
	seen := false
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		raw := text
		if l.Raw != "" {
			raw = strings.TrimSpace(l.Raw)
		}
		if at, ok := gcTime(raw, l.Time, &zero); ok {
			if !seen {
				c.first, seen = at, true
			}
			c.last = max(c.last, at)
		}
		c.line(text)
	}
	return c
}

// gcTime is when a line was written: by the JVM's own clock if it is there.
func gcTime(text string, logged time.Time, zero *time.Time) (s float64, ok bool) {
	if m := gcUptime.FindStringSubmatch(text); m != nil {
		s, ok = decimal(m[1])
		if m[2] == "ms" {
			s /= 1e3
		}
		return s, ok
	}
	if m := gcOldAt.FindStringSubmatch(text); m != nil {
		return decimal(m[1])
	}
	if m := gcISO.FindStringSubmatch(text); m != nil {
		t, err := time.Parse("2006-01-02T15:04:05.000", strings.Replace(m[1], ",", ".", 1))
		if err == nil {
			logged = t
		}
	}
	if logged.IsZero() {
		return 0, false
	}
	if zero.IsZero() {
		*zero = logged
	}
	return logged.Sub(*zero).Seconds(), true
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
	if m := gcTimes.FindStringSubmatch(text); m != nil {
		user, _ := decimal(m[1])
		sys, _ := decimal(m[2])
		real, _ := decimal(m[3])
		if real >= 0.02 { // the JVM rounds to 10 ms
			c.cpu, c.real = c.cpu+user+sys, c.real+real
		}
	}
	if m := gcPause.FindStringSubmatch(text); m != nil {
		if m[8] == "" || !strings.HasPrefix(m[1], "Pause") {
			return
		}
		v, ok := decimal(m[8])
		if m[9] == "ms" {
			v /= 1e3
		}
		if ok {
			c.pause(v, m[1], strings.Contains(m[1], "Full"))
		}
		if m[4] != "" && m[6] != "" {
			c.after, c.heap = kmg(m[4], m[5]), kmg(m[6], m[7])
		}
	} else if m := gcShen.FindStringSubmatch(text); m != nil {
		if v, ok := decimal(m[8]); ok {
			c.pause(v/1e3, m[1], strings.Contains(m[1], "Full"))
		}
		if m[4] != "" {
			c.after, c.heap = kmg(m[4], m[5]), kmg(m[6], m[7])
		}
	} else if m := gcG1Heap.FindStringSubmatch(text); m != nil {
		c.after, c.heap = kmg(m[1], m[2]), kmg(m[3], m[4])
	} else if m := gcOld.FindStringSubmatch(text); m != nil {
		if strings.Contains(m[0], "(to-space exhausted)") {
			c.noRoom++
		}
		if v, ok := decimal(m[2]); ok {
			c.pause(v, m[1], m[1] == "Full GC")
		}
		if all := gcHeap.FindAllStringSubmatch(text, 8); len(all) > 0 {
			h := all[0]
			for _, x := range all { // the whole heap is the largest of them
				if kmg(x[5], x[6]) > kmg(h[5], h[6]) {
					h = x
				}
			}
			c.after, c.heap = kmg(h[3], h[4]), kmg(h[5], h[6])
		}
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
	}
}

// summed takes a line which says only the sum of its collections: their mean stands for each.
func (c *collections) summed(what, ms, times string) {
	v, ok := decimal(ms)
	n, _ := decimal(times)
	n = min(max(n, 1), 1000)
	c.means = c.means || n > 1
	for range int(n) {
		if ok {
			c.pause(v/1e3/n, what, false)
		}
	}
}

func (c *collections) pause(s float64, what string, full bool) {
	if len(c.pauses) == 0 {
		c.begun = c.last
	}
	if s > c.most || len(c.pauses) == 0 {
		c.most, c.longest = s, what
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
	if len(c.pauses)+len(c.stalls) == 0 {
		r.Means = "No pause is in it: collectors that run beside the program, or only the lines around it."
		return r
	}
	total, share := attach.Sum(c.pauses), 0.0
	if time := c.last - c.first; time >= enoughLog && len(c.pauses) >= enoughPauses {
		share = min(1, total/time)
	}
	var line string
	if len(c.pauses) > 0 {
		line = fmt.Sprintf("%s of pauses in all, median %s, longest %s (%s)", span(total), span(attach.Median(c.pauses)), span(c.most), c.longest)
		if share > 0 {
			line += fmt.Sprintf("; %.1f %% of %s", 100*share, span(c.last-c.first))
		}
		r.Figures = append(r.Figures, line)
	}
	if c.heap > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%s of %s in use after the last one (%.0f %%)", finding.Bytes(int64(c.after)), finding.Bytes(int64(c.heap)), 100*c.after/c.heap))
	}
	if c.full > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%d of %d collected the whole heap", c.full, len(c.pauses)))
	}
	if c.noRoom > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%d of %d ran out of room to move objects to (to-space exhausted)", c.noRoom, len(c.pauses)))
	}
	if len(c.stalls) > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%s of threads that waited for memory, longest %s", attach.Plural(len(c.stalls), "stall"), span(slices.Max(c.stalls))))
	}
	r.Not = "The time until all threads had stopped is not in a pause of this log: -Xlog:safepoint has it."
	if c.means {
		r.Not = "Each pause by itself: a line has the sum of several collections, and their mean stands here for each."
	}
	c.judge(&r, line, share)
	return r
}

// muchOfBurst is the share of pauses from which on a short log is not said to be healthy.
const muchOfBurst = 0.3

// burst is the share of pauses in a log that is too short for a share of time.
func (c collections) burst() float64 {
	time := c.last - c.begun
	if time <= 0 || time >= enoughLog || len(c.pauses) < enoughPauses {
		return 0
	}
	return min(1, attach.Sum(c.pauses)/time)
}

// judge says what follows from pauses.
func (c collections) judge(r *attach.Reading, line string, share float64) {
	short := c.heap > 0 && c.after >= 0.85*c.heap
	why := "what the program allocates"
	if short {
		why = "a heap that is nearly full after each collection"
	}
	r.Next = []attach.Next{{Command: "java -Xlog:gc*,safepoint ...", Why: "the phases of a pause, and the time until threads had stopped"}}
	switch {
	case c.real >= 0.1 && c.cpu < c.real/2:
		proof := fmt.Sprintf("pauses of %s by the clock used %s of CPU time", span(c.real), span(c.cpu))
		r.Figures = append([]string{proof}, r.Figures...)
		r.Means = "The collector's threads did not run for much of the pauses: they had no CPU, or waited for memory from swap."
		for _, cause := range []string{"cpu-contention", "cpu-throttled", "disk-wait"} {
			r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate, Share: share, Proof: []string{proof}})
		}
		r.Next = []attach.Next{{Command: "cat /sys/fs/cgroup/CGROUP/cpu.stat; vmstat 1 10", Why: "nr_throttled says quota, r says CPUs, si says swap"}}
	case share >= 0.1:
		r.State = attach.Ill
		r.Means = fmt.Sprintf("All threads stood still for %.0f %% of the time, for collections: of %s.", 100*share, why)
		r.Signs = append(r.Signs, attach.Sign{Cause: "jvm-safepoint", Grade: attach.Found, Sure: finding.Supported, Share: share, Proof: []string{line}})
	case c.burst() >= muchOfBurst:
		proof := fmt.Sprintf("%s of the %s from the first pause to the last were pauses (%.0f %%)", span(attach.Sum(c.pauses)), span(c.last-c.begun), 100*c.burst())
		r.Figures = append(r.Figures, proof)
		r.Means = "Much of this short time went into collections: the log is too short to say whether that goes on, as after a start."
		r.Signs = append(r.Signs, attach.Sign{Cause: "jvm-safepoint", Grade: attach.Candidate, Proof: []string{proof}})
	case share >= muchStopped, c.most >= longStop, len(c.stalls) > 0:
		r.Means = "Some pauses are long enough for requests to feel them; how many requests met one is not in it."
		if line == "" {
			line = r.Figures[0]
		}
		r.Signs = append(r.Signs, attach.Sign{Cause: "jvm-safepoint", Grade: attach.Candidate, Share: share, Proof: []string{line}})
	case len(c.pauses) < enoughPauses:
		r.Means = "No pause is long, but these are few."
	default:
		r.State, r.Means = attach.Healthy, "No pause is long enough for requests to feel it."
		r.Next = nil
	}
}
