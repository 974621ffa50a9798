package exectrace

import "fmt"

// consumer replaces a generation's ids by the trace's.
type consumer struct {
	t        *Trace
	last     Time
	gens     int
	strs     []localString // by the generation's id
	named    []namedReason // by the generation's string id
	stacks   []StackID     // by the generation's id
	slots    []uint32      // by the generation's goroutine index + 1, see resetSlots
	states   []State       // by slot
	stw      []StringID    // by slot: the kind of the open stop-the-world
	seen     []uint32      // by slot: the last generation it was in
	procs    []State       // by P
	tasks    map[uint64]task
	reasons  map[StringID]Reason
	lossy    bool
	complete bool
	one      [1]Event
}

type localString struct {
	id     StringID
	reason Reason
}

type task struct {
	name   StringID
	parent uint64
}

// maxTasks bounds what is remembered of tasks that never end.
const maxTasks = 128 << 10

// generation readies the tables for the blocks of j. It reads the mapping.
func (c *consumer) generation(j *job) {
	c.gens++
	c.resetSlots()
	c.readStrings(j.g)
	c.nameReasons()
	c.readStacks(j.g)
	t := c.t
	clk := &t.read.clock
	if c.gens == 1 {
		*clk = Clock{Monotonic: j.freq == linuxFreq}
	}
	if s := j.g.snap; s.ok && !clk.Wall {
		clk.Wall = true
		clk.MonoNS = int64(scale(s.ts, j.freq))
		clk.WallNS = int64(s.wallSec)*1e9 + int64(s.wallNs)
	}
	c.complete = j.g.complete && len(j.g.lost) == 0
}

// endGeneration adds up what the worker counted. After a loss, it forgets goroutines that a
// complete generation did not mention: their end was lost.
func (c *consumer) endGeneration(j *job, e *genEnd) {
	s := &c.t.read.stats
	s.Generations += e.stats.Generations
	s.Batches += e.stats.Batches
	s.Events += e.stats.Events
	s.Repaired += e.stats.Repaired
	s.Experimental += e.stats.Experimental
	s.Dropped += e.stats.Dropped
	for _, g := range e.gaps {
		c.t.read.gap(g)
		c.lossy = true
	}
	if c.lossy && c.complete && len(e.gaps) == 0 {
		for slot := range c.t.slots.goid {
			if c.seen[slot] != uint32(c.gens) {
				c.t.slots.end(c.t.slots.goid[slot])
			}
		}
		c.lossy = false
	}
}

// finish gives the event that ends the trace.
func (c *consumer) finish() []Event {
	if c.gens == 0 {
		return nil
	}
	c.one[0] = blank
	c.one[0].Kind, c.one[0].Time = KindSync, c.last
	c.t.read.stats.Events++
	return c.one[:]
}

func (c *consumer) readStrings(g *generation) {
	c.strs = c.strs[:0]
	total := 0
	for _, s := range g.strings {
		total += s.end - s.off
	}
	for _, s := range g.strings {
		d := c.t.data[s.off:s.end]
		for i := 1; i < len(d); {
			if d[i] != evString {
				c.tableGap(g, "string", s, i)
				break
			}
			var id, n uint64
			id, i = uvarint(d, i+1)
			n, i = uvarint(d, i)
			if i > len(d) || n > maxString || int(n) > len(d)-i {
				c.tableGap(g, "string", s, i)
				break
			}
			// Ids count up from one, and each takes three bytes: an honest one cannot be above
			// this.
			if id <= uint64(total) && id > 0 {
				str := c.t.tables.internString(d[i : i+int(n)])
				for uint64(len(c.strs)) <= id {
					c.strs = append(c.strs, localString{})
				}
				c.strs[id] = localString{str, c.reason(str)}
			}
			i += int(n)
		}
	}
}

func (c *consumer) tableGap(g *generation, what string, s span, i int) {
	c.t.read.gap(Gap{
		Begin: c.last, End: c.last, Bytes: int64(s.end - s.off - min(i, s.end-s.off)),
		Reason: fmt.Sprintf("a table of %ss is damaged at offset %d: some read as none", what,
			s.off+min(i, s.end-s.off)),
	})
}

func (c *consumer) readStacks(g *generation) {
	c.stacks = c.stacks[:0]
	total := 0
	for _, s := range g.stacks {
		total += s.end - s.off
	}
	var frames [maxDepth]uint32
	for _, s := range g.stacks {
		d := c.t.data[s.off:s.end]
		for i := 1; i < len(d); {
			if d[i] != evStack {
				c.tableGap(g, "stack", s, i)
				break
			}
			var id, n uint64
			id, i = uvarint(d, i+1)
			n, i = uvarint(d, i)
			if i > len(d) || n > maxStackDepthRaw {
				c.tableGap(g, "stack", s, i)
				break
			}
			for k := range int(n) {
				var pc, fn, file, line uint64
				pc, i = uvarint(d, i)
				fn, i = uvarint(d, i)
				file, i = uvarint(d, i)
				line, i = uvarint(d, i)
				if k < maxDepth {
					frames[k] = c.t.tables.internFrame(pc, c.str(fn), c.str(file), line)
				}
			}
			if i > len(d) {
				c.tableGap(g, "stack", s, i)
				break
			}
			if id <= uint64(total) && id > 0 {
				for uint64(len(c.stacks)) <= id {
					c.stacks = append(c.stacks, 0)
				}
				c.stacks[id] = c.t.tables.internStack(frames[:min(n, maxDepth)])
			}
		}
	}
}

func (c *consumer) str(id uint64) StringID {
	if id < uint64(len(c.strs)) {
		return c.strs[id].id
	}
	return 0
}
