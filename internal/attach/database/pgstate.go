package database

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// pgActivity reads pg_stat_activity with its wait events: one glance.
var pgActivity = &attach.Kind{
	Name:  "pg_stat_activity",
	Hints: []string{"wait_event", "-[ RECORD"},
	Claim: claimActivity,
	Read:  readActivity,
}

// pgPlan reads EXPLAIN of PostgreSQL, with or without ANALYZE, by itself or from auto_explain.
var pgPlan = &attach.Kind{
	Name:   "PostgreSQL plan",
	Hints:  []string{"QUERY PLAN", "(cost=", "(actual"},
	Yields: []string{"PostgreSQL log"},
	Claim: func(lines []paste.Line) int {
		if mysqlTree(lines) {
			return 0
		}
		return claimPGPlan(lines)
	},
	Read: readPGPlan,
}

var (
	pgNode    = regexp.MustCompile(`^\s*(?:\|\s*)?(?:->\s+)?([A-Z][\w ,."()*-]*?)\s+\((?:cost=([\d.]+)\.\.([\d.]+) rows=(\d+) width=\d+\))?\s*\(?(?:actual(?: time=([\d.]+)\.\.([\d.]+))? rows=([\d.]+) loops=(\d+)|never executed)?\)?`)
	pgIsNode  = regexp.MustCompile(`\(cost=[\d.]+\.\.[\d.]+ rows=\d+ width=\d+\)|\(actual time=`)
	pgDetail  = regexp.MustCompile(`^\s+(Buffers|Sort Key|Sort Method|Filter|Rows Removed|Hash Cond|Index Cond|Join Filter|Merge Cond|Recheck Cond|Heap|Workers|Worker|Buckets|I/O Timings|Group Key|Planning|Execution|Output|SubPlan|InitPlan|CTE|Settings|JIT|Functions|Options|Timing|Query Identifier|Batches|Cache|Hits|WAL|Subplans|One-Time|TID|Order By|Presorted|Full-sort|Pre-sorted|Index Searches|Exact|Storage|Trigger|Conflict|Tuples|Params|Relations|Inner Unique|Single Copy|Sampling|Function Call|Partial)\b|^\s*(Planning Time|Execution Time|Planning time|Execution time|Total runtime|Time|JIT|Planning|Settings|Triggers?\b.*): ?|^\s*(JIT|Planning):$|^\(\d+ rows?\)$|^-{10,}$|^\s*QUERY PLAN\s*$`)
	pgTime    = regexp.MustCompile(`(?:Execution [Tt]ime|Total runtime): ([\d.]+) ms`)
	pgWorkers = regexp.MustCompile(`^\s*Workers Launched: (\d+)`)
	pgPlanned = regexp.MustCompile(`Planning [Tt]ime: ([\d.]+) ms`)
	pgIO      = regexp.MustCompile(`I/O Timings:(?: shared(?:/local)?)? read=([\d.]+)`)
	pgRows    = regexp.MustCompile(`^\(\d+ rows?\)$`)
)

func claimActivity(lines []paste.Line) int {
	if !strings.Contains(lines[0].Text, "wait_event") && !strings.HasPrefix(lines[0].Text, "-[ RECORD") {
		return 0
	}
	if strings.HasPrefix(lines[0].Text, "-[ RECORD") {
		n, own := 0, 0
		for n < len(lines) && (strings.HasPrefix(lines[n].Text, "-[ RECORD") || strings.Contains(lines[n].Text, "|") && lines[n].Command == "") {
			if strings.HasPrefix(lines[n].Text, "wait_event") {
				own++
			}
			n++
		}
		return attach.ClaimIf(own > 0, n)
	}
	if !slices.ContainsFunc(strings.Split(lines[0].Text, "|"), func(c string) bool { return strings.HasPrefix(strings.TrimSpace(c), "wait_event") }) || !strings.Contains(lines[0].Text, "|") {
		return 0
	}
	n := 1
	for n < len(lines) && lines[n].Command == "" && (strings.Contains(lines[n].Text, "|") || strings.HasPrefix(lines[n].Text, "---") || pgRows.MatchString(strings.TrimSpace(lines[n].Text))) {
		n++
		if pgRows.MatchString(strings.TrimSpace(lines[n-1].Text)) {
			break
		}
	}
	if n < 3 {
		return 0
	}
	return n
}

