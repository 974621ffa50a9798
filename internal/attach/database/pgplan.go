package database

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// pgPlan reads EXPLAIN of PostgreSQL, with or without ANALYZE, by itself or from auto_explain.
var pgPlan = &attach.Kind{
	Name:   "PostgreSQL plan",
	Hints:  []string{"QUERY PLAN", "(cost=", "(actual"},
	Yields: []string{"PostgreSQL log"},
	Claim: func(lines []paste.Line) int {
		if mysqlTree(lines) {
			return 0
		}
		return claimPGPlan(inQuotes(lines))
	},
	Reports: true, // each is of one statement
	Apart: func(l paste.Line) bool {
		return pgHead(strings.Trim(l.Text, `"`)) || isPGNode(l.Text) && !strings.Contains(l.Text, "->")
	},
	Read: readPGPlan,
}

var (
	pgNode    = pattern.New(`^\s*(?:\|\s*)?(?:->\s+)?([A-Z][\w ,."()*-]*?)\s+\((?:cost=([\d.]+)\.\.([\d.]+) rows=(\d+) width=\d+\))?\s*\(?(?:actual(?: time=([\d.]+)\.\.([\d.]+))?(?: rows=([\d.]+))?(?: loops=(\d+))?\)|never executed\))?`)
	pgIsNode  = pattern.New(`\(cost=[\d.]+\.\.[\d.]+ rows=\d+ width=\d+\)|\(actual time=`)
	pgDetail  = pattern.New(`^\s+(Buffers|Sort Key|Sort Method|Filter|Rows Removed|Hash Cond|Index Cond|Join Filter|Merge Cond|Recheck Cond|Heap|Workers|Worker|Buckets|I/O Timings|Group Key|Planning|Execution|Output|SubPlan|InitPlan|CTE|Settings|JIT|Functions|Options|Timing|Query Identifier|Batches|Cache|Hits|WAL|Subplans|One-Time|TID|Order By|Presorted|Full-sort|Pre-sorted|Index Searches|Exact|Storage|Trigger|Conflict|Tuples|Params|Relations|Inner Unique|Single Copy|Sampling|Function Call|Partial)\b|^\s*(Planning Time|Execution Time|Planning time|Execution time|Total runtime|Time|JIT|Planning|Settings|Triggers?\b.*): ?|^\s*(JIT|Planning):$|^\(\d+ rows?\)$|^-{10,}$|^\s*QUERY PLAN\s*$`)
	pgTime    = pattern.New(`(?:Execution [Tt]ime|Total runtime): ([\d.]+) ms`)
	pgWorkers = pattern.New(`^\s*Workers Launched: (\d+)`)
	pgPlanned = pattern.New(`Planning [Tt]ime: ([\d.]+) ms`)
	pgIO      = pattern.New(`I/O Timings:(?: shared(?:/local)?)? read=([\d.]+)`)
)

// pgOther is a detail that extensions and relatives of PostgreSQL add, and a branch without a cost.
var pgOther = pattern.New(`^\s{2,}(?:[A-Z][A-Za-z/ -]{1,40}: \S|->\s+[A-Z])`)

// pgFlat is a detail of a node of which the indentation was lost.
var pgFlat = pattern.New(`^(?:Buffers|Sort Key|Sort Method|Filter|Rows Removed by \w+(?: \w+)*|Hash Cond|Index Cond|Join Filter|Merge Cond|Recheck Cond|Heap (?:Blocks|Fetches)|Workers (?:Planned|Launched)|Buckets|I/O Timings|Group Key|Output): `)

// isPGNode reports whether a line is a node. Costs without a width, and names with a colon, are
// MySQL's.
func isPGNode(text string) bool {
	if !pgIsNode.MatchString(text) {
		return false
	}
	if strings.Contains(text, "(cost=") {
		return strings.Contains(text, " width=")
	}
	name, _, _ := strings.Cut(text, "(actual")
	return !strings.Contains(name, ": ")
}

