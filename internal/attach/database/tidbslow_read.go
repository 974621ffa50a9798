package database

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// alone is a sum of waits, in s, that is long whatever the statement took, which the text lacks.
// oftenAlone is how many retries are too many whatever it took.
const (
	alone      = 0.25
	oftenAlone = 100
)

var backoffKind = pattern.New(`^((?:Cop_b|B)ackoff_(\w+)_total_time)$`)

// backoff sums the waits before retries, by kind.
func (e entry) backoff(r *result, q float64) {
	type wait struct {
		kind  string
		s     float64
		times string
	}
	var list []wait
	for name := range e {
		if m := backoffKind.FindStringSubmatch(name); m != nil {
			list = append(list, wait{m[2], e.s(name), e[m[1]+"s"]})
		}
	}
	if len(list) == 0 {
		if b := e.s("Backoff_time", "Backoff_total"); b > 0.05 && b >= 0.3*q {
			list = append(list, wait{cmp.Or(strings.Trim(e["Backoff_types"], "[]"), "kind not named"), b, ""})
		}
	}
	// A region that is missed is what PD is asked about: the first explains the second.
	slices.SortFunc(list, func(a, b wait) int {
		return cmp.Or(cmp.Compare(b.s, a.s), cmp.Compare(backoffRank(a.kind), backoffRank(b.kind)),
			cmp.Compare(a.kind, b.kind))
	})
	much := func(w wait) bool {
		if q > 0 {
			return w.s >= 0.3*q
		}
		times, _ := strconv.Atoi(w.times)
		return w.s >= alone || times >= oftenAlone
	}
	if len(list) > 0 && q == 0 && !much(list[0]) {
		r.Means = "It waited before retries, and not for long; how long the statement took is not in these lines."
	}
	for i, w := range list {
		if i > 1 || w.s < 0.02 || w.s < q/20 {
			break
		}
		line := fmt.Sprintf("backoff %s: %s in all", w.kind, dur(w.s))
		if w.times != "" {
			line = fmt.Sprintf("backoff %s: %s times, %s in all", w.kind, w.times, dur(w.s))
		}
		r.figure(line)
		if i == 0 && much(w) {
			r.outside(backoffWhere(w.kind), line, ratio(w.s, q))
			if e.n("Num_cop_tasks") > 1 || w.times != "" && w.times != "1" {
				r.Not = "It is a sum over requests of which some run at the same time: the statement waited no longer than that, and perhaps less."
			}
			switch {
			case movedRegion(w.kind):
				r.next("grep -c 'region not found\\|not leader' tidb.log", "says how often regions moved while the statement ran")
			case strings.Contains(strings.ToLower(w.kind), "lock"):
				r.next("SELECT * FROM information_schema.data_lock_waits", "names the transaction that holds the lock, while it waits")
			default:
				r.next("grep -E 'rpc error|server is busy|"+w.kind+"' tidb.log", "names the server that failed, and its error")
			}
		}
	}
}

// wholeTable is a statement that reads all of a table, as dumps do.
var wholeTable = pattern.New("(?i)^select (?:/\\*.*?\\*/ )?\\* from [\\w.`\"]+ *; *$")

// mostBrokenSlow is how many lines a field is broken into at most.
const mostBrokenSlow = 25

// brokenSlow reports whether a line is the rest of a field that a page's width broke: brackets of
// the field are open in front of it, or the line above it is as wide as the field's first one.
func brokenSlow(lines []paste.Line, at int) bool {
	if at == 0 || strings.HasPrefix(lines[at].Text, "# ") || strings.TrimSpace(lines[at].Text) == "" {
		return false
	}
	open := 0
	for i := at - 1; i >= 0 && i >= at-mostBrokenSlow; i-- {
		text := lines[i].Text
		if len(text) > 1<<14 {
			return false
		}
		open += strings.Count(text, "[") + strings.Count(text, "{") - strings.Count(text, "]") - strings.Count(text, "}")
		if strings.HasPrefix(text, "# ") {
			width := utf8.RuneCountInString(text)
			return open > 0 || i < at-1 && width >= 80 && width == utf8.RuneCountInString(lines[at-1].Text)
		}
	}
	return false
}

