package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

func readTiDBPlan(p *attach.Part) attach.Reading {
	ops, statement, analyzed := parsePlan(p.Lines)
	r := &result{}
	if !analyzed {
		return readPlainPlan(r, ops)
	}
	total := wholeTime(ops)
	r.Title = fmt.Sprintf("TiDB EXPLAIN ANALYZE, %s, %s", attach.Plural(len(ops), "operator"), dur(total))
	r.fact(FactStatement, max(total, statement)*1e3, "")
	switch {
	case statement > 0.1 && statement > 4*total:
		earlyTime(r, total, statement)
	case lostBetween(r, ops, total):
	default:
		whereInPlan(r, ops, total)
	}
	if total < 0.1 && len(r.Signs) == 0 {
		r.Means = cmp.Or(r.Means, fmt.Sprintf("The execution took %s: it was fast when it was explained.", dur(total)))
		r.Not = cmp.Or(r.Not, "A run that was fast says nothing of others that may be slow.")
		return r.done(attach.Healthy)
	}
	r.Not = cmp.Or(r.Not, "These are the times of one run; an operator's time holds that of the operators below it.")
	return r.done(attach.CannotTell)
}

// wholeTime is what the topmost operators of TiDB itself took. The times of operators below them
// may be added up over workers and tasks that ran at the same time.
func wholeTime(ops []*operator) float64 {
	whole, most, top := 0.0, 0.0, -1
	for _, o := range ops {
		most = max(most, o.time, o.client)
		if o.task != "root" || o.time < 0 || top >= 0 && o.depth > top {
			continue
		}
		whole, top = max(whole, o.time), o.depth
	}
	if top < 0 {
		return most
	}
	return whole
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
		r.fact(FactLost, max(0, o.client-o.server)*1e3, o.name)
		if worst == nil || o.client-o.server > worst.client-worst.server {
			worst = o
		}
	}
	if worst == nil || worst.client-worst.server < 0.05 ||
		worst.client-worst.server < 0.5*worst.client || worst.client < 0.3*total {
		return false
	}
	lost := worst.client - worst.server
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
		r.figure("whole execution " + dur(total))
		slowest(r, ops)
		return
	}
	for _, o := range ops {
		if waits(r, o, total) {
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
	line := tookOf(ops, leaf, total)
	if leaf.act >= 0 && leaf.est >= 0 {
		line += fmt.Sprintf("; %s rows, estimated %s", count(leaf.act), count(leaf.est))
	}
	r.figure(line)
	where := "the plan: " + leaf.name
	below := belowIsCut(ops, leaf)
	if below {
		where += " and what was cut off below it"
	}
	leaf.joinWaits(r)
	big := leaf
	for _, o := range ops {
		if o.act > big.act {
			big = o
		}
	}
	bad := misjudged(ops, leaf)
	switch {
	case bad != nil && bad.act >= 100*max(1, bad.est):
		where = "a plan that rests on a wrong estimate"
		if strings.Contains(bad.text, "stats:pseudo") {
			where = "a plan with an estimate that rests on no statistics (stats:pseudo)"
		}
	case strings.HasPrefix(leaf.task, "cop[tidb]"):
		where = "TiDB's own tables in memory, which " + leaf.name + " reads"
	case leaf.task != "root", leaf.client > 0.5*total, leaf.keys > 0:
		where = leaf.store() + "'s own execution of " + leaf.name
		if leaf.keys > 3*leaf.used && leaf.keys > 1e5 {
			r.figure(fmt.Sprintf("%s keys scanned for %s processed: old versions or deleted keys",
				count(leaf.keys), count(leaf.used)))
		} else if leaf.keys > 0 {
			r.figure(fmt.Sprintf("%s keys scanned", count(leaf.keys)))
		} else {
			deadKeys(r, ops)
		}
	case leaf.readsStore():
		where = storesBelow(ops, leaf) + ", which " + leaf.name + " reads from, and the way to it"
		deadKeys(r, ops)
	case strings.Contains(joinText(ops), "CARTESIAN"):
		where = "the plan: a cartesian join"
	}
	if bad != nil {
		r.figure(fmt.Sprintf("%s: estimated %s rows, found %s", bad.name, count(bad.est), count(bad.act)))
	} else if big.act > 1e5 && (big != leaf || leaf.est < 0) {
		r.figure(fmt.Sprintf("%s gave %s rows", big.name, count(big.act)))
	}
	if leaf.read > 0.3*leaf.time && leaf.read > 0.05 {
		r.candidate("disk-wait", fmt.Sprintf("reading blocks took %s, added up over tasks", dur(leaf.read)))
	}
	r.outside(where, line, min(1, ratio(leaf.time, total)))
	switch {
	case bad == nil && below:
		r.next("EXPLAIN ANALYZE again, the whole of it", "names the operator that has the time")
		return
	case bad == nil:
		r.next("another index or another join for that operator, then EXPLAIN ANALYZE again",
			"nothing that it rests on found ten times the rows estimated, so new statistics are not the first thing to try")
		return
	}
	r.next("ANALYZE TABLE of the tables named, then EXPLAIN ANALYZE again",
		"says whether the estimates, and with them the plan, change")
}

func slowest(r *result, ops []*operator) {
	for _, o := range ops {
		if o.client > 0 && o.server >= 0 && len(r.Figures) < 3 {
			r.figure(fmt.Sprintf("%s: slowest task %s by TiDB's clock, %s by TiKV's", o.name,
				dur(o.client), dur(o.server)))
		}
	}
}

// waits looks for what an operator waited for that is no execution.
func waits(r *result, o *operator, total float64) bool {
	if o.waited >= 0.05 && o.waited >= 0.3*total && o.tasks <= 1 ||
		o.waited >= 0.5*o.client*max(1, o.tasks) && o.waited >= 0.05 && o.client > 0.3*total {
		line := fmt.Sprintf("tasks waited %s for a thread of "+o.store()+
			", of %s by TiDB's clock (%s, %s)", dur(o.waited), dur(o.client), o.name,
			attach.Plural(int(max(1, o.tasks)), "task"))
		r.figure(line)
		r.fact(FactPoolWait, o.waited*1e3, "")
		r.found("pool-exhaustion", finding.Possible, line, ratio(o.waited, total*max(1, o.tasks)))
		r.Means = "Tasks waited in " + o.store() +
			" before they ran, for a thread of its read pool or for a snapshot: its host or that instance was busy."
		return true
	}
	if lock := value(group(o.text, "lock_keys:"), "time"); lock > 0.3*total {
		line := fmt.Sprintf("lock_keys %s of %s", dur(lock), dur(total))
		r.figure(line)
		r.fact(FactLockWait, lock*1e3, "")
		r.outside("a lock in the database's own tables, which another transaction holds", line, ratio(lock, total))
		r.next("SELECT * FROM information_schema.data_lock_waits",
			"names the transaction that holds the lock, while it waits")
		return true
	}
	if commit := group(o.text, "commit_txn:"); commit != "" {
		pre, com := max(0, value(commit, "prewrite")), max(0, value(commit, "commit"))
		if pre+com > 0.3*total {
			line := fmt.Sprintf("commit: prewrite %s, commit %s of %s", dur(pre), dur(com), dur(total))
			r.figure(line)
			r.outside("the commit in TiKV: its raft log and its disk, or locks of other transactions", line, ratio(pre+com, total))
			return true
		}
	}
	return planBackoff(r, o, total)
}

// planBackoff reads "backoff{regionMiss: 2ms}" and "regionMiss_backoff:{num:11, total_time:2010
// ms}".
func planBackoff(r *result, o *operator, total float64) bool {
	for _, kind := range []string{"regionMiss", "updateLeader", "staleCommand", "txnLockFast",
		"txnLock", "tikvRPC", "tikvServerBusy", "serverBusy", "pdRPC", "regionScheduling", "rpcTiKV"} {
		v := value(group(o.text, kind+"_backoff:"), "total_time")
		if b := group(o.text, "backoff"); b != "" && v < 0 {
			v = value(b, kind)
		}
		if b := group(o.text, "backoff:"); b != "" && v < 0 {
			v = value(b, kind)
		}
		if v > 0.05 && v > 0.3*total {
			line := fmt.Sprintf("backoff %s: %s of %s", kind, dur(v), dur(total))
			r.figure(line)
			r.outside(backoffWhere(kind), line, ratio(v, total))
			return true
		}
	}
	return false
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

// readPlainPlan reads EXPLAIN without ANALYZE: estimates, and no time.
func readPlainPlan(r *result, ops []*operator) attach.Reading {
	r.Title = "TiDB EXPLAIN, " + attach.Plural(len(ops), "operator") + ", not run: no times in it"
	most := slices.MaxFunc(ops, func(a, b *operator) int { return cmp.Compare(a.est, b.est) })
	all := joinText(ops)
	cartesian := strings.Contains(all, "CARTESIAN")
	line := fmt.Sprintf("%s rows estimated in %s", count(max(most.est, 0)), most.name)
	if cartesian {
		line = "CARTESIAN join: " + line
	}
	r.figure(line)
	pseudo(r, ops)
	full := 0
	for _, o := range ops {
		if strings.Contains(o.name, "TableFullScan") || strings.Contains(o.name, "TableScan") &&
			strings.Contains(o.text, "[-inf,+inf]") {
			full++
		}
	}
	if full > 0 {
		r.figure(attach.Plural(full, "full scan") + " of a table")
	}
	r.Not = "A plan without ANALYZE has estimates only: it shows no time, and nothing was measured."
	switch {
	case cartesian:
		r.outside("the plan: a cartesian join", line, 0)
		r.Means = "If this statement is slow, the plan is the reason that lies nearest: a cartesian join, outside what whystall can look into."
	case full > 0 && most.est >= 1e6:
		r.outside("the plan: it reads whole tables", line, 0)
		r.Means = "If this statement is slow, the plan is the reason that lies nearest: it reads a whole table, outside what whystall can look into."
	default:
		r.Means = "Nothing in the estimates stands out; whether the statement is slow, and where, it does not say."
	}
	r.next("EXPLAIN ANALYZE the statement", "runs it and has the times of each operator and task")
	return r.done(attach.CannotTell)
}

// pseudo says which tables have no statistics.
func pseudo(r *result, ops []*operator) {
	without, reads := 0, 0
	var tables []string
	for _, o := range ops {
		m := planTable.FindStringSubmatch(o.text)
		if m == nil {
			continue
		}
		reads++
		if strings.Contains(o.text, "stats:pseudo") {
			without++
			if !slices.Contains(tables, m[1]) {
				tables = append(tables, m[1])
			}
		}
	}
	switch {
	case !strings.Contains(joinText(ops), "stats:pseudo"):
	case without == reads:
		r.figure("stats:pseudo: the estimates rest on no statistics")
	case without == 0:
		r.figure("stats:pseudo: estimates rest on no statistics")
	default:
		r.figure(fmt.Sprintf("stats:pseudo: the estimates of %d of %d reads rest on no statistics (%s)",
			without, reads, strings.Join(tables[:min(3, len(tables))], ", ")))
	}
}

// planTable is the table that an operator reads.
var planTable = pattern.New(`\btable:([^\s,|]{1,64})`)

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
