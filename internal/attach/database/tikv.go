package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// tidbCop reads TiDB's log lines about coprocessor tasks: its own clock beside TiKV's, task by
// task.
var tidbCop = &attach.Kind{
	Name:      "TiDB coprocessor log",
	Hints:     []string{"TIME_COP_", "resp_time:"},
	Single:    true,
	Scattered: true,
	Claim:     func(lines []paste.Line) int { return run(lines, copLine.MatchString) },
	Read:      readCop,
}

// tikvSlow reads TiKV's slow queries and its warnings about steps of raft that took long.
var tikvSlow = &attach.Kind{
	Name:      "TiKV log",
	Marks:     []string{"primary_lock", "slow-query", "slow_query", "takes=", "[takes", "slow log", "] takes "},
	Hints:     []string{"primary_lock", "slow-query", "takes=", "slow_query", "[takes", "slow log", ".rs:"},
	Single:    true,
	Scattered: true,
	Claim:     func(lines []paste.Line) int { return run(lines, isTiKV) },
	Read:      readTiKV,
}

var (
	copLine   = pattern.New(`\[TIME_COP_\w+\]|\bresp_time:[\d.]+\w+ .*\bkv_process_ms:`)
	copResp   = pattern.New(`resp_time:([\d.]+[a-zµ]+(?:[\d.]+[a-zµ]+)*)`)
	copMS     = pattern.New(`kv_(process|wait)_ms:(\d+)`)
	copBack   = pattern.New(`\bbackoff_ms:(\d+)(?: backoff_types:\[([^\]]*)\])?`)
	copKeys   = pattern.New(`\b(?:total_versions|scan_total_write):([1-9]\d*)`)
	copUsed   = pattern.New(`\b(?:processed_versions|scan_processed_write):(\d+)`)
	copBlocks = pattern.New(`\brocksdb_read_count:(\d+)`)
	copAddr   = pattern.New(`store_addr:(\S+?:\d+)`)
	tikvLine  = pattern.New(`\[slow-query\]|\[endpoint\.rs:\d+\].*\blocked primary_lock|\.rs:\d+\]? .*\[?takes?=?"?[\d.]+ ?(ms|s|us|µs)|\[(?:takes|elapsed|cost|duration|taken)="?[\d.]+(?:ms|s|µs|us)"?\]|^\[?\d{4}[/-]\d\d[/-]\d\d.*(?:raftstore|apply|peer|fsm).*\btakes? [\d.]+ ?m?s\b`)
	tikvKV    = pattern.New(`\[([\w.]+)="?([\d.]+(?:ns|µs|us|ms|s|m))"?\]`)
	// tikvTimes are the forms of a step's time: seconds and nanoseconds of TiKV 1, and a bare
	// number of milliseconds.
	tikvTimes = pattern.New(`\.rs:\d+.*\[takes (?:Duration \{ secs: (\d+), nanos: (\d+)|=?(\d+)\])|\.rs:\d+\] .*\[takes=(\d+)\]`)
	// tikvOld is a slow query of TiKV 1, in seconds.
	tikvOld = pattern.New(`endpoint\.rs:\d+.*\btakes ([\d.]+) \[waiting: ([\d.]+)(?:, keys: (\d+))?`)
	// tikvSaid is what a line of the log about a slow query has, and a sentence or a command with
	// the words has not: the time of the line, or a duration.
	tikvSaid = pattern.New(`(?:^\W?|["'(])\d{4}[/-]\d\d[/-]\d\d[ T]|\[[\w.]+="?[\d.]+(?:ns|µs|us|ms|s|m)"?\]`)
	tikvTake = pattern.New(`(?:takes?[=: ]"?|took )([\d.]+(?:ns|µs|us|ms|s))`)
)

func isTiKV(text string) bool {
	if tikvTimes.MatchString(text) || tikvOld.MatchString(text) {
		return true
	}
	return tikvLine.MatchString(text) && (!strings.Contains(text, "[slow-query]") || tikvSaid.MatchString(text))
}

func run(lines []paste.Line, is func(string) bool) int {
	n := 0
	for n < len(lines) && is(lines[n].Text) && (n == 0 || lines[n].Command == "") {
		n++
	}
	return n
}