// unbrokenSlow is a log with each field in one line.
func unbrokenSlow(lines []paste.Line) []paste.Line {
	var out []paste.Line
	for i, l := range lines {
		if brokenSlow(lines, i) && len(out) > 0 {
			out[len(out)-1].Text += l.Text
			continue
		}
		out = append(out, l)
	}
	return out
}

// readFor says how many keys a statement read for the rows that it gave; "": it changes rows, or
// the entry does not say.
func (e entry) readFor() string {
	if _, said := e["Result_rows"]; !said || e.n("Write_keys") > 0 || slowWrites.MatchString(e["statement"]) {
		return ""
	}
	return readFor("TiKV", "keys", e.n("Total_keys"), e.n("Result_rows"))
}

func backoffRank(kind string) int {
	if strings.Contains(strings.ToLower(kind), "region") {
		return 0
	}
	return 1
}

// pool reads the coprocessor tasks' waits for a thread of TiKV's read pool.
func (e entry) pool(r *result, q float64) {
	longest, avg, p90 := e.longestWait(), e.s("Cop_wait_avg"), e.s("Cop_wait_p90")
	total, process := e.s("Wait_time"), e.s("Process_time")
	addr := firstWord(e["Cop_wait_addr"])
	if longest > 0 {
		r.fact(FactPoolWait, longest*1e3, addr)
	}
	at := ""
	if addr != "" {
		at = " at " + addr
	}
	if longest >= 0.02 && (q == 0 || longest >= 0.3*q) {
		line := fmt.Sprintf("Cop_wait: at most %s, on average %s, P90 %s%s", dur(longest), dur(avg), dur(p90), at)
		r.figure(line)
		if longest >= 0.05 {
			r.found("pool-exhaustion", finding.Possible, line, ratio(longest, q))
			r.Means = cmp.Or(r.Means, "A coprocessor task waited for a thread of TiKV's read pool"+
				at+": that instance was busy then.")
			r.Not = "Cop_wait also holds the time to get a snapshot; what the pool's threads did is not in here."
			r.next("whystall record --pid $(pidof tikv-server)"+onHost(addr),
				"shows what the threads of the read pool did")
		}
	} else if total >= 0.2 && total >= 0.5*(total+process) && (q == 0 || total >= 0.2*q) {
		line := fmt.Sprintf("Wait_time %s against Process_time %s, added up over %s requests",
			dur(total), dur(process), cmp.Or(firstWord(e["Request_count"]), "all"))
		r.figure(line)
		r.candidate("pool-exhaustion", line)
		r.Means = cmp.Or(r.Means, "Coprocessor tasks waited longer for TiKV's threads than these worked on them.")
	}
}

// longestWait is the longest wait of a task. It is 0 where the sum of all waits is shorter, or the
// statement itself, or the time for which it waited for its tasks: then the fields contradict each
// other.
func (e entry) longestWait() float64 {
	longest := e.s("Cop_wait_max")
	for _, whole := range []string{"Wait_time", "Query_time", "Cop_time"} {
		if e[whole] != "" && longest > 1.05*e.s(whole)+0.001 {
			return 0
		}
	}
	return longest
}

func onHost(addr string) string {
	host, _, _ := strings.Cut(addr, ":")
	if host == "" {
		return ""
	}
	return "   # on " + host
}

// plan reads the plan that an entry has, where none of its fields explains the time.
func (e entry) plan(r *result, q float64) {
	ops, _, analyzed := parsePlan(decodedPlan(e["Plan"]))
	if len(r.Signs) > 0 || q == 0 || !analyzed {
		return
	}
	total := wholeTime(ops)
	if total < q/2 {
		r.figure(fmt.Sprintf("the plan in it ran for %s of %s", dur(total), dur(q)))
		return
	}
	if !lostBetween(r, ops, total) {
		whereInPlan(r, ops, total)
	}
}

