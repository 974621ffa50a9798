package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

func readTiDBPlan(p *attach.Part) attach.Reading {
	ops, statement, analyzed := parsePlan(planLines(p.Lines))
	r := &result{}
	if !analyzed {
		return readPlainPlan(r, ops)
	}
	total, cut := wholeTime(ops), !isPlanRoot(ops[0].text)
	if cut && openTop(ops) {
		return readMiddle(r, ops)
	}
	r.Title = fmt.Sprintf("TiDB EXPLAIN ANALYZE, %s, %s", attach.Plural(len(ops), "operator"), dur(total))
	if cut {
		r.Title = fmt.Sprintf("TiDB EXPLAIN ANALYZE without its start, %s, which took %s", attach.Plural(len(ops), "operator"), dur(total))
	}
	r.fact(FactStatement, max(total, statement)*1e3, "")
	r.read = planRead(ops)
	if statement > 0.1 && statement > 4*total {
		earlyTime(r, total, statement)
	} else if !lostBetween(r, ops, total) {
		whereInPlan(r, ops, total)
	}
	r.second(r.read)
	if total < 0.1 && len(r.Signs) == 0 && cut {
		r.Means = "What is shown was fast; what the whole statement took is not in it."
		return r.done(attach.CannotTell)
	}
	if total < 0.1 && len(r.Signs) == 0 {
		r.Means = cmp.Or(r.Means, fmt.Sprintf("The execution took %s: it was fast when it was explained.", dur(total)))
		r.Not = cmp.Or(r.Not, "A run that was fast says nothing of others that may be slow.")
		return r.done(attach.Healthy)
	}
	r.Not = cmp.Or(r.Not, "These are the times of one run; an operator's time holds that of the operators below it.")
	return r.done(attach.CannotTell)
}

// wholeTime is what the topmost operators of TiDB itself took, and what their foreign keys did. The
// times of operators below them may be added up over workers and tasks that ran at the same time.
func wholeTime(ops []*operator) float64 {
	whole, most, top := 0.0, 0.0, -1
	after, below := 0.0, -1 // foreign keys are looked after when the statement itself is done
	for _, o := range ops {
		most = max(most, o.time, o.client)
		if strings.HasPrefix(o.name, foreignKey) && o.time >= 0 && (below < 0 || o.depth <= below) {
			after, below = after+o.time, o.depth
			continue
		}
		if o.task != "root" || o.time < 0 || top >= 0 && o.depth > top {
			continue
		}
		whole, top = max(whole, o.time), o.depth
	}
	if top < 0 || whole == 0 { // a topmost operator without a time was not measured
		return most
	}
	return whole + after
}

// earlyTime: the client waited much longer than the plan ran.
func earlyTime(r *result, total, statement float64) {
	line := fmt.Sprintf("%s in the plan against %s for the statement", dur(total), dur(statement))
	r.figure(line)
	r.outside("what came before the plan was run: a subquery that TiDB evaluated early, or planning", line, ratio(statement-total, statement))
	r.Not = "A fast plan is no proof that nothing is wrong: the time before it is not in it. TiKV is not shown to be slow."
	r.next("grep -A20 'Preproc_subqueries_time' tidb-slow.log",
		"Rewrite_time and Preproc_subqueries_time say whether a subquery ran early")
}

// lostBetween looks for a task which TiDB waited for much longer than TiKV worked on it.
func lostBetween(r *result, ops []*operator, total float64) bool {
	var worst *operator
	for _, o := range ops {
		if o.client <= 0 || o.server < 0 {
			continue
		}
		r.fact(FactClient, o.client*1e3, o.name)
		r.fact(FactServer, o.server*1e3, o.name)
		r.fact(FactLost, o.between()*1e3, o.name)
		if worst == nil || o.between() > worst.between() {
			worst = o
		}
	}
	if worst == nil || worst.between() < 0.05 ||
		worst.between() < 0.5*worst.client || worst.client < 0.3*total {
		return false
	}
	lost := worst.between()
	// tikv_task's times are whole milliseconds.
	line := fmt.Sprintf("%s of %s by TiDB's clock is lost between client and server: %s's clock has %s (%s)", exact(lost), dur(worst.client), worst.store(), dur(worst.server), worst.name)
	r.figure(line)
	if worst.tasks > 1 {
		r.figure(fmt.Sprintf("the slowest of %s; the client's average is %s",
			attach.Plural(int(worst.tasks), "task"), dur(max(value(group(worst.text, "cop_task:"), "avg"), 0))))
	}
	if worst.used > 0 {
		r.figure(fmt.Sprintf("%s keys processed: it is no heavy query", count(worst.used)))
	}
	r.Means = "The time is in neither's execution. It may hide in the network, in the kernel on either host (direct reclaim, the run queue), or in the gRPC threads."
	r.Not = "It proves no slow " + worst.store() + " and no slow disk: its own clock bounds both."
	r.candidate("direct-reclaim", line)
	r.candidate("cpu-contention", line)
	r.next("whystall record --pid $(pidof "+worst.program()+")", "on "+worst.store()+
		"'s host, while it happens: shows reclaim, run queue and throttling of the gRPC threads")
	r.next("whystall record --pid $(pidof tidb-server)",
		"on TiDB's host: the same for the client's side; sar -n TCP,ETCP 1 shows retransmits")
	return true
}