// pgHead reports whether a line is the name of the column that a plan is printed in.
func pgHead(text string) bool { return strings.Trim(text, " |") == "QUERY PLAN" }

// planDepth is how far a node stands from the start of its line.
func planDepth(text string) int { return len(text) - len(strings.TrimLeft(text, " \t|")) }

// mostQuoted bounds the lines of one such plan.
const mostQuoted = 1000

// inQuotes is a plan without the quotes that pgAdmin puts around each of its lines.
func inQuotes(lines []paste.Line) []paste.Line {
	var out []paste.Line
	if !strings.HasPrefix(strings.TrimSpace(lines[0].Text), `"`) {
		return lines
	}
	for _, l := range lines[:min(len(lines), mostQuoted)] {
		t := strings.TrimSpace(l.Text)
		if len(t) < 2 || t[0] != '"' || t[len(t)-1] != '"' || l.Command != "" {
			break
		}
		l.Text = strings.ReplaceAll(t[1:len(t)-1], `""`, `"`)
		out = append(out, l)
	}
	if out == nil {
		return lines
	}
	return out
}

// pgBare is a node of which the costs stand in the next line, where a page or a person put them.
var pgBare = pattern.New(`^\s*(?:->\s+)?[A-Z]\w+(?: \w+)* (?:on|using) [^()]*$|^\s*->\s+[A-Z][^()]*$|\(cost=[^()]*\)\s*$`)

// pgSplit reports whether a line is such a node.
func pgSplit(lines []paste.Line, at int) bool {
	if at+1 >= len(lines) || lines[at+1].Command != "" || !pgBare.MatchString(lines[at].Text) {
		return false
	}
	next := strings.TrimSpace(lines[at+1].Text)
	return strings.HasPrefix(next, "(actual time=") ||
		strings.HasPrefix(next, "(cost=") && !strings.Contains(lines[at].Text, "(cost=")
}

// unsplit is a plan with the costs of each node in its own line.
func unsplit(lines []paste.Line) []paste.Line {
	out := make([]paste.Line, 0, len(lines))
	for at := 0; at < len(lines); at++ {
		l := lines[at]
		for ; pgSplit(append([]paste.Line{l}, lines[at+1:min(len(lines), at+2)]...), 0); at++ {
			l.Text += "  " + strings.TrimSpace(lines[at+1].Text)
		}
		out = append(out, l)
	}
	return out
}

func claimPGPlan(lines []paste.Line) int {
	if !isPGNode(lines[0].Text) && !pgHead(lines[0].Text) && !pgSplit(lines, 0) {
		return 0
	}
	n, nodes, root := 0, 0, 0
	for i, l := range lines {
		switch {
		case i == 0 && pgSplit(lines, 0):
			root, n = planDepth(l.Text), 1
		case i > 0 && l.Command != "", nodes > 0 && pgHead(l.Text):
			return attach.ClaimIf(nodes > 0, n)
		case isPGNode(l.Text):
			deep := planDepth(l.Text)
			if nodes > 0 && deep <= root && !strings.Contains(l.Text, "->") {
				return n // a plan has one node without an arrow: this is the next plan's
			}
			if nodes == 0 {
				root = deep
			}
			nodes++
			n = i + 1
		case pgDetail.MatchString(strings.Trim(l.Text, `"`)), nodes > 0 &&
			pgOther.MatchString(l.Text), nodes > 0 && pgFlat.MatchString(l.Text),
			strings.HasPrefix(strings.TrimSpace(l.Text), "|"), nodes > 0 && strings.HasPrefix(l.Text, "    "):
			n = i + 1
			if pgRows.MatchString(strings.TrimSpace(l.Text)) && nodes > 0 {
				return n
			}
		default:
			return attach.ClaimIf(nodes > 0, n)
		}
	}
	return attach.ClaimIf(nodes > 0, n)
}