// process reads what TiKV's execution took.
func (e entry) process(r *result, q float64) {
	longest, total := e.s("Cop_proc_max"), e.s("Process_time")
	read := e.s("Rocksdb_block_read_time")
	keys, processed := e.n("Total_keys"), e.n("Process_keys", "Processed_keys")
	if len(r.Signs) == 0 && max(longest, total) == 0 && processed > 0 && keys > 1.5*processed && keys-processed > 1e5 {
		line := fmt.Sprintf("%s keys scanned for %s processed", count(keys), count(processed))
		r.figure(line)
		r.Means = "If this statement is slow, TiKV's scan of old versions or deleted keys is the reason that lies nearest."
		r.outside("TiKV's own execution: it scans old versions or deleted keys beside those that it needs", line, 0)
		r.Not = "These lines have no time: how long the scan took they do not say."
		return
	}
	tasks := e.n("Num_cop_tasks", "Request_count")
	if len(r.Signs) > 0 || max(longest, total) < 0.1 || q > 0 && longest < 0.3*q && !muchOf(total, tasks, q) {
		return
	}
	line := fmt.Sprintf("TiKV processed for %s in all", dur(total))
	if longest > 0 {
		line = fmt.Sprintf("TiKV's longest task processed for %s (P90 %s, average %s)",
			dur(longest), dur(e.s("Cop_proc_p90")), dur(e.s("Cop_proc_avg")))
		if total > 0 {
			line += fmt.Sprintf(", %s in all", dur(total))
		}
	}
	r.figure(line)
	where := "TiKV's own execution of the plan"
	if keys > 0 {
		r.figure(fmt.Sprintf("%s keys scanned for %s processed", count(keys), count(processed)))
		switch {
		case processed > 0 && keys > 1.9*processed && keys > 1e5, processed == 0 && keys > 1e5:
			where = "TiKV's own execution: it scans old versions or deleted keys beside those that it needs"
		case processed > 1e5:
			where = "TiKV's own execution: the plan reads many keys"
		}
	}
	if read >= 0.3*max(total, longest) && read > 0.05 {
		proof := fmt.Sprintf("Rocksdb_block_read_time %s of %s", dur(read), dur(max(total, longest)))
		r.figure(proof)
		r.candidate("disk-wait", proof)
	}
	r.outside(where, line, ratio(longest, q))
	r.next("EXPLAIN ANALYZE the statement",
		"shows which operator reads the keys, and the estimates beside the actual rows")
}

// tasksAtOnce is how many tasks of one reader TiDB lets run at once, by default.
const tasksAtOnce = 15

// muchOf reports whether a sum over tasks shows that they took much of a statement: these run at
// the same time.
func muchOf(sum, tasks, statement float64) bool {
	if tasks < 2 {
		return sum >= 0.5*statement
	}
	return sum/min(tasks, tasksAtOnce) >= 0.3*statement
}

// requests says of a statement that its requests to the store took most of its time, where no
// field says what these waited for. Sums over requests at one time are longer than the statement.
func (e entry) requests(r *result, q float64) {
	if len(r.Signs) > 0 || q == 0 {
		return
	}
	for _, f := range []struct{ name, what string }{
		{"Cop_time", "its coprocessor tasks"}, {"KV_total", "its requests to TiKV or TiFlash"},
		{"PD_total", "its requests to PD"},
	} {
		v := e.s(f.name)
		if v < 0.5*q || v > 1.05*q {
			continue
		}
		line := fmt.Sprintf("%s %s of the statement's %s (%s)", f.name, dur(v), dur(q), percent(v, q))
		r.figure(line)
		if e.s("Process_time") < v/2 {
			r.Not = "What they waited for: locks of other transactions, the store itself or the way to it."
		}
		r.outside(f.what, line, ratio(v, q))
		r.next("EXPLAIN ANALYZE the statement", "has lock_keys, and client's and server's times of each task")
		return
	}
}