// backend is a row of pg_stat_activity. by is who blocks it, where a query adds pg_blocking_pids.
type backend struct {
	kind, event, state, pid, by string
	holder                      string // what the row says of the state of whom it waits for
}

func parseActivity(lines []paste.Line) (list []backend) {
	if strings.HasPrefix(lines[0].Text, "-[ RECORD") {
		for _, l := range lines {
			if strings.HasPrefix(l.Text, "-[ RECORD") {
				list = append(list, backend{})
				continue
			}
			name, value, _ := strings.Cut(l.Text, "|")
			at := &list[max(0, len(list)-1)]
			switch strings.TrimSpace(name) {
			case "wait_event_type":
				at.kind = strings.TrimSpace(value)
			case "wait_event":
				at.event = strings.TrimSpace(value)
			case "state":
				at.state = strings.TrimSpace(value)
			}
		}
		return list
	}
	var head []string
	for _, l := range lines {
		cells := strings.Split(strings.Trim(strings.TrimSpace(l.Text), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if slices.Contains(cells, "wait_event") || slices.Contains(cells, "wait_event_type") {
			head = cells
			continue
		}
		if len(cells) < 2 || strings.HasPrefix(l.Text, "---") || head == nil {
			continue
		}
		cell := func(name string) string {
			if i := slices.Index(head, name); i >= 0 && i < len(cells) {
				return cells[i]
			}
			return ""
		}
		by := strings.Trim(cmp.Or(cell("blocked_by_pids"), cell("pg_blocking_pids"), cell("blocked_by"), cell("blocking_pids")), "{} ")
		list = append(list, backend{cell("wait_event_type"), cell("wait_event"), cell("state"), cmp.Or(cell("pid"), cell("waiting_pid"), cell("blocked_pid")), by, cmp.Or(cell("holder_state"), cell("blocker_state"), cell("blocking_state"))})
	}
	return list
}

func readActivity(p *attach.Part) attach.Reading {
	r := &result{}
	r.Glance = true
	list := parseActivity(p.Lines)
	n := map[string]int{}
	events := map[string]map[string]int{}
	active := 0
	for _, b := range list {
		if b.state != "active" && b.state != "" || b.kind == "Activity" || b.kind == "Client" {
			continue
		}
		active++
		n[b.kind]++
		if events[b.kind] == nil {
			events[b.kind] = map[string]int{}
		}
		events[b.kind][b.event]++
	}
	r.Title = fmt.Sprintf("pg_stat_activity, %s, %d active", attach.Plural(len(list), "backend"), active)
	line := func(kind string) string {
		return fmt.Sprintf("%d of %d active backends wait for %s: %s", n[kind], active, kind, commonest(events[kind]))
	}
	if n["Lock"] > 0 {
		r.figure(line("Lock"))
		r.outside("a lock in the database's own tables, which another transaction holds", line("Lock"), ratio(float64(n["Lock"]), float64(active)))
		if !blockers(r, list) {
			r.next("psql -c 'SELECT pid, pg_blocking_pids(pid), query FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0'", "names who blocks whom")
		}
	}
	if n["LWLock"] > 1 {
		r.figure(line("LWLock"))
		r.candidate("lock-contention", line("LWLock"))
	}
	if n["IO"] > 1 && 2*n["IO"] >= active {
		r.figure(line("IO"))
		r.candidate("disk-wait", line("IO"))
	}
	r.Not = "One glance: how long they wait, it does not say."
	if len(r.Signs) == 0 {
		r.figure(fmt.Sprintf("%d active backends, none waits for a lock", active))
		r.Means = "No backend waits for a lock at this instant."
		return r.done(attach.Healthy)
	}
	r.Means = cmp.Or(r.Means, "Several backends wait for the same sort of thing at this instant.")
	return r.done(attach.CannotTell)
}

// blockers names the backends that others wait for and that wait for none themselves.
func blockers(r *result, list []backend) bool {
	waits, state := map[string]bool{}, map[string]string{}
	for _, b := range list {
		waits[b.pid] = b.by != ""
		state[b.pid] = b.state
	}
	n := map[string]int{}
	for _, b := range list {
		if b.holder != "" && !strings.Contains(b.by, ",") {
			state[b.by] = cmp.Or(state[b.by], b.holder)
		}
		for _, pid := range strings.FieldsFunc(b.by, func(c rune) bool { return c == ',' || c == ' ' }) {
			if !waits[pid] {
				n[pid]++
			}
		}
	}
	if len(n) == 0 {
		return false
	}
	holder, _, _ := strings.Cut(commonest(n), " (")
	line := fmt.Sprintf("backend %s blocks %d of them", holder, n[holder])
	if s := state[holder]; strings.HasPrefix(s, "idle") {
		line += "; it is " + strings.Replace(s, "idletx", "idle in transaction", 1) + ", so its program holds the transaction open"
	} else if s != "" {
		line += "; it is " + s
	}
	r.figure(line)
	r.next("psql -c \"SELECT pid, state, xact_start, query FROM pg_stat_activity WHERE pid = "+holder+"\"", "says what it did last, and since when its transaction is open")
	return true
}

func commonest(n map[string]int) string {
	best, most := "", 0
	for k, v := range n {
		if v > most || v == most && k < best {
			best, most = k, v
		}
	}
	return fmt.Sprintf("%s (%d)", best, most)
}

// pgFlat is a detail of a node of which the indentation was lost.
var pgFlat = regexp.MustCompile(`^(?:Buffers|Sort Key|Sort Method|Filter|Rows Removed by \w+(?: \w+)*|Hash Cond|Index Cond|Join Filter|Merge Cond|Recheck Cond|Heap (?:Blocks|Fetches)|Workers (?:Planned|Launched)|Buckets|I/O Timings|Group Key|Output): `)

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

func claimPGPlan(lines []paste.Line) int {
	if !isPGNode(lines[0].Text) && strings.TrimSpace(lines[0].Text) != "QUERY PLAN" {
		return 0
	}
	n, nodes := 0, 0
	for i, l := range lines {
		switch {
		case i > 0 && l.Command != "":
			return attach.ClaimIf(nodes > 0, n)
		case isPGNode(l.Text):
			nodes++
			n = i + 1
		case pgDetail.MatchString(l.Text), nodes > 0 && pgFlat.MatchString(l.Text), strings.HasPrefix(strings.TrimSpace(l.Text), "|"), nodes > 0 && strings.HasPrefix(l.Text, "    "):
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
	beside             bool     // no node: what the nodes do not have
	gives              []string // it is the top of this InitPlan: the names of what it gives
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
			}
			if m := pgWorkers.FindStringSubmatch(l.Text); m != nil && len(nodes) > 0 {
				v, _ := number(m[1])
				gather, workers = nodes[len(nodes)-1].depth, v+1
			}
			continue
		}
		m := pgNode.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		n := &node{name: strings.TrimSpace(m[1]), depth: len(l.Text) - len(strings.TrimLeft(l.Text, " \t|")), est: -1, act: -1, total: -1}
		if label != nil { // its label stands where its siblings do
			n.depth, n.cte, n.gives = min(n.depth, label[0]), cte, gives
			label, cte, gives = nil, "", nil
		}
		n.idle = strings.Contains(l.Text, "(never executed)")
		n.est, _ = number(m[4])
		if m[7] != "" {
			n.act, _ = number(m[7])
			n.loops, _ = number(m[8])
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
	cteScan  = regexp.MustCompile(`^(?:Parallel )?CTE Scan on "?([^\s"]+)`)
	pgLabel  = regexp.MustCompile(`^\s+(?:\|\s*)?()(?:CTE (\S+)|(?:InitPlan|SubPlan) \d.*)$`)
	pgParam  = regexp.MustCompile(`\$\d+|InitPlan \d+`)
	planJoin = regexp.MustCompile(`^Nested |\b(?:Hash|Merge) (?:\w+ )*Join\b| hash join`)
	// planOver are nodes that only work on the rows of nodes below them.
	planOver = regexp.MustCompile(`^(?:Parallel |Partial |Finalize |Incremental )*(?:Sort|Hash|Aggregate|HashAggregate|GroupAggregate|MixedAggregate|Group|Materialize|Memoize|Limit|Unique|WindowAgg|Gather|Gather Merge|Merge Append|LockRows|SetOp|Recursive Union|Subquery Scan|Bitmap Heap Scan|BitmapAnd|BitmapOr)(?:$| on )|^(?:Filter|Limit|Sort|Aggregate|Group aggregate): `)
)

// lacks reports whether a node has more nodes below it in a whole plan.
func lacks(name string, children int) bool {
	return children < 2 && planJoin.MatchString(name) || children == 0 && planOver.MatchString(name)
}

func readPGPlan(p *attach.Part) attach.Reading {
	nodes := parsePGPlan(p.Lines)
	lost := planFlat(p.Lines) && deepen(nodes)
	r := readPlanOf("PostgreSQL", nodes, p)
	if lost {
		r.Not = lostIndentation
	}
	return r
}

// readPlanOf says where a plan's time is, of PostgreSQL and of MySQL alike.
func readPlanOf(server string, nodes []*node, p *attach.Part) attach.Reading {
	r := &result{}
	if len(nodes) == 0 {
		r.Title = server + " plan, cut off"
		return r.done(attach.CannotTell)
	}
	total, plan, io := nodes[0].total, 0.0, 0.0
	if server == "MySQL" { // a scan of a temporary table has no time of what filled it, which stands below
		for _, n := range nodes {
			total = max(total, n.total)
		}
	}
	for _, l := range p.Lines {
		if m := pgTime.FindStringSubmatch(l.Text); m != nil {
			v, _ := number(m[1])
			total = v / 1e3
		}
		if m := pgPlanned.FindStringSubmatch(l.Text); m != nil {
			v, _ := number(m[1])
			plan = v / 1e3
		}
		if m := pgIO.FindStringSubmatch(l.Text); m != nil {
			v, _ := number(m[1])
			io = max(io, v/1e3)
		}
	}
	if total < 0 {
		unrun(r, server, nodes)
		return r.done(attach.CannotTell)
	}
	r.Title = fmt.Sprintf("%s EXPLAIN ANALYZE, %s, %s", server, attach.Plural(len(nodes), "node"), dur(total))
	got := planTimes{total, plan, io}.run(r, nodes)
	if server == "MySQL" && got.State != attach.Healthy {
		got.Next = []attach.Next{{Command: "ANALYZE TABLE of the tables named, then EXPLAIN ANALYZE again", Why: "says whether the estimates, and with them the plan, change"}}
	}
	return got
}

// unrun says what a plan without times says.
func unrun(r *result, name string, nodes []*node) {
	most := slices.MaxFunc(nodes, func(a, b *node) int { return cmp.Compare(a.est, b.est) })
	r.Title = name + " EXPLAIN, " + attach.Plural(len(nodes), "node") + ", not run: no times in it"
	r.figure(fmt.Sprintf("%s rows estimated in %s", count(most.est), most.name))
	r.Means = "Estimates only: whether the statement is slow it does not say."
	r.Not = "The cost is a number without a unit, and no time."
	r.next("EXPLAIN (ANALYZE, BUFFERS) the statement", "runs it and has the times")
}

// run says what a plan with times says.
func (t planTimes) run(r *result, nodes []*node) attach.Reading {
	r.fact(FactStatement, t.total*1e3, "")
	worst := slices.MaxFunc(nodes, func(a, b *node) int { return cmp.Compare(a.self, b.self) })
	own, in := ": "+dur(worst.self)+" by itself", worst.name
	if worst.cut {
		own, in = ": "+dur(worst.self), worst.name+" and what was cut off below it"
	}
	rest := t.beside(nodes)
	if 2*rest >= t.total {
		worst = &node{name: "no node that is shown", self: rest, beside: true}
		own, in = ": "+dur(rest), worst.name
	}
	line := "execution " + dur(t.total) + ", most of it in " + in + own
	if !t.most(worst) {
		line = "execution " + dur(t.total) + ", the largest of its nodes is " + in + own + " (" + percent(worst.self, t.total) + ")"
	}
	r.figure(line)
	if rest > worst.self {
		r.figure(fmt.Sprintf("in no node that is shown: %s (%s)", dur(rest), percent(rest, t.total)))
	}
	if t.plan > 0 {
		r.figure("planning " + dur(t.plan))
	}
	r.Not = "The times of one run, and with the cost of measuring; time before and after it is not in it."
	if t.total+t.plan < 0.1 {
		r.Means = "It was fast when it was explained."
		return r.done(attach.Healthy)
	}
	t.where(r, nodes, worst, line)
	return r.done(attach.CannotTell)
}

// most reports whether a node has at least half of the time.
func (t planTimes) most(n *node) bool { return 2*n.self >= t.total }

// beside is the time of the execution that no node has: triggers, compiling, start and end.
func (t planTimes) beside(nodes []*node) float64 {
	longest := 0.0
	for _, n := range nodes {
		longest = max(longest, n.total)
	}
	return t.total - longest
}

func (t planTimes) where(r *result, nodes []*node, worst *node, line string) {
	total, plan, io := t.total, t.plan, t.io
	for _, n := range nodes {
		if n.act >= 0 && max(n.act, n.est) > 1e4 && max(n.act, n.est) > 100*max(1, min(n.act, n.est)) {
			r.figure(fmt.Sprintf("%s: estimated %s rows, found %s", n.name, count(n.est), count(n.act)))
			break
		}
	}
	if io > 0.5*total {
		proof := fmt.Sprintf("I/O Timings read %s of %s", dur(io), dur(total))
		r.figure(proof)
		r.candidate("disk-wait", proof)
	}
	if plan > total {
		r.outside("planning the statement", fmt.Sprintf("planning %s, execution %s", dur(plan), dur(total)), ratio(plan, plan+total))
		return
	}
	again := "EXPLAIN (ANALYZE, BUFFERS) again"
	switch {
	case strings.HasPrefix(worst.name, "LockRows") && t.most(worst) && !worst.cut:
		r.outside("a lock in the database's own tables", line, ratio(worst.self, total))
		return
	case worst.cut:
		r.outside("the plan: "+worst.name+" and what was cut off below it", line, ratio(worst.self, total))
		r.next(again+", the whole of it", "names the node that has the time")
		return
	case worst.beside:
		r.outside("the statement, most of it in no node of the plan that is shown", line, ratio(worst.self, total))
		r.next(again+", the whole of it", "lists triggers and compiling below the nodes")
		return
	case !t.most(worst):
		r.outside("the plan, "+percent(worst.self, total)+" of it in "+worst.name, line, ratio(worst.self, total))
	default:
		r.outside("the plan: "+worst.name, line, ratio(worst.self, total))
	}
	r.next("ANALYZE of the tables named, then "+again, "says whether the estimates, and with them the plan, change")
}
