package database

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// waits looks for what an operator waited for that is no execution.
func waits(r *result, ops []*operator, o *operator, total float64) bool {
	return o.flashWait(r, total) || o.poolWait(r, ops, total) || o.lockKeys(r, total) || o.commit(r, total) || planBackoff(r, o, total)
}

// between is what of the slowest request is in neither clock. It is 0 where the store worked on all
// requests together for half of their time or more: then the slowest two may not be one request.
func (o *operator) between() float64 {
	if o.tasks > 1 && o.rpc > 0 && o.worked >= 0 && o.worked+o.waited >= o.rpc/2 {
		return 0
	}
	return max(0, o.client-o.server)
}

// flashWait looks for a query that TiFlash did not let start, or whose parts waited for a thread.
func (o *operator) flashWait(r *result, total float64) bool {
	text := group(o.text, "tiflash_wait:")
	for _, name := range []string{"minTSO_wait", "pipeline_queue_wait"} {
		v := value(text, name)
		if v < 0.3*total || v < 0.05 || v > 1.05*total {
			continue
		}
		line := fmt.Sprintf("%s of TiFlash %s of %s (%s)", name, dur(v), dur(total), o.name)
		r.figure(line)
		r.found("pool-exhaustion", finding.Possible, line, ratio(v, total))
		r.Means = "The query waited in TiFlash for threads: others had them, or the bound on how many it uses at once is low."
		r.next("whystall record --pid $(pidof tiflash)", "while it is slow: whether its threads have a CPU")
		return true
	}
	return false
}

// poolWait looks for tasks which waited in the store before they ran. What many tasks waited is a
// sum: it counts where it is most of what all requests took, and these are much of the statement.
func (o *operator) poolWait(r *result, ops []*operator, total float64) bool {
	one := o.tasks == 1 && o.waited >= 0.3*total
	many := o.tasks > 1 && o.client > 0.3*total && o.waited >= 0.5*o.client*o.tasks
	if at := o.atOnce(); at > 1 && o.rpc > 0 && o.tasks > 1 {
		many = many || o.waited >= 0.5*o.rpc && o.rpc >= 0.5*total*at
	}
	if o.waited < 0.05 || !one && !many && !o.mostlyWaits(total) {
		return false
	}
	line := fmt.Sprintf("tasks waited %s before they ran in "+o.store()+
		", of %s by TiDB's clock (%s, %s)", dur(o.waited), dur(o.client), o.name,
		attach.Plural(int(min(o.tasks, 1e9)), "task"))
	if o.tasks > 1 {
		line = fmt.Sprintf("%s of %s waited %s before they ran in %s, added up; the slowest took %s by TiDB's clock",
			attach.Plural(int(min(o.tasks, 1e9)), "task"), o.name, dur(o.waited), o.store(), dur(o.client))
		if o.worked >= 0 {
			line += ", and all of them worked " + dur(o.worked)
		}
	}
	if snap := snapshots(ops, o); 2*snap >= o.waited {
		if o.tasks <= 1 {
			line = fmt.Sprintf("the task waited %s before it ran in %s, %s of it for a snapshot; it took %s by TiDB's clock (%s)",
				dur(o.waited), o.store(), dur(snap), dur(o.client), o.name)
		}
		r.figure(line)
		r.candidate("cpu-contention", line)
		r.candidate("disk-wait", line)
		r.Means = "Most of that was for a snapshot: the raft store of " + o.store() + ", which gives it, was late, or the region had no leader that could."
		r.next("whystall record --pid $(pidof "+o.program()+")", "while it happens: what the threads of the raft store wait for")
		return true
	}
	r.figure(line)
	r.fact(FactPoolWait, o.waited*1e3, "")
	if o.task == "root" && len(under(ops, o)) == 0 && !strings.Contains(o.text, "scan_detail:") {
		// The row that tells a wait for a snapshot from one for a thread was cut off.
		r.candidate("pool-exhaustion", line)
		r.candidate("disk-wait", line)
		r.Means = "Tasks waited in " + o.store() + " before they ran, for a thread of its read pool or for a snapshot: the rows below, which tell these apart, are not in the text."
		return true
	}
	r.found("pool-exhaustion", finding.Possible, line, min(1, ratio(o.waited, total*max(1, o.tasks))))
	r.Means = "Tasks waited in " + o.store() +
		" before they ran, for a thread of its read pool or for a snapshot: its host or that instance was busy."
	return true
}

// mostlyWaits reports whether an operator has the time, and most of what its requests took are
// waits. TiDB has 15 of them under way at most, where it does not say otherwise.
func (o *operator) mostlyWaits(total float64) bool {
	return o.time >= 0.7*total && o.rpc > 0 && o.tasks > 1 && o.waited >= 0.5*o.rpc &&
		o.rpc >= 0.3*total*min(o.tasks, max(15, o.atOnce()))
}

