package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// oneByOne reports whether an operator's tasks ran one after another, so that their times add up,
// and says so.
func (o *operator) oneByOne(r *result, total float64) bool {
	cop := group(o.text, "cop_task:")
	rpc := value(cop, "rpc_time")
	if o.tasks < 2 || value(cop, "max_distsql_concurrency") != 1 || rpc < 0.5*total || rpc > 1.1*total {
		return false
	}
	line := fmt.Sprintf("%s ran one after another in %s: %s of %s were requests to %s",
		attach.Plural(int(min(o.tasks, 1e9)), "task"), o.name, dur(rpc), dur(total), o.store())
	r.figure(line)
	work := value(cop, "tot_proc")
	if work < 0 {
		return true
	}
	line = fmt.Sprintf("of them, %s says that the tasks waited %s and worked %s", o.store(), dur(o.waited), dur(work))
	r.figure(line)
	if o.waited >= work && o.waited >= 0.3*total {
		r.fact(FactPoolWait, o.waited*1e3, "")
		r.candidate("pool-exhaustion", line)
		r.candidate("cpu-contention", line)
		r.Means = "The tasks ran one by one, and " + o.store() +
			" let them wait longer than it worked on them: for a thread of its read pool, for a snapshot, or for a CPU."
	}
	return true
}

// vain reports whether an operator scans far more keys than it can use.
func (o *operator) vain() bool { return o.keys >= 1e4 && o.keys >= 10*max(1, o.used) }

// deadKeys names the operator that scans far more keys than it can use.
func deadKeys(r *result, ops []*operator) {
	var worst *operator
	for _, o := range ops {
		if o.vain() && (worst == nil || o.keys > worst.keys) {
			worst = o
		}
	}
	if worst == nil {
		return
	}
	text := fmt.Sprintf("%s keys scanned for %s processed in %s: old versions or deleted keys",
		count(worst.keys), count(worst.used), worst.name)
	rocks := group(group(worst.text, "scan_detail:"), "rocksdb:")
	if dead := value(rocks, "delete_skipped_count"); dead > 0 {
		text += fmt.Sprintf("; %s deleted ones skipped", count(dead))
	}
	r.figure(text)
	askSafePoint(r)
}

func askSafePoint(r *result) {
	r.next("SELECT * FROM mysql.tidb WHERE variable_name LIKE 'tikv_gc%'",
		"tikv_gc_safe_point: how far old and deleted versions have been removed")
}

// noInput are parts of the names of operators that may have none below them.
var noInput = []string{"Scan", "Get", "Dual", "Insert", "Replace", "Load", "Reader", "LookUp",
	"IndexMerge", "CTE", "Show", "MemTable"}

// belowIsCut reports whether an operator reads from another one which is not in the text.
func belowIsCut(ops []*operator, o *operator) bool {
	if slices.ContainsFunc(noInput, func(word string) bool { return strings.Contains(o.name, word) }) {
		return false
	}
	inputs := len(under(ops, o))
	if inputs > 0 && o.time >= 0 && !slices.ContainsFunc(under(ops, o), func(in *operator) bool { return in.time >= 0 || in.server >= 0 }) {
		return true // those that are there have no time
	}
	last := ops[len(ops)-1]
	if last.task == "root" && !last.measured() && slices.Contains(under(ops, o), last) {
		return true // the text ends within its row
	}
	return inputs == 0 || strings.Contains(o.name, "Join") && inputs == 1
}

// joinWaits says of a join that its workers waited for rows, where the text tells that apart.
func (o *operator) joinWaits(r *result) {
	probe := group(o.text, "probe:")
	fetch, all := value(probe, "fetch"), value(probe, "total")
	if n := value(probe, "concurrency"); all > 0 && fetch >= 0 && fetch < 0.8*all && n > 1 {
		line := fmt.Sprintf("its %s workers, added up: %s of joining, %s of waiting for rows to join (fetch)",
			count(n), dur(all-fetch), dur(fetch))
		if build := value(group(o.text, "build_hash_table:"), "build"); build > 0 {
			line += fmt.Sprintf("; building the hash table took %s before", dur(build))
		}
		r.figure(line)
		return
	}
	if all <= 0 || fetch < 0.8*all {
		return
	}
	r.figure(fmt.Sprintf("its workers waited for rows to join, for %s of %s of them all (fetch)", dur(fetch), dur(all)))
}