func readCop(p *attach.Part) attach.Reading {
	r := &result{}
	var lost, resp, server, waits []float64
	most, slowest := map[string]int{}, ""
	var backs, keys, used, blocks []float64
	types := map[string]int{}
	for _, l := range p.Lines {
		m := copResp.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		v, ok := seconds(m[1])
		if !ok {
			continue
		}
		s := 0.0
		for _, k := range copMS.FindAllStringSubmatch(l.Text, -1) {
			ms, _ := number(k[2])
			s += ms / 1e3
			if k[1] == "wait" {
				waits = append(waits, ms/1e3)
			}
		}
		resp, server, lost = append(resp, v), append(server, s), append(lost, max(0, v-s))
		back := 0.0
		if b := copBack.FindStringSubmatch(l.Text); b != nil {
			back, _ = number(b[1])
			for _, kind := range strings.Split(b[2], ",") {
				types[strings.TrimSpace(kind)]++
			}
		}
		backs = append(backs, min(back/1e3, v))
		if a := copAddr.FindStringSubmatch(l.Text); a != nil {
			most[a[1]]++
			if v >= slices.Max(resp) {
				slowest = a[1]
			}
		} else if v >= slices.Max(resp) {
			slowest = ""
		}
		keys, blocks = counted(keys, copKeys, l.Text), counted(blocks, copBlocks, l.Text)
		used = counted(used, copUsed, l.Text)
	}
	r.Title = "TiDB's coprocessor log, " + attach.Plural(len(resp), "slow task")
	if len(resp) == 0 {
		r.Means = "No response time in these lines."
		return r.done(attach.CannotTell)
	}
	addr := ""
	if n := attach.Largest(most); len(n) == 1 || len(n) > 1 && 2*most[n[0]] > len(resp) {
		addr = n[0]
	}
	r.fact(FactClient, attach.Median(resp)*1e3, addr)
	r.fact(FactServer, attach.Median(server)*1e3, addr)
	r.fact(FactLost, attach.Median(lost)*1e3, addr)
	which := "median task"
	if len(resp) == 1 {
		which = "the task"
	}
	line := fmt.Sprintf("%s: %s by TiDB's clock, %s by TiKV's, %s lost between them", which,
		dur(attach.Median(resp)), dur(attach.Median(server)), dur(attach.Median(lost)))
	r.figure(line)
	r.figure("the slowest: " + dur(slices.Max(resp)) + copStores(most, slowest, len(resp)))
	r.Not = "Only tasks above TiDB's threshold are logged."
	switch {
	case attach.Median(backs) >= 0.3*attach.Median(resp) && attach.Median(backs) >= 0.02:
		kind := ""
		if names := attach.Largest(types); len(names) > 0 {
			kind = names[0]
		}
		w := fmt.Sprintf("backoff %s: median %s of %s", cmp.Or(kind, "without a name"),
			dur(attach.Median(backs)), dur(attach.Median(resp)))
		r.figure(w)
		r.outside(backoffWhere(kind), w, ratio(attach.Median(backs), attach.Median(resp)))
	case attach.Median(lost) >= 0.5*attach.Median(resp) && attach.Median(lost) >= 0.02:
		r.Means = "The time is in neither's execution. It may hide in the network, in the kernel on either host (direct reclaim, the run queue), or in the gRPC threads."
		r.candidate("direct-reclaim", line)
		r.candidate("cpu-contention", line)
		r.next("whystall record --pid $(pidof tikv-server)"+onHost(addr),
			"while it happens: shows reclaim, run queue and throttling of the gRPC threads")
	case len(waits) > 0 && attach.Median(waits) >= 0.5*attach.Median(resp) && attach.Median(waits) >= 0.02:
		w := fmt.Sprintf("kv_wait_ms: median %s of %s", dur(attach.Median(waits)), dur(attach.Median(resp)))
		r.figure(w)
		r.fact(FactPoolWait, attach.Median(waits)*1e3, addr)
		r.found("pool-exhaustion", finding.Possible, w, ratio(attach.Median(waits), attach.Median(resp)))
		r.Means = "Tasks waited for a thread of TiKV's read pool."
	default:
		r.outside("TiKV's own execution of the tasks", line, ratio(attach.Median(server), attach.Median(resp)))
		copExecution(r, server, waits, keys, used, blocks, addr)
	}
	return r.done(attach.CannotTell)
}

