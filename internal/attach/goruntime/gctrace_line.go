package goruntime

import (
	"math"
	"strings"
)

// cycle is what one gctrace line says. Times are ms.
type cycle struct {
	n           int
	at          float64 // s since the program started; -1: not printed (before Go 1.5)
	sinceStart  float64 // GC's share of the CPU since the start, as printed
	stop1, mark float64 // wall: first stop-the-world, concurrent part
	stop2       float64 // wall: second stop-the-world
	assist      float64 // CPU of goroutines that allocate
	workers     float64 // CPU of background workers; the marker's own stacks and globals before Go 1.6
	idleWorkers float64 // CPU of workers on Ps that had nothing to do
	stopCPU     float64 // stops x Ps, by arithmetic
	before      float64 // MB when the cycle started
	live, goal  float64 // MB; goal 0: not printed
	ncpu        int     // CPUs, where they are known to be fewer than the Ps; 0: not known
	ps          int     // 0: not printed. Before Go 1.5: the threads that took part
	forced      bool    // by runtime.GC
	late        bool    // by the runtime, since there was none for two minutes
	five        bool    // Go 1.5: five clock phases
	whole       bool    // before Go 1.5: all of the cycle but the sweep is one stop
	coarse      bool    // its times are printed in whole ms
	lazy        bool    // Go 1.3 and 1.4: live is of the cycle before, since this one sweeps later
}

// cpus is how many CPUs the process may use: the Ps, or fewer.
func (c *cycle) cpus() float64 {
	if c.ncpu > 0 {
		return float64(c.ncpu)
	}
	return float64(c.ps)
}

// Of stops: the length in ms from which the three figures that are printed say a ratio; how many
// have to agree; and what it is at most before Go 1.10, on any machine.
const (
	readableStop = 0.1
	agreeing     = 5
	oldMost      = 32
)

// countCPUs notes how many CPUs the machine gives, where they are fewer than the Ps. A stop's CPU
// time is its length times the smaller of both (stwprocs of gcStart). Before Go 1.10 it is also no
// more than the threads that rest, which differs from cycle to cycle.
func countCPUs(cs []cycle) {
	n, agree := 0, 0
	for i := range cs {
		wall := cs[i].stop1 + cs[i].stop2
		if wall < readableStop || cs[i].whole {
			continue
		}
		r := cs[i].stopCPU / wall
		this := int(math.Round(min(r, 1e6)))
		if this < 1 || this >= cs[i].ps || this == oldMost ||
			math.Abs(r-float64(this)) > 0.1*float64(this) || n > 0 && this != n {
			return
		}
		n = this
		agree++
	}
	for i := range cs {
		if agree >= agreeing {
			cs[i].ncpu = n
		}
	}
}

// places is the Ps or the CPUs, whichever are fewer.
func (c *cycle) places() string {
	if n := int(c.cpus()); n < c.ps {
		return count(n, "CPU", "CPUs")
	}
	return count(c.ps, "P", "Ps")
}

// gctraceAt returns where a gctrace line starts in a line of a log, -1 if nowhere: "gc 7 @" since
// Go 1.5, "gc7(4): " before.
func gctraceAt(line string) int {
	for from := 0; ; {
		i := strings.IndexAny(line[from:], "gG")
		if i < 0 || from+i+2 > len(line) {
			return -1
		}
		i += from
		from = i + 1
		if line[i+1] != 'c' && line[i+1] != 'C' {
			continue
		}
		if i > 0 && !strings.ContainsRune(" \t:|\"'>]`", rune(line[i-1])) {
			continue
		}
		rest := line[i+2:]
		if after, ok := strings.CutPrefix(rest, " "); ok {
			d := digits(after)
			if d > 0 && d < 10 && strings.HasPrefix(after[d:], " @") && digits(after[d+2:]) > 0 {
				return i
			}
			continue
		}
		d := digits(rest)
		if d > 0 && d < 10 && strings.HasPrefix(rest[d:], "(") {
			e := digits(rest[d+1:])
			if e > 0 && strings.HasPrefix(rest[d+1+e:], "): ") {
				return i
			}
		}
	}
}