// whereInPlan says which operator the time is in.
func whereInPlan(r *result, ops []*operator, total float64) {
	if total < 0.1 {
		r.figure("what is shown took " + dur(total))
		if isPlanRoot(ops[0].text) {
			r.Figures[0] = "whole execution " + dur(total)
		}
		slowest(r, ops)
		reads(r, ops)
		return
	}
	for _, o := range ops {
		if waits(r, ops, o, total) {
			return
		}
	}
	for _, o := range ops {
		if o.oneByOne(r, total) && len(r.Signs) > 0 {
			deadKeys(r, ops)
			r.next("whystall record --pid $(pidof "+o.program()+")",
				"while it is slow: whether the threads of its read pool have a CPU, and what they wait for")
			return
		}
	}
	leaf := slices.MaxFunc(ops, func(a, b *operator) int {
		return cmp.Compare(b2f(a.time >= 0.7*total)*float64(a.depth+1), b2f(b.time >= 0.7*total)*float64(b.depth+1))
	})
	tellLeaf(r, ops, leaf, total)
}

// tellLeaf says what it means that an operator has most of the time, and none below it has.
func tellLeaf(r *result, ops []*operator, leaf *operator, total float64) {
	line := tookOf(ops, leaf, total)
	if leaf.act >= 0 && leaf.est >= 0 {
		line += fmt.Sprintf("; %s rows, estimated %s", count(leaf.act), count(leaf.est))
	}
	r.figure(line)
	leaf.joinWaits(r)
	big := leaf
	for _, o := range ops {
		if o.act >= big.act { // of as many rows, those that were read
			big = o
		}
	}
	cross, bad, below := cartesian(ops, leaf), misjudged(ops, leaf), belowIsCut(ops, leaf)
	where := "the plan: " + leaf.name
	switch {
	case below:
		where += " and what was cut off below it"
	case slices.ContainsFunc(under(ops, leaf), func(o *operator) bool { return o.time >= 0.3*total }):
		where += " with what stands below it"
	}
	switch {
	case cross != nil:
		where = "the plan: a cartesian join"
		gave := fmt.Sprintf("%s, a cartesian join, gave %s rows", cross.name, count(max(0, cross.act)))
		if cross != leaf && cross.time >= 0 {
			where = "the plan: " + leaf.name + ", over the rows of a cartesian join"
			gave += " and took " + dur(cross.time)
		}
		r.figure(gave)
	case bad != nil && bad.act >= 100*max(1, bad.est) && decides(ops):
		where = "a plan that rests on a wrong estimate"
		if strings.Contains(bad.text, "stats:pseudo") {
			where = "a plan with an estimate that rests on no statistics (stats:pseudo)"
		}
	case strings.HasPrefix(leaf.task, "cop[tidb]"):
		where = "TiDB's own tables in memory, which " + leaf.name + " reads"
	case leaf.task != "root", leaf.readsStore(), leaf.client > 0.5*total, leaf.keys > 0:
		where = leaf.readFrom(storesBelow(ops, leaf))
		leaf.scans(r, ops)
	}
	switch {
	case bad != nil && bad != leaf:
		r.figure(fmt.Sprintf("%s: estimated %s rows, found %s", bad.name, count(bad.est), count(bad.act)))
	case bad == nil && r.read == "" && big.act > 1e5 && big != leaf && cross == nil && (big.act > leaf.act || leaf.est < 0):
		r.figure(fmt.Sprintf("%s gave %s rows", big.name, count(big.act)))
	}
	applied(r, ops, leaf)
	spilled(r, ops)
	blockReads(r, append([]*operator{leaf}, under(ops, leaf)...))
	storeSums(r, append([]*operator{leaf}, under(ops, leaf)...), total)
	locksBeside(r, ops, total)
	r.outside(where, line, min(1, ratio(leaf.time, total)))
	switch {
	case cross != nil:
		r.next("a condition that joins the two sides, then EXPLAIN ANALYZE again",
			"a cartesian join gives each row of one side with each of the other")
	case bad == nil && below:
		r.next("EXPLAIN ANALYZE again, the whole of it", "names the operator that has the time")
	case bad != nil && !decides(ops):
		r.next("EXPLAIN ANALYZE again, with a condition or on TiFlash", "whether it has to read all of the table, and from where")
	case bad == nil && strings.HasSuffix(leaf.spill, "MB"), bad == nil && strings.HasSuffix(leaf.spill, "GB"):
		r.next("SET SESSION tidb_mem_quota_query = ..., then EXPLAIN ANALYZE again",
			"whether it is faster where all of it fits in memory")
	case bad == nil:
		r.next("another index or another join for that operator, then EXPLAIN ANALYZE again",
			noNewEstimates(ops, leaf))
	default:
		r.next("ANALYZE TABLE of the tables named, then EXPLAIN ANALYZE again",
			"says whether the estimates, and with them the plan, change")
	}
}

