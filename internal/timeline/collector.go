package timeline

import (
	"cmp"
	"sort"

	"github.com/whystall/whystall/exectrace"
)

// Sweep is one sweep by an allocating goroutine.
type Sweep struct {
	N                uint32 // its number
	Begin, End       int64
	Swept, Reclaimed int64
	GoID             exectrace.GoID
	Stack            exectrace.StackID
}

// Mark is one concurrent mark phase.
type Mark struct{ Begin, End int64 } // End 0: not seen

func (m Mark) span() (begin, end int64) { return m.Begin, m.End }

// SiteSum is what happened at one stack.
type SiteSum struct {
	NS, N int64
}

// GC sums up the collector.
type GC struct {
	Cycles, MarkNS, AssistNS  int64
	GoalMin, GoalMax, LiveMax int64
	Marked                    int64 // heap found live, the average over the cycles; 0 not known
	Goal                      int64 // for the heap until the next cycle, likewise
	Assists, Triggers         map[exectrace.StackID]*SiteSum
}

// Bounds of the lists. At ten collections a second the marks of an hour are kept.
const (
	maxMarks  = 1 << 15
	topSweeps = 100
	maxSites  = 1 << 13
)

// collector follows the garbage collector: its mark phases, the sweeps and assists of goroutines,
// and the size of the heap.
type collector struct {
	marks  []Mark
	near   int // see before
	cycles int64
	pastNS int64 // of marks that have ended

	sweepN uint32
	open   []Sweep // by slot
	top    []Sweep // the longest, longest first

	assistNS int64
	assists  map[exectrace.StackID]*SiteSum
	triggers map[exectrace.StackID]*SiteSum

	goalMin, goalMax, liveMax  int64
	liveNow, goalNow           int64
	low                        int64 // smallest heap since the last cycle began: found live by it
	markedSum, goalSum, marked int64 // of cycles of which both are known
}

func (c *collector) goal(bytes int64) {
	if c.goalMin == 0 || bytes < c.goalMin {
		c.goalMin = bytes
	}
	c.goalMax = max(c.goalMax, bytes)
	c.goalNow = bytes
}

func (c *collector) live(bytes int64) {
	c.liveMax = max(c.liveMax, bytes)
	c.liveNow = bytes
	if c.low == 0 || bytes < c.low {
		c.low = bytes
	}
}

// markBegin starts a mark phase; stack is where it was triggered.
func (c *collector) markBegin(stack exectrace.StackID, now int64) {
	n := len(c.marks)
	if n > 0 && c.marks[n-1].End == 0 {
		return // a generation repeats it
	}
	if n >= maxMarks {
		c.marks = c.marks[:copy(c.marks, c.marks[n/2:])]
	}
	c.marks = append(c.marks, Mark{Begin: now})
	c.grown()
	c.cycles++
	if stack != 0 {
		c.triggers = addSite(c.triggers, stack, 0)
	}
}

func (c *collector) markEnd(now int64) {
	switch n := len(c.marks); {
	case n == 0: // it was under way when the trace began
		c.marks = append(c.marks, Mark{Begin: 0, End: now})
		c.pastNS += now
	case c.marks[n-1].End == 0:
		c.marks[n-1].End = now
		c.pastNS += now - c.marks[n-1].Begin
	}
}

// grown remembers how far the heap was let grow since the cycle before: from what that one found
// live to the goal. Sums are of KiB, so that no number of cycles overflows them.
func (c *collector) grown() {
	// With GOGC=off the goal is 0, and the memory limit starts cycles: the heap was let grow to its
	// present size.
	if goal := cmp.Or(c.goalNow, c.liveNow); c.low > 0 && goal > 0 && c.cycles > 0 {
		c.markedSum += c.low >> 10
		c.goalSum += goal >> 10
		c.marked++
	}
	c.low = 0
}

// forget ends what a gap leaves open.
func (c *collector) forget(now int64) {
	if n := len(c.marks); n > 0 && c.marks[n-1].End == 0 {
		c.markEnd(now)
	}
	clear(c.open)
}

// addSite counts ns at a stack. Stacks beyond the bound count together, as 0.
func addSite(m map[exectrace.StackID]*SiteSum, id exectrace.StackID, ns int64) map[exectrace.StackID]*SiteSum {
	if m == nil {
		m = map[exectrace.StackID]*SiteSum{}
	}
	s := m[id]
	if s == nil && len(m) >= maxSites {
		id = 0
		s = m[id]
	}
	if s == nil {
		s = &SiteSum{}
		m[id] = s
	}
	s.NS += ns
	s.N++
	return m
}

func (c *collector) assisted(stack exectrace.StackID, ns int64) {
	c.assistNS += ns
	c.assists = addSite(c.assists, stack, ns)
}

// sweepBegin starts a sweep by the goroutine at slot, and numbers it.
func (c *collector) sweepBegin(slot uint32, now int64, id exectrace.GoID, stack exectrace.StackID) uint32 {
	for int(slot) >= len(c.open) {
		c.open = append(c.open, make([]Sweep, max(16, len(c.open)))...)
	}
	c.sweepN++
	c.open[slot] = Sweep{N: c.sweepN, Begin: now, GoID: id, Stack: stack}
	return c.sweepN
}

// sweepEnd ends the sweep at slot, and keeps it if it is one of the longest.
func (c *collector) sweepEnd(slot uint32, now int64, swept, reclaimed uint64) {
	if int(slot) >= len(c.open) || c.open[slot].N == 0 {
		return
	}
	s := c.open[slot]
	c.open[slot] = Sweep{}
	s.End = now
	s.Swept, s.Reclaimed = bytes(swept), bytes(reclaimed)
	d := s.End - s.Begin
	if n := len(c.top); n == topSweeps && c.top[n-1].End-c.top[n-1].Begin >= d {
		return
	}
	i := sort.Search(len(c.top), func(i int) bool { return c.top[i].End-c.top[i].Begin < d })
	if len(c.top) < topSweeps {
		c.top = append(c.top, Sweep{})
	}
	copy(c.top[i+1:], c.top[i:])
	c.top[i] = s
}

// bytes is a number of bytes from the trace, which may be damaged.
func bytes(n uint64) int64 { return int64(min(n, 1<<62)) }

// before counts the marks that began before e, as [stops.before] does.
func (c *collector) before(e int64) int {
	i := min(c.near, len(c.marks))
	for i < len(c.marks) && c.marks[i].Begin < e {
		i++
	}
	for i > 0 && c.marks[i-1].Begin >= e {
		i--
	}
	c.near = i
	return i
}

// markNS is [Timeline.MarkNS].
func (c *collector) markNS(s, e, now int64) int64 {
	if n := len(c.marks); n == 0 || c.marks[n-1].End != 0 && c.marks[n-1].End <= s {
		return 0
	}
	return overlapNS(c.marks[:c.before(e)], s, e, now)
}

// sum is [Timeline.GC].
func (c *collector) sum(now int64) GC {
	g := GC{Cycles: c.cycles, MarkNS: c.pastNS, AssistNS: c.assistNS, GoalMin: c.goalMin,
		GoalMax: c.goalMax, LiveMax: c.liveMax,
		Assists: c.assists, Triggers: c.triggers}
	if c.marked > 0 {
		g.Marked, g.Goal = c.markedSum/c.marked<<10, c.goalSum/c.marked<<10
	}
	if n := len(c.marks); n > 0 && c.marks[n-1].End == 0 {
		g.MarkNS += now - c.marks[n-1].Begin
	}
	return g
}