// readsStore reports whether an operator only waits for what a store reads.
func (o *operator) readsStore() bool {
	return o.task == "root" && (strings.HasPrefix(o.name, "TableReader") ||
		strings.HasPrefix(o.name, "IndexReader") || strings.HasPrefix(o.name, "IndexLookUp"))
}

// readFrom says where the time of an operator is that a store runs, or that waits for its rows.
// The store's own sums over all requests tell its part from the rest, where they are in the text.
func (o *operator) readFrom(store string) string {
	own := o.task != "root" || o.client > 0 && o.server >= o.client/2
	if o.rpc > 0 && o.worked >= 0 {
		own = o.worked+o.waited >= o.rpc/2
	}
	if own {
		return store + "'s own execution of " + o.name
	}
	return o.name + ", that is what " + store + " reads, the way to it, or what TiDB does with the rows"
}

// planChoices are parts of the names of operators that were chosen by estimates.
var planChoices = []string{"Join", "Apply", "LookUp", "IndexMerge", "IndexRange", "IndexReader"}

// decides reports whether a wrong estimate may have led to this plan: where a whole table is read
// and nothing is joined, there was no other way, and the groups of an aggregation are counted after
// its rows were read.
func decides(ops []*operator) bool {
	return slices.ContainsFunc(ops, func(o *operator) bool {
		return slices.ContainsFunc(planChoices, func(word string) bool { return strings.Contains(o.name, word) })
	})
}

// blockReads names the disk where reading blocks is much of what the store's tasks worked.
func blockReads(r *result, ops []*operator) {
	read, worked, took := 0.0, 0.0, 0.0
	for _, o := range ops {
		read, worked, took = max(read, o.read), max(worked, o.worked), max(took, o.time/max(1, min(o.tasks, tasksAtOnce)))
	}
	if read > 0.05 && read > 0.3*max(worked, took) {
		line := fmt.Sprintf("reading blocks took %s, added up over tasks", dur(read))
		if worked > 0 {
			line += fmt.Sprintf(" that worked %s", dur(worked))
		}
		r.figure(line)
		r.candidate("disk-wait", line)
		r.next("iostat -x 1 10", "on TiKV's hosts, while it runs: whether their disks are slow, or only much is read")
	}
}

// store is the server that runs an operator of a store.
func (o *operator) store() string {
	if strings.Contains(o.task, "tiflash") || strings.Contains(o.text, "tiflash_task:") {
		return "TiFlash"
	}
	return "TiKV"
}

// program is the name of that server's process.
func (o *operator) program() string {
	if o.store() == "TiFlash" {
		return "tiflash"
	}
	return "tikv-server"
}

// under are the operators below one.
func under(ops []*operator, o *operator) []*operator {
	from := slices.Index(ops, o) + 1
	for i, other := range ops[from:] {
		if other.depth <= o.depth {
			return ops[from : from+i]
		}
	}
	return ops[from:]
}

// storesBelow names the store that an operator reads from.
func storesBelow(ops []*operator, o *operator) string {
	for _, below := range under(ops, o) {
		if below.task != "root" {
			return below.store()
		}
	}
	return o.store()
}

// tookOf says an operator's time. It is a sum where workers ran it at the same time: then it may be
// more than the whole.
func tookOf(ops []*operator, o *operator, total float64) string {
	summed := o.time > total
	for _, up := range ops {
		below := under(ops, up)
		if n := value(group(up.text, "table_task:"), "concurrency"); n > 1 &&
			slices.Contains(below, o) && !strings.HasPrefix(o.name, "Index") {
			summed = true
		}
		if n := value(group(up.text, "inner:"), "concurrency"); n > 1 && slices.Contains(probed(below), o) {
			summed = true
		}
	}
	if !summed {
		return fmt.Sprintf("%s took %s of %s", o.name, dur(o.time), dur(total))
	}
	return fmt.Sprintf("%s took %s, added up over workers that ran at the same time; the whole took %s", o.name, dur(o.time), dur(total))
}

// probed are the operators of a join's inner side: the last of the two that stand right below it.
func probed(below []*operator) []*operator {
	for i := len(below) - 1; i > 0; i-- {
		if below[i].depth == below[0].depth {
			return below[i:]
		}
	}
	return nil
}