// parseCycle parses a gctrace line from its "gc" on. Its shapes (package runtime's documentation,
// and mgc0.c of Go 1.1 to 1.4):
//
//	gc 7 @1.234s 5%: 0.018+1.2+0.003 ms clock, 0.14+0.35/1.1/0+0.02 ms cpu, 4->5->1 MB, 4 MB goal, 8 P
//	gc 7 @1.234s 5%: 0.1+2+0.1+1+0.5 ms clock, 0.4+2+0+0.5/1/0+1 ms cpu, 4->5->1 MB, 4 MB goal, 4 P
//	gc7(4): 1+2+1133+6 us, 4 -> 5 MB, 34 (456-422) objects, 65/0/0 sweeps, 0(0) handoff, ...
//
// An editor may have changed its capitals: "ms CPU", "MB Goal".
func parseCycle(line string) (cycle, bool) {
	rest := line[min(len("gc"), len(line)):]
	if after, ok := strings.CutPrefix(rest, " "); ok {
		return parseConcurrent(after)
	}
	return parseStopped(rest)
}

// cutUnit cuts a unit off the end, whatever its capitals.
func cutUnit(s, unit string) (string, bool) {
	at := len(s) - len(unit)
	if at < 0 || !strings.EqualFold(s[at:], unit) {
		return s, false
	}
	return s[:at], true
}

// parseHead parses a line of Go 1.5 or later as far as its times by the clock, whatever follows.
func parseHead(line string) (cycle, bool) {
	rest, ok := strings.CutPrefix(line, "gc ")
	c, _, isHead := parseClock(rest)
	return c, ok && isHead
}

// parseStart parses the number and the time of such a line, whatever follows.
func parseStart(line string) (c cycle, ok bool) {
	f := strings.Fields(line)
	if len(f) < 3 || !strings.HasPrefix(f[2], "@") || !strings.HasSuffix(f[2], "s") {
		return c, false
	}
	c.n, ok = whole(f[1])
	at, isNumber := number(strings.Trim(f[2], "@s"))
	c.at = at
	return c, ok && isNumber
}

// parseClock parses "7 @1.234s 5%: 0.018+1.2+0.003 ms clock", and returns what follows.
func parseClock(line string) (c cycle, parts []string, ok bool) {
	head, rest, ok := strings.Cut(line, ": ")
	f := strings.Fields(head)
	if !ok || len(f) != 3 {
		return c, nil, false
	}
	var okN, okT, okP bool
	c.n, okN = whole(f[0])
	c.at, okT = number(strings.TrimSuffix(strings.TrimPrefix(f[1], "@"), "s"))
	c.sinceStart, okP = number(strings.TrimSuffix(f[2], "%"))
	if !okN || !okT || !okP || !strings.HasSuffix(f[1], "s") || !strings.HasSuffix(f[2], "%") {
		return c, nil, false
	}
	parts = strings.Split(rest, ", ")
	clock, isClock := cutUnit(parts[0], "ms clock")
	return c, parts[1:], isClock && c.clock(strings.TrimSpace(clock))
}

func parseConcurrent(line string) (c cycle, ok bool) {
	c, parts, ok := parseClock(line)
	if !ok || len(parts) < 3 {
		return c, false
	}
	cpu, isCPU := cutUnit(parts[0], " ms cpu")
	if !isCPU || !c.cpu(cpu) {
		return c, false
	}
	for _, part := range parts[1:] {
		part = strings.TrimSpace(part)
		goal, isGoal := cutUnit(part, " MB goal")
		switch {
		case strings.Contains(part, "->"):
			heap, _ := cutUnit(part, " MB")
			if !c.heap(heap) {
				return c, false
			}
		case isGoal:
			if c.goal, ok = number(goal); !ok {
				return c, false
			}
		default:
			c.processors(part)
		}
	}
	return c, c.ps > 0 || c.goal > 0 // the Ps at its end may be cut off
}