// node is a node of a plan; times in seconds, over all loops; -1: not run.
type node struct {
	name               string
	depth              int
	est, act           float64
	total, self, loops float64
	cut                bool     // what is below it was cut off: self has others' time
	idle               bool     // it was not run: never executed
	stopped            bool     // a limit above it ended it: it did not find all of its rows
	beside             bool     // no node: what the nodes do not have
	removed            float64  // rows that it read and threw away, over all loops
	spill              float64  // bytes that it wrote to disk since they were more than work_mem
	tempIO             float64  // seconds for that and for reading it, over those below as well
	batches            float64  // of a hash: more than one go through files
	hit, read          float64  // pages that it and those below it found in the cache, and read
	gives              []string // it is the top of this InitPlan: the names of what it gives
	cond               string   // its condition or its keys, the first that is said
	reads              []string // the names in its conditions of what InitPlans give
	cte                string   // it is the top of this CTE: its time is in the nodes that read it
}

func parsePGPlan(lines []paste.Line) (nodes []*node) {
	gather, workers := -1, 1.0
	var label []int // where the label of the next node stands: a CTE, an InitPlan or a SubPlan
	cte, gives := "", []string(nil)
	for _, l := range lines {
		if !pgIsNode.MatchString(l.Text) {
			if m := pgLabel.FindStringSubmatchIndex(l.Text); m != nil {
				label, cte, gives = m[2:4], "", nil
				if m[4] >= 0 {
					cte = l.Text[m[4]:m[5]]
				}
				if strings.Contains(l.Text, "InitPlan") {
					gives = pgParam.FindAllString(l.Text, -1)
				}
			} else if len(nodes) > 0 {
				n := nodes[len(nodes)-1]
				n.reads = append(n.reads, pgParam.FindAllString(l.Text, -1)...)
				n.detail(l.Text)
			}
			if m := pgWorkers.FindStringSubmatch(l.Text); m != nil && len(nodes) > 0 {
				v, _ := number(m[1])
				gather, workers = nodes[len(nodes)-1].depth, v+1
			}
			continue
		}
		text, provider := withoutProvider(l.Text)
		m := pgNode.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		n := &node{name: strings.TrimSpace(m[1] + provider), depth: planDepth(l.Text), est: -1, act: -1, total: -1}
		if label != nil { // its label stands where its siblings do
			n.depth, n.cte, n.gives = min(n.depth, label[0]), cte, gives
			label, cte, gives = nil, "", nil
		}
		n.idle = strings.Contains(l.Text, "(never executed)")
		if m[4] != "" {
			n.est, _ = number(m[4])
		}
		if m[6] != "" || m[7] != "" {
			if n.act = -1; m[7] != "" {
				n.act, _ = number(m[7])
			}
			if n.loops = 1; m[8] != "" {
				n.loops, _ = number(m[8])
			}
			if v, ok := number(m[6]); ok && m[6] != "" {
				n.total = v / 1e3 * max(1, n.loops)
				if gather >= 0 && n.depth > gather {
					n.total /= min(workers, max(1, n.loops)) // workers run their loops at the same time
				}
			}
		}
		nodes = append(nodes, n)
	}
	selfTimes(nodes)
	return nodes
}

// pgCustom is a node of an extension, which names its provider in parentheses.
var pgCustom = pattern.New(`\bCustom Scan( \([^()]+\))`)

// withoutProvider is a node's line without what would be taken for its costs.
func withoutProvider(text string) (string, string) {
	m := pgCustom.FindStringSubmatchIndex(text)
	if m == nil {
		return text, ""
	}
	return text[:m[2]] + text[m[3]:], text[m[2]:m[3]]
}

var (
	pgSpill   = pattern.New(`(?:Sort Method: external \w+ +Disk|Disk Usage): (\d+)kB`)
	pgTempIO  = pattern.New(`I/O Timings: .*\btemp(?: read=([\d.]+))?(?: write=([\d.]+))?`)
	pgBatches = pattern.New(`^\s*Buckets: .*\bBatches: (\d+)`)
	pgRemoved = pattern.New(`Rows Removed by (?:Join )?Filter: (\d+)`)
	pgCond    = pattern.New(`^\W*((?:(?:Hash|Merge|Index) Cond|Join Filter|Sort Key|Group Key): \S.*)$`)
	pgPages   = pattern.New(`^\W*Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?`)
)