// atOnce is how many requests of an operator may be under way at once; -1: it is not in the text.
func (o *operator) atOnce() float64 {
	cop := group(o.text, "cop_task:")
	return max(value(cop, "max_distsql_concurrency"), value(cop, "distsql_concurrency"))
}

// snapshots is what an operator's tasks, or those right below it, waited for snapshots.
func snapshots(ops []*operator, o *operator) float64 {
	if v := value(group(o.text, "scan_detail:"), "get_snapshot_time"); v >= 0 {
		return v
	}
	for _, below := range under(ops, o) {
		if v := value(group(below.text, "scan_detail:"), "get_snapshot_time"); v >= 0 && below.task != "root" {
			return v
		}
	}
	return 0
}

// manyLocks is from how many keys on locking them takes time by itself.
const manyLocks = 1000

func (o *operator) lockKeys(r *result, total float64) bool {
	text := group(o.text, "lock_keys:")
	lock := value(text, "time")
	if lock <= 0.3*total {
		return false
	}
	line := fmt.Sprintf("lock_keys %s of %s", dur(lock), dur(total))
	keys := value(text, "keys")
	if keys > 0 {
		line += fmt.Sprintf(", for %s keys", count(keys))
	}
	r.figure(line)
	r.fact(FactLockWait, lock*1e3, "")
	where := "a lock in the database's own tables, which another transaction holds"
	if keys >= manyLocks && value(text, "resolve_lock") <= 0 && !strings.Contains(text, "txnLock") {
		where = "the locking of many keys in TiKV, or a lock that another transaction holds"
	}
	r.outside(where, line, ratio(lock, total))
	r.next("SELECT * FROM information_schema.data_lock_waits",
		"names the transaction that holds the lock, while it waits")
	return true
}

// locksBeside says what locking and committing took where it is the smaller part.
func locksBeside(r *result, ops []*operator, total float64) {
	for _, o := range ops {
		text := group(o.text, "lock_keys:")
		if lock := value(text, "time"); lock > 0 {
			line := fmt.Sprintf("lock_keys took %s of %s", dur(lock), dur(total))
			if keys := value(text, "keys"); keys > 0 {
				line += fmt.Sprintf(", for %s keys", count(keys))
			}
			r.figure(line)
			return
		}
	}
}

var slowestRPC = pattern.New(`slowest_prewrite_rpc: ?\{total: ?([\d.]+(?:µs|ms|s)).*?\bstore: ?([^\s,}]+)`)

func (o *operator) commit(r *result, total float64) bool {
	commit := group(o.text, "commit_txn:")
	pre, com := max(0, value(commit, "prewrite")), max(0, value(commit, "commit"))
	if commit == "" || pre+com <= 0.3*total {
		return false
	}
	line := fmt.Sprintf("commit: prewrite %s, commit %s of %s", dur(pre), dur(com), dur(total))
	if keys := value(commit, "write_keys"); keys > 0 {
		line += fmt.Sprintf(", for %s keys", count(keys))
	}
	r.figure(line)
	r.outside("the commit in TiKV: its raft log and its disk, or locks of other transactions", line, ratio(pre+com, total))
	if m := slowestRPC.FindStringSubmatch(commit); m != nil {
		rpc, _ := seconds(m[1])
		slowestRequest(r, "prewrite", pre, rpc, m[2], group(commit, "slowest_prewrite_rpc:"))
	}
	return true
}

var (
	backoffPair  = pattern.New(`\b([A-Za-z]+): ?([\d.]+ ?(?:µs|ms|s|m)(?:[\d.]+(?:ms|s))?)`)
	backoffGroup = pattern.New(`\b([A-Za-z]+)_backoff: ?\{num: ?\d+, (?:total_)?time: ?([\d.]+ ?(?:µs|ms|s|m)(?:[\d.]+(?:ms|s))?)`)
)

// planBackoff reads "backoff{regionMiss: 2ms}" and "regionMiss_backoff:{num:11, total_time:2010
// ms}". Both are sums over an operator's tasks.
func planBackoff(r *result, o *operator, total float64) bool {
	pairs := backoffGroup.FindAllStringSubmatch(o.text, 20)
	for _, name := range []string{"backoff", "backoff:"} {
		pairs = append(pairs, backoffPair.FindAllStringSubmatch(group(o.text, name), 20)...)
	}
	kind, most := "", 0.0
	for _, m := range pairs {
		if v, ok := seconds(m[2]); ok && v > most && m[1] != "time" {
			kind, most = m[1], v
		}
	}
	if most <= 0.05 || most <= 0.3*total {
		return false
	}
	line := fmt.Sprintf("backoff %s: %s of %s", kind, dur(most), dur(total))
	if o.tasks > 1 {
		line = fmt.Sprintf("backoff %s: %s, added up over %s; the whole took %s", kind, dur(most),
			attach.Plural(int(min(o.tasks, 1e9)), "task"), dur(total))
	}
	r.figure(line)
	r.outside(backoffWhere(kind), line, ratio(most, total))
	return true
}
