package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

func readPGPlan(p *attach.Part) attach.Reading {
	if bare := inQuotes(p.Lines); len(bare) == len(p.Lines) {
		part := *p
		part.Lines, p = bare, &part
	}
	nodes := parsePGPlan(unsplit(p.Lines))
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
		r.Means = "No node of the plan is in it."
		return r.done(attach.CannotTell)
	}
	stopAtLimits(nodes)
	total, plan, io := nodes[0].total, 0.0, 0.0
	if server == "MySQL" { // a scan of a temporary table has no time of what filled it, which stands below
		for _, n := range nodes {
			total = max(total, n.total)
		}
	}
	timed, workers := false, 0.0
	for _, l := range p.Lines {
		if m := pgWorkers.FindStringSubmatch(l.Text); m != nil {
			v, _ := number(m[1])
			workers = max(workers, v)
		}
		if m := pgTime.FindStringSubmatch(l.Text); m != nil {
			v, _ := number(m[1])
			total, timed = v/1e3, true
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
	io /= workers + 1 // it is added up over those that read at the same time
	if !slices.ContainsFunc(nodes, func(n *node) bool { return n.total >= 0 }) {
		untimed(r, server, nodes, total, timed)
		return r.done(attach.CannotTell)
	}
	r.Title = fmt.Sprintf("%s EXPLAIN ANALYZE, %s, %s", server, attach.Plural(len(nodes), "node"), dur(total))
	return planTimes{total: total, plan: plan, io: io, more: pgBesides(p.Lines), mysql: server == "MySQL", topless: !timed &&
		(nodes[0].loops > 1 || server != "MySQL" && startsBelow(p.Lines))}.run(r, nodes)
}

// startsBelow reports whether the first node is drawn below another one, which is not in the text.
func startsBelow(lines []paste.Line) bool {
	for _, l := range lines {
		if pgIsNode.MatchString(l.Text) {
			return strings.HasPrefix(strings.TrimLeft(l.Text, " \t|\""), "->")
		}
	}
	return false
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

// untimed says what a plan says of which no node has a time: it was not run, or without TIMING.
func untimed(r *result, server string, nodes []*node, total float64, timed bool) {
	ran := slices.ContainsFunc(nodes, func(n *node) bool { return n.act >= 0 })
	if !ran {
		unrun(r, server, nodes)
		return
	}
	r.Title = fmt.Sprintf("%s EXPLAIN ANALYZE, %s, without times of its nodes", server, attach.Plural(len(nodes), "node"))
	if timed {
		r.figure("execution " + dur(total))
		r.fact(FactStatement, total*1e3, "")
	}
	if text := readMost(nodes, false); text != "" {
		r.figure(text)
	}
	if n := worstGuess(nodes); n != nil {
		r.figure(fmt.Sprintf("%s: estimated %s rows, found %s", n.name, count(n.est), count(n.act)))
	}
	if len(r.Figures) == 0 {
		r.figure(fmt.Sprintf("%s gave %s rows", nodes[0].name, count(max(0, nodes[0].act))))
	}
	r.Means = "It was run, and its nodes have rows and no times: which of them took the time it does not say."
	r.Not = "That a node with many rows is the slow one."
	r.next("EXPLAIN (ANALYZE, BUFFERS, TIMING) the statement", "has the time of each node")
}

// run says what a plan with times says.
func (t planTimes) run(r *result, nodes []*node) attach.Reading {
	r.fact(FactStatement, t.total*1e3, "")
	worst := slices.MaxFunc(nodes, func(a, b *node) int { return cmp.Compare(a.self, b.self) })
	own, in := ": "+dur(worst.self)+" by itself", worst.name+amongAlike(nodes, worst)
	if worst.cut {
		own, in = ": "+dur(worst.self), worst.name+" and what was cut off below it"
	}
	rest := t.beside(nodes)
	if 2*rest >= t.total {
		worst = &node{name: "no node that is shown", self: rest, beside: true}
		own, in = ": "+dur(rest), worst.name
	}
	all := "execution " + dur(t.total)
	if t.topless {
		all = "the part that is shown takes " + dur(t.total)
	}
	line := all + ", most of it in " + in + own
	if !t.most(worst) {
		line = all + ", the largest of its nodes is " + in + own + " (" + percent(worst.self, t.total) + ")"
	}
	r.figure(line)
	if t.total+t.plan >= 0.1 {
		t.more.say(r, t.total)
	}
	if n := worstGuess(nodes); n != nil && t.total+t.plan >= 0.1 {
		r.figure(fmt.Sprintf("%s: estimated %s rows, found %s", n.name, count(n.est), count(n.act)))
	}
	vain := worst.act >= 0 && worst.removed >= manyRemoved && worst.removed >= 3*worst.act*max(1, worst.loops)
	if text := readMost(nodes, t.topless); text != "" && !vain {
		r.figure(text)
	}
	if vain {
		gave := "for about " + count(worst.act*max(1, worst.loops)) + " that it gave"
		switch { // rows are the mean of its runs, and rounded
		case worst.loops <= 1:
			gave = "for " + count(worst.act) + " that it gave"
		case worst.act == 0:
			gave = "and gave on average less than one a run"
		}
		r.figure(fmt.Sprintf("it threw away about %s rows (Rows Removed by Filter), %s", count(worst.removed), gave))
	}
	if text := t.repeated(nodes, worst); text != "" {
		r.figure(text)
	}
	if worst.spill > 0 {
		line := "it had more than fits in work_mem: " + bytesText(worst.spill) + " went to files on disk and back"
		if worst.tempIO > 0 {
			line += ", which took " + dur(worst.tempIO)
		}
		r.figure(line)
	}
	mostOf(r, nodes, worst)
	top := slices.MaxFunc(nodes, func(a, b *node) int { return cmp.Compare(a.hit+a.read, b.hit+b.read) })
	if top.hit+top.read > 0 && t.total >= 0.1 {
		r.figure(fmt.Sprintf("pages: %s found in shared_buffers, %s read from outside of it",
			count(top.hit), count(top.read)))
	}
	if rest > worst.self {
		r.figure(fmt.Sprintf("in no node that is shown: %s (%s)", dur(rest), percent(rest, t.total)))
	}
	switch {
	case t.plan >= 0.25*t.total && t.plan > 0:
		r.second("planning " + dur(t.plan) + " before that")
	case t.plan > 0:
		r.figure("planning " + dur(t.plan))
	}
	r.Not = "The times of one run, and with the cost of measuring; time before and after it is not in it."
	if t.total+t.plan < 0.1 {
		r.Means = "It was fast when it was explained."
		if t.topless {
			r.Means = "What is shown was fast; what the whole statement took is not in it."
			return r.done(attach.CannotTell)
		}
		return r.done(attach.Healthy)
	}
	t.where(r, nodes, worst, line)
	return r.done(attach.CannotTell)
}

// mostOf names the node that gave most rows, where that is another one than has the time, and a
// hash that did not fit in memory.
func mostOf(r *result, nodes []*node, worst *node) {
	rows := func(n *node) float64 { return n.act * max(1, n.loops) }
	hash := slices.MaxFunc(nodes, func(a, b *node) int { return cmp.Compare(a.batches, b.batches) })
	if hash.batches > 1 {
		r.figure(fmt.Sprintf("%s did not fit in memory: it went through files in %s batches", hash.name, count(hash.batches)))
	}
	big := slices.MaxFunc(nodes, func(a, b *node) int { return cmp.Compare(rows(a), rows(b)) })
	if big == worst && rows(big) >= 1e5 && big.est < 0 {
		r.figure("it gave " + count(rows(big)) + " rows")
	}
	if big != worst && rows(big) >= 1e5 && rows(big) > 2*rows(worst) && big != worstGuess(nodes) {
		r.figure(fmt.Sprintf("most rows: %s gave %s", big.name, count(rows(big))))
	}
}

// manyRemoved is a number of rows whose reading takes time.
const manyRemoved = 1e4

// manyLoops is how often a node runs that is better not run for each row.
const manyLoops = 100

// repeated names the outermost node that runs again and again and has the node with most time in
// it; "": none does, or it is a small part.
func (t planTimes) repeated(nodes []*node, worst *node) string {
	end := slices.Index(nodes, worst)
	if end < 0 {
		return ""
	}
	depth, top := worst.depth, (*node)(nil)
	for i := end; i >= 0; i-- {
		n := nodes[i]
		if i < end && n.depth >= depth {
			continue
		}
		if depth = n.depth; n.loops < manyLoops {
			break
		}
		top = n
	}
	if top == nil || top.total < 0.25*t.total {
		return ""
	}
	return fmt.Sprintf("%s runs %s times, %s each with what is below it: %s (%s)", top.name,
		count(top.loops), dur(top.total/top.loops), dur(top.total), percent(top.total, t.total))
}

// guessedFar reports whether a node has far more rows or far fewer than was estimated.
func guessedFar(nodes []*node) bool {
	return slices.ContainsFunc(nodes, func(n *node) bool {
		return max(n.act, n.est) >= 20 && n.misses(10)
	})
}

// goodGuesses says of estimates that are not known to be far off whether new statistics would help.
func goodGuesses(nodes []*node) string {
	known, ended, sorted, few := false, false, false, false
	for _, n := range nodes {
		if n.est < 0 || n.act < 0 {
			continue
		}
		known = true
		if max(n.act, n.est) > 10*max(1, min(n.act, n.est)) {
			sort := n.stopped && strings.HasPrefix(n.name, "Sort") // the rows below it tell
			ended, sorted, few = ended || n.stopped && !sort, sorted || sort, few || !n.stopped
		}
	}
	switch {
	case !known:
		return "EXPLAIN with COSTS on has the estimates too: whether new statistics would help"
	case ended:
		return "a limit ended nodes before they gave all of their rows, so whether their estimates are right the plan does not say"
	case few && !sorted:
		return "only estimates of few rows are more than ten times off, so new statistics are not the first thing to try"
	}
	if sorted && !few {
		return "of nodes that gave all of their rows, no estimate is more than ten times off, so new statistics are not the first thing to try"
	} else if sorted {
		return "of nodes that gave all of their rows, only estimates of few are more than ten times off"
	}
	return "no estimate is more than ten times off, so new statistics are not the first thing to try"
}

// worstGuess is the outermost node of ten thousand rows or more whose estimate is a hundred times
// off, or else of a thousand rows and ten times. Nodes below it have a part in its estimate.
func worstGuess(nodes []*node) *node {
	for _, least := range []struct{ rows, times float64 }{{1e4, 100}, {1e3, 10}} {
		for _, n := range nodes {
			if max(n.act, n.est) > least.rows && n.misses(least.times) {
				return n
			}
		}
	}
	return nil
}

// misses reports whether a node found so many times the rows that were estimated, or as many times
// fewer. Fewer say nothing where a limit ended it.
func (n *node) misses(times float64) bool {
	if n.act < 0 || n.est < 0 || n.stopped && n.act < n.est {
		return false
	}
	return max(n.act, n.est) > times*max(1, min(n.act, n.est))
}

// stopAtLimits marks the nodes that a limit above them ends before they gave all of their rows. A
// node that needs all rows before it gives its first one lets no limit through.
func stopAtLimits(nodes []*node) {
	var above []*node // the nodes around the present one
	for _, n := range nodes {
		for len(above) > 0 && above[len(above)-1].depth >= n.depth {
			above = above[:len(above)-1]
		}
		if len(above) > 0 {
			up := above[len(above)-1]
			n.stopped = planLimit.MatchString(up.name) || up.stopped &&
				!(planGathers.MatchString(up.name) && !planJoin.MatchString(up.name))
		}
		above = append(above, n)
	}
}

var (
	planLimit   = pattern.New(`^Limit(?:$|: )`)
	planGathers = pattern.New(`^(?:Parallel |Partial |Finalize )*(?:Sort|Hash|Aggregate|HashAggregate|MixedAggregate|Materialize|SetOp)(?:$|: | )|^(?:Temporary table|Table scan on <temporary>|Aggregate using temporary)`)
)

// elsewhere are nodes whose rows come from another server or an extension.
var elsewhere = pattern.New(`^(?:Async )?(?:Foreign|Custom) Scan\b`)

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
	if io > 0.5*total {
		proof := fmt.Sprintf("I/O Timings read %s of %s", dur(io), dur(total))
		r.figure(proof)
		r.candidate("disk-wait", proof)
	}
	if plan > total {
		r.outside("planning the statement", fmt.Sprintf("planning %s, execution %s", dur(plan),
			dur(total)), ratio(plan, plan+total))
		return
	}
	again, analyze := t.again()
	if t.more.where(r, total, again) {
		return
	}
	switch {
	case t.most(worst) && waitsToChange(nodes, worst):
		r.outside("the plan: "+worst.name+", which changes few rows: a lock of another transaction, a trigger, or the disk", line, ratio(worst.self, total))
		r.next("psql -c 'SELECT pid, wait_event_type, wait_event, query FROM pg_stat_activity'", "while it runs: what it waits for")
		return
	case strings.HasPrefix(worst.name, "LockRows") && t.most(worst) && !worst.cut:
		r.outside("a lock in the database's own tables", line, ratio(worst.self, total))
		return
	case worst.cut:
		r.outside("the plan: "+worst.name+" and what was cut off below it", line, ratio(worst.self, total))
		r.next(again+", the whole of it", "names the node that has the time")
		return
	case elsewhere.MatchString(worst.name) && t.most(worst):
		r.outside("what "+worst.name+" asks: another server, or an extension", line, ratio(worst.self, total))
		r.next("EXPLAIN (ANALYZE, VERBOSE) the statement", "shows what it asks for; EXPLAIN ANALYZE that where it runs")
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
	if worst.spill > 0 && t.most(worst) {
		r.next("SET work_mem = '...', then "+again, "whether it is faster where all of it fits in memory")
	}
	if guessedFar(nodes) {
		r.next(analyze+" of the tables named, then "+again,
			"says whether the estimates, and with them the plan, change")
		return
	}
	r.next("another index or another join for that node, then "+again, goodGuesses(nodes))
}