// detail reads a line below a node. Rows removed are the mean of its loops.
func (n *node) detail(text string) {
	if m := pgCond.FindStringSubmatch(text); m != nil && n.cond == "" {
		n.cond = strings.TrimRight(m[1], ` |"+`)
	}
	if m := pgRemoved.FindStringSubmatch(text); m != nil {
		v, _ := number(m[1])
		n.removed = v * max(1, n.loops)
	}
	if m := pgSpill.FindStringSubmatch(text); m != nil {
		v, _ := number(m[1])
		n.spill = max(n.spill, v*1024)
	}
	if m := pgTempIO.FindStringSubmatch(text); m != nil {
		a, _ := number(m[1])
		b, _ := number(m[2])
		n.tempIO = max(n.tempIO, (a+b)/1e3)
	}
	if m := pgBatches.FindStringSubmatch(text); m != nil {
		v, _ := number(m[1])
		n.batches = max(n.batches, v)
	}
	if m := pgPages.FindStringSubmatch(text); m != nil && n.hit+n.read == 0 {
		n.hit, _ = number(m[1])
		n.read, _ = number(m[2])
	}
}

// selfTimes takes the times of the nodes right below a node off its own. A node below without a
// time was cut off: what is above it then has more than its own.
func selfTimes(nodes []*node) {
	for i, n := range nodes {
		n.self = n.total
		children := 0
		for _, c := range nodes[i+1:] {
			if c.depth <= n.depth {
				break
			}
			if c.depth != nodes[i+1].depth {
				continue
			}
			children++
			n.cut = n.cut || c.total < 0 && c.act < 0 && !c.idle
			if c.total > 0 && c.cte == "" {
				n.self -= c.total
			}
		}
		n.cut = n.cut || lacks(n.name, children)
		n.self = max(0, n.self)
	}
	cteTimes(nodes)
}

// cteTimes takes the time of a CTE or an InitPlan off the nodes that read it. Which of several
// waited for it a plan does not say: it is taken off each of them.
func cteTimes(nodes []*node) {
	took := map[string]float64{}
	for _, n := range nodes {
		if n.cte != "" {
			took[n.cte] = max(took[n.cte], n.total)
		}
		for _, name := range n.gives {
			took[name] = max(took[name], n.total)
		}
	}
	for _, n := range nodes {
		if m := cteScan.FindStringSubmatch(n.name); m != nil {
			n.self = max(0, n.self-took[m[1]])
		}
		slices.Sort(n.reads)
		for _, name := range slices.Compact(n.reads) {
			n.self = max(0, n.self-took[name])
		}
	}
}

var (
	cteScan  = pattern.New(`^(?:Parallel )?CTE Scan on "?([^\s"]+)`)
	pgLabel  = pattern.New(`^\s+(?:\|\s*)?()(?:CTE (\S+)|(?:InitPlan|SubPlan)(?: \S.*)?)$`)
	pgParam  = pattern.New(`\$\d+|InitPlan \d+`)
	planJoin = pattern.New(`^Nested |\b(?:Hash|Merge) (?:\w+ )*Join\b| hash join`)
	// planOver are nodes that only work on the rows of nodes below them.
	planOver = pattern.New(`^(?:Parallel |Partial |Finalize |Incremental )*(?:Sort|Hash|Aggregate|HashAggregate|GroupAggregate|MixedAggregate|Group|Materialize|Memoize|Limit|Unique|WindowAgg|Gather|Gather Merge|Merge Append|LockRows|SetOp|Recursive Union|Subquery Scan|Bitmap Heap Scan|BitmapAnd|BitmapOr)(?:$| on )|^(?:Filter|Limit|Sort|Aggregate|Group aggregate): `)
)

// lacks reports whether a node has more nodes below it in a whole plan.
func lacks(name string, children int) bool {
	return children < 2 && planJoin.MatchString(name) || children == 0 && planOver.MatchString(name)
}