// scans says how many keys an operator scanned, and how many of them for nothing.
func (o *operator) scans(r *result, ops []*operator) {
	switch {
	case o.keys > 3*o.used && o.keys > 1e5:
		r.figure(fmt.Sprintf("%s keys scanned for %s processed: old versions or deleted keys",
			count(o.keys), count(o.used)))
		askSafePoint(r)
	case o.keys > 0 && r.read == "":
		r.figure(fmt.Sprintf("%s keys scanned", count(o.keys)))
	default:
		deadKeys(r, ops)
	}
}

// slowest gives both clocks of operators with one task. Of several tasks, the slowest by one clock
// need not be the slowest by the other.
func slowest(r *result, ops []*operator) {
	for _, o := range ops {
		if o.client > 0 && o.server >= 0 && o.server <= o.client && o.tasks == 1 && len(r.Figures) < 2 {
			r.figure(fmt.Sprintf("%s: its task took %s by TiDB's clock, %s by %s's", o.name,
				dur(o.client), dur(o.server), o.store()))
		}
	}
}

// reads names the operator that gave most rows, with what was estimated.
func reads(r *result, ops []*operator) {
	most := slices.MaxFunc(ops, func(a, b *operator) int { return cmp.Compare(a.act, b.act) })
	if most.act == 0 {
		r.figure("no operator gave a row")
	} else if most.act > 0 && most.est >= 0 {
		r.figure(fmt.Sprintf("most rows: %s gave %s, estimated %s", most.name, count(most.act), count(most.est)))
	}
}

// applied names the subquery that runs again for each row, where it has the time.
func applied(r *result, ops []*operator, leaf *operator) {
	for _, o := range ops {
		in := probed(under(ops, o))
		if strings.HasPrefix(o.name, "Apply") && slices.Contains(in, leaf) {
			line := in[0].name + " runs again for each row of the other side of " + o.name
			if outer := under(ops, o)[0]; outer.act > 1 {
				line += fmt.Sprintf(", which gave %s", count(outer.act))
			}
			r.figure(line)
			return
		}
	}
}

// spilled names the operator that put most on disk.
func spilled(r *result, ops []*operator) {
	for _, o := range ops {
		size, unit, _ := strings.Cut(o.spill, " ")
		if v, ok := number(size); ok && (unit == "MB" || unit == "GB") {
			r.figure(fmt.Sprintf("%s put %s %s on disk: it had more than its quota of memory", o.name, three(v), unit))
			return
		}
	}
}

// storeSums says how long the tasks of one operator worked and waited in the store, where that is
// much beside the whole time.
func storeSums(r *result, ops []*operator, total float64) {
	o := slices.MaxFunc(ops, func(a, b *operator) int { return cmp.Compare(a.worked, b.worked) })
	told := slices.ContainsFunc(r.Figures, func(f string) bool { return strings.Contains(f, "its task took") })
	switch {
	case o.worked < 0.3*total || o.tasks < 1 || told:
		return
	case o.tasks == 1:
		r.figure(fmt.Sprintf("the only task of %s worked %s in %s and waited %s there", o.name,
			dur(o.worked), o.store(), dur(o.waited)))
		return
	}
	r.figure(fmt.Sprintf("%s of %s worked %s in %s and waited %s there, added up",
		attach.Plural(int(min(o.tasks, 1e9)), "task"), o.name, dur(o.worked), o.store(), dur(o.waited)))
}

// cartesian is the slow operator or the first one below it that is a cartesian join; nil: none is.
func cartesian(ops []*operator, slow *operator) *operator {
	for _, o := range append([]*operator{slow}, under(ops, slow)...) {
		if strings.Contains(o.text, "CARTESIAN") {
			return o
		}
	}
	return nil
}

// misjudged is the operator whose estimate was most too low: ten times and 10 000 rows. Fewer rows
// than estimated cost nobody time: a limit or a filter in the scan itself may have made them few.
// What an operator above the slow one was thought to give cost that one nothing.
func misjudged(ops []*operator, slow *operator) (worst *operator) {
	for _, o := range ops {
		if o.est < 0 || o.act < 1e4 || o.act < 10*max(1, o.est) || slices.Contains(under(ops, o), slow) {
			continue
		}
		if worst == nil || o.act*max(1, worst.est) > worst.act*max(1, o.est) {
			worst = o
		}
	}
	return worst
}

func joinText(ops []*operator) string {
	var b strings.Builder
	for _, o := range ops {
		b.WriteString(o.text)
	}
	return b.String()
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