// copExecution says what the tasks did in TiKV, where that is their time.
func copExecution(r *result, server, waits, keys, used, blocks []float64, addr string) {
	if len(keys) == len(server) && attach.Median(server) >= 0.3 &&
		attach.Median(server) >= slowKey*attach.Median(keys) {
		fewKeys(r, attach.Median(server), attach.Median(keys), blocks, addr)
		return
	}
	if len(keys) != len(server) || len(used) != len(server) || !vainVersions(r, attach.Sum(keys), attach.Sum(used)) {
		if len(keys) == len(server) && len(used) == len(server) {
			r.figure(fmt.Sprintf("together they scanned %s versions of keys and used %s of them",
				count(attach.Sum(keys)), count(attach.Sum(used))))
		}
		r.next("EXPLAIN ANALYZE the statement", "shows which operator scans the keys")
	}
	if len(waits) == len(server) && slices.Max(waits) == 0 {
		r.figure("none of them waited for a thread of TiKV (kv_wait_ms 0)")
	}
}

// manyVersions is from how many versions on it is told how few of them were of use.
const manyVersions = 1e5

// vainVersions says that tasks walked over versions which they did not use, where that is most.
func vainVersions(r *result, all, used float64) bool {
	if all < manyVersions || used >= all/2 {
		return false
	}
	r.figure(fmt.Sprintf("together they scanned %s versions of keys and used %s of them", count(all), count(used)))
	r.Not += " Whether the versions that were of no use are old ones or deleted ones."
	r.next("mysql -e \"SELECT * FROM mysql.tidb WHERE variable_name LIKE 'tikv_gc%'\"",
		"tikv_gc_safe_point: how far old and deleted versions have been removed")
	return true
}

// copStores says at which store the slowest task ran, and which store more than half of them.
func copStores(most map[string]int, slowest string, tasks int) (out string) {
	if slowest != "" {
		out = " at " + slowest
	}
	names := attach.Largest(most)
	switch {
	case len(names) < 2:
	case 2*most[names[0]] > tasks:
		out += fmt.Sprintf("; %d of %d tasks at %s", most[names[0]], tasks, names[0])
	default:
		out += fmt.Sprintf("; tasks at %d stores, none of which has the most of them", len(names))
	}
	return out
}

// slowKey is the time for one key, in seconds, from which on it is not the work that takes it: a
// key from memory takes a microsecond or few.
const slowKey = 100e-6

// fewKeys says what it means that a task took long for so few keys.
func fewKeys(r *result, server, keys float64, blocks []float64, addr string) {
	line := fmt.Sprintf("%s keys in %s of TiKV's time (medians)", count(keys), dur(server))
	read := len(blocks) > 0 && slices.Max(blocks) > 0
	if len(blocks) > 0 {
		line += fmt.Sprintf(", %s read from the disk", attach.Plural(int(min(attach.Median(blocks), 1e9)), "block"))
	}
	r.figure(line)
	r.Means = "TiKV holds the tasks, and they are too small for that time: its threads were suspended or had no CPU, or their rows are very large."
	if read || len(blocks) == 0 {
		r.Means = "TiKV holds the tasks, and they are too small for that time: its threads were suspended or had no CPU, reads of blocks were slow, or their rows are very large."
		r.candidate("disk-wait", line)
	}
	r.candidate("cpu-contention", line)
	r.next("whystall record --pid $(pidof tikv-server)"+onHost(addr),
		"shows whether the threads of its read pool have a CPU, and what they wait for")
}

// counted adds the number that a line has of something.
func counted(list []float64, re *pattern.Regexp, text string) []float64 {
	if m := re.FindStringSubmatch(text); m != nil {
		if v, ok := number(m[1]); ok {
			return append(list, v)
		}
	}
	return list
}