// plain lists what there is where nothing stands out.
func (e entry) plain(r *result, q float64) {
	if q > 0 && len(r.Figures) == 0 {
		r.figure("Query_time " + dur(q))
	}
	if longest := max(e.s("Cop_wait_max"), e.s("Cop_proc_max")); q > 0 && longest > 1.05*q+0.001 {
		r.figure(fmt.Sprintf("a task of %s is longer than the statement: the fields contradict each other", dur(longest)))
	}
	if wholeTable.MatchString(e["statement"]) {
		r.figure("the statement asks for all rows of a table: no WHERE, no LIMIT")
	}
	if e["Num_cop_tasks"] == "0" {
		r.figure("no coprocessor task: it gets rows by their keys, writes, or reads no table")
	}
	if _, said := e["Process_time"]; said {
		r.figure(fmt.Sprintf("in TiKV: Process_time %s and Wait_time %s, of all its requests together", dur(e.s("Process_time")), dur(e.s("Wait_time"))))
	}
	names := e.longest(q)
	var list []string
	for _, name := range names {
		list = append(list, name+" "+dur(e.s(name)))
	}
	r.Figures = append(r.Figures, list...)
	switch {
	case q == 0:
		r.Means = "The fields here are too few, or none is large: where the time went cannot be told."
	case len(names) == 0 && e["Process_time"] == "":
		r.Means = fmt.Sprintf("Of the statement's %s these lines have no part: where it went they do not say.", dur(q))
	default:
		if len(list) > 1 { // one figure
			r.Figures = append(r.Figures[:len(r.Figures)-len(list)], "the longest of its parts: "+
				strings.Join(list, ", "))
		}
		r.Means = fmt.Sprintf("No field of this entry explains its %s: what is left may be TiDB's own execution, the way to TiKV, or waits on either host.", dur(q))
		if e["Is_internal"] == "true" { // nobody runs that by hand
			r.next("whystall record --pid $(pidof tidb-server)", "while it happens: whether TiDB had its CPU")
			return
		}
		r.next("EXPLAIN ANALYZE the statement", "has client's and server's times of each task")
		return
	}
	if e[oldLine] != "" { // there is no more of it
		r.next("EXPLAIN ANALYZE the statement", "shows which part of it takes the time")
		return
	}
	r.next("grep -A40 'Txn_start_ts' tidb-slow.log", "shows the whole entry")
}

// longest are the fields with most of the time, the longest first: three that are a hundredth of
// the whole, or the two of a fragment.
func (e entry) longest(q float64) []string {
	var names []string
	for _, name := range []string{"Parse_time", "Compile_time", "Wait_TS", "LockKeys_time",
		"Prewrite_time", "Commit_time", "Get_commit_ts_time", "Local_latch_wait_time",
		"Resolve_lock_time", "Commit_backoff_time", "Cop_time", "Cop_proc_max", "Cop_wait_max", "Wait_time", "Process_time"} {
		if _, said := e["Process_time"]; said && (name == "Wait_time" || name == "Process_time") {
			continue
		}
		if name == "Cop_wait_max" && e.longestWait() == 0 || name == "Cop_time" && e.s(name) > q {
			continue
		}
		if v := e.s(name); v > 0 && v >= q/100 {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(e.s(b), e.s(a)) })
	return names[:min(len(names), 3)]
}

// many says how much a statement read that no field explains.
func (e entry) many(r *result, q float64) {
	keys, took := e.n("Total_keys"), e.s("Process_time")
	if keys >= 1e5 {
		line := fmt.Sprintf("%s keys scanned for %s processed", count(keys),
			count(e.n("Process_keys", "Processed_keys")))
		if n := e.n("Request_count"); n > 0 {
			line += ", in " + attach.Plural(int(min(n, 1e9)), "request")
		}
		if took > 0 && keys > mostKeys*took {
			line += fmt.Sprintf("; no machine does so in the %s of Process_time: that field does not hold all", dur(took))
		}
		r.figure(line)
	}
	e.plain(r, q)
	if keys >= 1e6 {
		r.Means = fmt.Sprintf("The statement reads many keys, which takes time; and no field says where its %s went.", dur(q))
	}
}

// mostKeys is more than any TiKV scans in a second of one thread.
const mostKeys = 5e7