// processors takes "8 P", "8 P (forced)"; a log may have put more behind it.
func (c *cycle) processors(part string) {
	d := digits(part)
	rest, ok := strings.CutPrefix(strings.ToLower(part[d:]), " p")
	if n, isNumber := whole(part[:d]); ok && isNumber && n > 0 && (rest == "" || !isLetter(rest[0])) {
		c.ps = n
		c.forced = strings.HasPrefix(rest, " (forced)")
	}
}

func isLetter(b byte) bool { return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' }

// clock takes the phases' wall times. In Go 1.5 they are: stop for sweep termination, scan, wait
// for all Ps, mark, stop for mark termination. The middle three run beside the program.
func (c *cycle) clock(s string) bool {
	v, ok := numbers(s, "+")
	switch {
	case ok && len(v) == 3:
		c.stop1, c.mark, c.stop2 = v[0], v[1], v[2]
	case ok && len(v) == 5:
		c.stop1, c.mark, c.stop2, c.five = v[0], v[1]+v[2]+v[3], v[4], true
	default:
		return false
	}
	return true
}

// cpu takes the phases' CPU times, "A+B/C/D+E" or, in Go 1.5, "A+B+C+D/E/F+G".
func (c *cycle) cpu(s string) bool {
	parts := strings.Split(s, "+")
	if len(parts) != 3 && len(parts) != 5 {
		return false
	}
	marking, ok := numbers(parts[len(parts)-2], "/")
	if !ok || len(marking) != 3 {
		return false
	}
	c.assist, c.workers, c.idleWorkers = marking[0], marking[1], marking[2]
	for i, p := range parts {
		v, ok := number(p)
		switch {
		case i == len(parts)-2:
			continue
		case !ok:
			return false
		case i == 0 || i == len(parts)-1:
			c.stopCPU += v
		default:
			c.workers += v
		}
	}
	return true
}

func (c *cycle) heap(s string) bool {
	v, ok := numbers(s, "->")
	if !ok || len(v) != 3 {
		return false
	}
	c.before, c.live = v[0], v[2]
	return true
}

// parseStopped parses the lines of Go 1.1 to 1.4. The whole world stands still from the first time
// to the last; Go 1.3 on sweeps later.
func parseStopped(line string) (c cycle, ok bool) {
	n, rest, ok := strings.Cut(line, "(")
	c.n, _ = whole(n)
	ps, rest, ok2 := strings.Cut(rest, "): ")
	if !ok || !ok2 || !strings.Contains(rest, " handoff, ") && !strings.Contains(rest, " objects") {
		return c, false
	}
	c.ps, _ = whole(ps)
	if !strings.Contains(rest, ", ") { // Go 1.0 puts blanks only
		rest = strings.Replace(strings.Replace(rest, "s ", "s, ", 1), " MB ", " MB, ", 1)
	}
	parts := strings.Split(rest, ", ")
	times, unit, _ := strings.Cut(parts[0], " ")
	scale := map[string]float64{"us": 1e-3, "ms": 1}[unit]
	v, ok := numbers(times, "+")
	if !ok || scale == 0 || len(v) < 3 || len(v) > 4 {
		return c, false
	}
	for _, t := range v {
		c.stop1 += t * scale
	}
	c.at, c.whole, c.coarse = -1, true, scale == 1
	if len(parts) > 1 {
		from, to, isHeap := strings.Cut(strings.TrimSuffix(parts[1], " MB"), " -> ")
		if to, _, _ = strings.Cut(to, " "); isHeap {
			c.before, _ = number(from)
			c.live, _ = number(to)
		}
		// What is swept later is not free yet: they are after the last cycle and before this one.
		if c.lazy = strings.Contains(rest, " sweeps"); c.lazy {
			c.before, c.live = c.live, c.before
		}
	}
	return c, c.ps > 0
}

// numbers parses numbers between separators.
func numbers(s, sep string) ([]float64, bool) {
	parts := strings.Split(s, sep)
	if len(parts) > 8 {
		return nil, false
	}
	out := make([]float64, len(parts))
	for i, p := range parts {
		v, ok := number(p)
		if !ok {
			return nil, false
		}
		out[i] = v
	}
	return out, true
}