func readTiKV(p *attach.Part) attach.Reading {
	r := &result{}
	var total, process, wait, snapshot, suspend, steps []float64
	locked, bare, slowest, what := 0, 0, "", map[string]float64{}
	for _, l := range p.Lines {
		if strings.Contains(l.Text, "locked primary_lock") {
			locked++
			continue
		}
		if m := tikvOld.FindStringSubmatch(l.Text); m != nil {
			all, _ := seconds(m[1])
			waited, _ := seconds(m[2])
			total, wait, process = append(total, all), append(wait, waited), append(process, 0)
			snapshot, suspend = append(snapshot, 0), append(suspend, 0)
			continue
		}
		if v, ok := stepTime(l.Text); ok {
			steps = append(steps, v)
			what[stepName(l.Text)]++
			continue
		}
		kv := map[string]float64{}
		for _, m := range tikvKV.FindAllStringSubmatch(l.Text, -1) {
			if v, ok := seconds(m[2]); ok {
				kv[m[1]] = v
			}
		}
		if strings.Contains(l.Text, "slow-query") {
			if kv["total_lifetime"] <= 0 {
				bare++
				continue
			}
			if kv["total_lifetime"] > slices.Max(append(total, 0)) {
				slowest = l.Text
			}
			total = append(total, kv["total_lifetime"])
			process, wait = append(process, kv["total_process_time"]),
				append(wait, kv["wait_time"]+kv["total_wait_time"])
			snapshot, suspend = append(snapshot, kv["wait_time.snapshot"]), append(suspend, kv["total_suspend_time"])
			continue
		}
		if m := tikvTake.FindStringSubmatch(l.Text); m != nil {
			if v, ok := seconds(m[1]); ok {
				steps = append(steps, v)
				what[stepName(l.Text)]++
			}
		}
	}
	r.Title = "TiKV's log, " + attach.Plural(len(p.Lines), "line")
	if locked > 0 {
		line := fmt.Sprintf("reads that met a lock of another transaction: %s", times(locked))
		r.figure(line)
		r.outside(backoffWhere("lock"), line, 0)
	}
	if len(steps) > 0 {
		line := "steps that took long: " + often(steps)
		unnamed := what[""]
		delete(what, "")
		switch names := attach.Largest(what); {
		case len(names) == 1 && unnamed == 0:
			line = names[0] + " took long: " + often(steps)
		case len(names) > 0:
			line += "; of those that are named " + chiefly(what, "")
		}
		r.figure(line)
		r.candidate("disk-wait", line)
		r.candidate("cpu-contention", line)
		r.next("iostat -x 1 10", "says whether the disk of the raft log is slow")
	}
	if len(total) > 0 {
		tikvQueries{total, process, wait, snapshot, suspend}.judge(r, slowest)
	}
	if bare > 0 {
		r.figure("slow queries whose lines have no duration: " + times(bare))
		r.Means = cmp.Or(r.Means, "How long it took, and what for, these lines do not say.")
	}
	r.Not = "Only lines above TiKV's thresholds are in its log."
	if len(steps) > 0 {
		r.Means = cmp.Or(r.Means, "TiKV was late with steps of its own, and so was what waited for them.")
		r.Not = "Why a step took long: the disk, a CPU, memory that was paged out, and other commands for the same keys look alike in these lines."
	}
	return r.done(attach.CannotTell)
}

// tikvQueries are where the life of each slow query went, in seconds.
type tikvQueries struct{ total, process, wait, snapshot, suspend []float64 }

// judge says what the queries did, or what they waited for; slowest is the line of the slowest one.
func (q tikvQueries) judge(r *result, slowest string) {
	total, process, wait, suspend := attach.Median(q.total), attach.Median(q.process),
		attach.Median(q.wait), attach.Median(q.suspend)
	line := fmt.Sprintf("median slow query: %s in all", dur(total))
	if len(q.total) == 1 {
		line = fmt.Sprintf("the slow query took %s in all", dur(total))
	}
	if process > 0 {
		line += ", " + dur(process) + " processed"
	}
	line += ", " + dur(wait) + " waited"
	if suspend > 0 {
		line += ", " + dur(suspend) + " suspended"
	}
	r.figure(line)
	which := "the slowest"
	if len(q.total) == 1 {
		which = "it"
	}
	scanned := tikvScan(r, slowest, which)
	r.fact(FactServer, total*1e3, "")
	switch {
	case wait >= 0.5*total && attach.Median(q.snapshot) < 0.5*wait:
		r.fact(FactPoolWait, wait*1e3, "")
		r.found("pool-exhaustion", finding.Possible, line, ratio(wait, total))
		r.Means = "Queries waited for a thread of the read pool for most of their time."
	case wait >= 0.5*total:
		r.figure(fmt.Sprintf("of the wait, %s were for a snapshot", dur(attach.Median(q.snapshot))))
		r.Means = "Queries waited for a snapshot for most of their time: TiKV's raft store, which gives it, was late, or the region had no leader that could."
		r.candidate("cpu-contention", line)
		r.candidate("disk-wait", line)
		r.next("whystall record --pid $(pidof tikv-server)",
			"while it happens: what the threads of the raft store wait for")
		return
	case suspend >= 0.5*total:
		r.candidate("pool-exhaustion", line)
		r.candidate("cpu-contention", line)
		r.Means = "Queries were suspended for most of their life: they gave way to others in the read pool, or had no CPU."
		r.next("top -H -p $(pidof tikv-server)",
			"while it happens: whether the threads of the read pool use all of their CPUs, and for whom")
		return
	case process >= 0.5*total:
		r.outside("TiKV's own execution of the queries", line, ratio(process, total))
	}
	if !scanned {
		r.next("EXPLAIN ANALYZE the statement", "shows how many keys it scans")
	}
}
