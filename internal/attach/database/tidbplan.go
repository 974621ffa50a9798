package database

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// tidbPlan reads EXPLAIN and EXPLAIN ANALYZE of TiDB: as a table, with tabs, or with blanks.
var tidbPlan = &attach.Kind{
	Name:    "TiDB plan",
	Hints:   []string{"|", "root", "cop[", "mpp[", "estRows", "+--"},
	Yields:  []string{"TiDB expensive queries"},
	Claim:   claimTiDBPlan,
	Reports: true, // each is of one statement
	Apart: func(l paste.Line) bool {
		return planRule.MatchString(l.Text) || planHeader.MatchString(l.Text) || isPlanRoot(l.Text)
	},
	Read: readTiDBPlan,
}

var (
	planOp     = pattern.New(`^[\s|│├└─┌┐┤┬┴┼╴╶-]*([A-Z][A-Za-z]+(?:_[A-Z][A-Za-z]+)*(?:_\d+)?)(\((?:Build|Probe|Seed Part|Recursive Part)\))?[\s|│]`)
	planTask   = pattern.New(`(?:^|[\s|│])(root|cop(?:\[\w+\])?|mpp\[\w+\]|batchCop\[\w+\])(?:[\s|│]|$)`)
	planHeader = pattern.New(`^[\s|]*id\s*\|?\s+.*\b(estRows|count)\b.*\b(task)\b|^[\s|]*id\s*\|?\s+\|?\s*task\b.*\b(estRows|operator info)\b`)
	planRule   = pattern.New(`^\s*\+(-+\+)+\s*$`)
	inSet      = pattern.New(`^\(?(\d+) rows? in set(?:, \d+ warnings?)? \(([\d.]+ ?(?:sec|ms|s|min [\d.]+ sec))\)`)
	rowsInSet  = pattern.New(`^\d+ rows? (in set|affected)`)
	planTime   = pattern.New(`\btime: ?([\d.]+(?:ns|[µμu]s|ms|s|m|h)(?:[\d.]+(?:ms|s|m))*)`)
	planEst    = pattern.New(`(?:^|[\s|│])(\d+\.\d\d)(?:[\s|│]|$)`)
	// planAfter is an estimate in plans that TiDB 4 decoded: a whole number behind the task.
	planAfter = pattern.New(`[\t|] *(?:root|cop(?:\[\w+\])?|mpp\[\w+\]|batchCop\[\w+\]) *[\t|] *(\d+) *(?:[\t|]|$)`)
	actBefore = pattern.New(`[\t|] *(\d+) *[\t|] *time:`)
	planAct   = pattern.New(`(?:^|[\s|│])(\d+)(?:[\s|│]|$)`)
	// planRows are the rows of an operator as TiDB 3 has them, beside its time.
	planRows = pattern.New(`\bloops: ?\d+, rows: ?(\d+)`)
	// planDisk is what an operator put on disk: the last of two columns of sizes.
	planDisk = pattern.New(`(?:\d(?: ?[KMGT]?B| Bytes)|N/A)\s*[\t|]\s*([\d.]+ [KMGT]B)\s*\|?\s*$`)
)

// isPlanRow asks for what only a plan has beside an operator and its task: a numbered operator, a
// task of a store, or an estimate in a column.
func isPlanRow(text string) bool {
	m := planOp.FindStringSubmatch(text)
	if m == nil || !planTask.MatchString(text) {
		return false
	}
	return numbered.MatchString(m[1]) || strings.Contains(text, "cop[") ||
		strings.Contains(text, "mpp[") || planEst.MatchString(text) && strings.ContainsAny(text, "|\t│├└")
}

var numbered = pattern.New(`_\d+$`)

// planBranches is what TiDB draws before an operator that stands below another one.
const planBranches = "│├└"

// isPlanRoot reports whether a row is the first one of a plan: no branch leads to it. Of an
// operator of a store, a CTE and a subquery that was run before, that says nothing.
func isPlanRoot(text string) bool {
	if !isPlanRow(text) || !strings.Contains(text, "root") {
		return false
	}
	m := planOp.FindStringSubmatchIndex(text)
	name := text[m[2]:m[3]]
	return !strings.ContainsAny(text[:m[2]], planBranches) && planTask.FindStringSubmatch(text)[1] == "root" &&
		!strings.HasPrefix(name, "CTE_") && !strings.HasPrefix(name, "ScalarSubQuery_")
}

func claimTiDBPlan(lines []paste.Line) int {
	if isEscapedPlan(lines[0].Text) {
		return 1
	}
	n, rows, drawn := 0, 0, false
	for i, l := range lines {
		text := l.Text
		switch {
		case i > 0 && l.Command != "":
			return tidbDone(n, rows)
		case drawn && isPlanRoot(text):
			return n // branches were drawn, and none leads here: this is the next plan's
		case isPlanRow(text):
			rows++
			drawn = drawn || strings.ContainsAny(text, planBranches)
			n = i + 1
		case planHeader.MatchString(text) && rows > 0 && !planRule.MatchString(lines[i-1].Text):
			return tidbDone(n, rows)
		case planHeader.MatchString(text), i == 0 && len(lines) > 2 && strings.Contains(text, "|") &&
			tableRule(lines[1].Text) && isPlanRow(lines[2].Text): // names in another language
			n = i + 1
		case tableRule(text):
			if i+1 < len(lines) && planHeader.MatchString(lines[i+1].Text) && rows > 0 {
				return tidbDone(n, rows)
			}
			n = i + 1
		case rows > 0 && rowsInSet.MatchString(strings.TrimSpace(text)):
			return i + 1
		case rows > 0 && strings.HasPrefix(strings.TrimSpace(text), "|"), rows > 0 && wrapped(text):
			n = i + 1
		case strings.TrimSpace(text) == "" && i > 0 && i+1 < len(lines) &&
			(isPlanRow(lines[i+1].Text) || rowsInSet.MatchString(lines[i+1].Text)):
		default:
			return tidbDone(n, rows)
		}
		if rows == 0 && i > 4 {
			return 0
		}
	}
	return tidbDone(n, rows)
}

// wrapped is a line that goes on with a row's execution info.
func wrapped(text string) bool {
	for _, word := range []string{"cop_task:", "tikv_task:", "scan_detail:", "rpc_time:",
		"time_detail:", "rocksdb:", "loops:", "key_skipped_count", "p95_proc_keys"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// operator is a row of a plan. Times are in seconds; -1: not in the text.
type operator struct {
	name     string
	depth    int
	task     string
	text     string
	est, act float64
	time     float64

	client float64 // the slowest task by TiDB's clock
	server float64 // the most that the slowest task can have taken by TiKV's clock
	waited float64 // in TiKV before they ran, all tasks added up
	worked float64 // in TiKV, all tasks added up; -1: not in the text
	rpc    float64 // all requests by TiDB's clock, added up; -1: not in the text
	tasks  float64 // -1: not in the text
	spill  string  // what it put on disk
	keys   float64 // scanned
	used   float64 // processed
	read   float64 // blocks read
}

// parsePlan reads the rows, and the client's own time for the statement: -1 if it is not there.
func parsePlan(lines []paste.Line) (ops []*operator, statement float64, analyzed bool) {
	statement = -1
	var header string
	for _, l := range lines {
		text := l.Text
		trimmed := strings.TrimSpace(text)
		switch {
		case planHeader.MatchString(text):
			header = text
			analyzed = analyzed || strings.Contains(text, "actRows") || strings.Contains(text, "execution info")
		case isPlanRow(text):
			m := planOp.FindStringSubmatchIndex(text)
			ops = append(ops, &operator{name: text[m[2]:m[3]],
				depth: len([]rune(strings.TrimLeft(text[:m[2]], " |"))), text: text,
				task: planTask.FindStringSubmatch(text)[1]})
			if i := strings.IndexAny(text, "│├└"); i >= 0 {
				ops[len(ops)-1].depth = len([]rune(text[:m[2]])) // blanks in front count where branches are drawn
			}
		case len(ops) > 0 && inSet.MatchString(trimmed):
			if v, ok := seconds(inSet.FindStringSubmatch(trimmed)[2]); ok {
				statement = v
			}
		case len(ops) > 0 && !tableRule(text):
			last := ops[len(ops)-1]
			if len(last.text) < 1<<16 {
				last.text += " " + trimmed
			}
		}
	}
	for _, o := range ops {
		o.parse(strings.Contains(header, "actRows") || header == "")
		o.columns(header)
		analyzed = analyzed || o.time >= 0
	}
	return ops, statement, analyzed
}

func (o *operator) parse(actual bool) {
	o.time, o.act, o.est = -1, -1, -1
	if m := planTime.FindStringSubmatch(o.text); m != nil {
		o.time, _ = seconds(m[1])
	}
	if strings.HasPrefix(o.task, "mpp[") && o.time < 0 { // its tasks start together, one a server
		o.time = value(group(o.text, "tiflash_task:"), "proc max")
	}
	if m := planEst.FindStringSubmatchIndex(o.text); m != nil {
		o.est, _ = number(o.text[m[2]:m[3]])
		if a := planAct.FindStringSubmatch(o.text[m[3]:]); a != nil && actual &&
			(o.time >= 0 || strings.Contains(o.text, "proc max:")) {
			o.act, _ = number(a[1])
		}
	}
	if m := planAfter.FindStringSubmatch(o.text); m != nil {
		o.est, _ = number(m[1])
	}
	if strings.HasPrefix(o.name, foreignKey) {
		o.time = value(o.text, "total")
	}
	if a := actBefore.FindStringSubmatch(o.text); a != nil && actual {
		o.act, _ = number(a[1]) // a slow log has them behind the operator's words
	}
	if a := planRows.FindStringSubmatch(o.text); a != nil {
		o.act, _ = number(a[1])
	}
	if m := planDisk.FindStringSubmatch(o.text); m != nil {
		o.spill = m[1]
	}
	cop := group(o.text, "cop_task:")
	if cop == "" && strings.Contains(o.text, "rpc num:") {
		cop = o.text
	}
	o.tasks, o.rpc = o.howMany(cop), max(value(cop, "rpc_time"), value(group(o.text, "Cop:"), "total_time"))
	o.client = max(value(cop, "max"), 0)
	if o.client == 0 && o.tasks == 1 {
		o.client = max(o.rpc, 0)
	}
	if get := group(o.text, "Get:"); get != "" && o.client == 0 && value(get, "num_rpc") == 1 {
		o.client = max(value(get, "total_time"), 0)
	}
	o.serverTime(cop)
	scan := group(o.text, "scan_detail:")
	o.keys, o.used = max(value(scan, "total_keys"), 0), max(value(scan, "total_process_keys"), 0)
	o.read = max(value(group(scan, "block:"), "read_time"), 0)
}

// columns takes an operator's rows from the columns that the header names, where the row has them.
func (o *operator) columns(header string) {
	head, row := cells(header), cells(o.text)
	if len(head) != len(row) {
		return
	}
	for i, name := range head {
		v, ok := number(row[i])
		switch {
		case !ok:
		case name == "estRows", name == "count":
			o.est = v
		case name == "actRows":
			o.act = v
		}
	}
}

// foreignKey starts the names of operators that check or change what refers to the rows of another.
const foreignKey = "Foreign_Key_"

// howMany is the number of an operator's tasks or requests. Sums of its times are sums over them.
func (o *operator) howMany(cop string) float64 {
	if n := value(cop, "num"); n >= 0 {
		return n
	}
	for _, name := range []string{"Get:", "BatchGet:"} {
		if n := value(group(o.text, name), "num_rpc"); n >= 0 {
			return n
		}
	}
	for _, name := range []string{"tikv_task:", "tiflash_task:"} {
		task := group(o.text, name)
		if n := value(task, "tasks"); n >= 0 {
			return n
		}
		if value(task, "time") >= 0 {
			return 1
		}
	}
	return -1
}

// serverTime takes the most that TiKV says of one task: the slowest task's execution, and what all
// tasks together waited, since it does not say which of them waited. The executors' times are not
// all of a task: where even so many of the slowest hold less than what was processed, the slowest
// may have had all of that.
func (o *operator) serverTime(cop string) {
	o.server = -1
	tikv := group(o.text, "tikv_task:")
	if tikv == "" {
		tikv = o.text
	}
	detail := group(o.text, "time_detail:")
	o.worked = max(value(cop, "tot_proc"), value(detail, "total_process_time"))
	o.waited = max(value(cop, "tot_wait"), value(detail, "total_wait_time"), 0)
	longest := value(tikv, "proc max")
	switch wall := value(detail, "tikv_wall_time"); {
	case wall >= 0:
		o.server = wall
		return
	case longest >= 0 && o.tasks > 0 && longest*o.tasks < o.worked:
		o.server = o.worked
	case longest >= 0:
		o.server = longest
	case tikv != o.text:
		o.server = value(tikv, "time")
	}
	if o.server < 0 || o.tasks == 1 { // one task's sum has more in it than its executors
		o.server = max(o.server, o.worked)
	}
	if o.server >= 0 {
		o.server += o.waited + max(value(detail, "total_suspend_time"), 0)
	}
}

// group is what stands in braces after a name.
func group(text, name string) string {
	i := strings.Index(text, name)
	if i < 0 {
		return ""
	}
	rest := strings.TrimLeft(text[i+len(name):], " ")
	if !strings.HasPrefix(rest, "{") {
		return ""
	}
	depth := 0
	for j := range len(rest) {
		switch rest[j] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return rest[:j+1]
			}
		}
	}
	return rest
}

// value is what stands after a name: seconds or a number; -1: it is not there.
func value(text, name string) float64 {
	for from := 0; ; {
		i := strings.Index(text[from:], name+":")
		if i < 0 {
			return -1
		}
		i += from
		from = i + len(name) + 1
		if i > 0 && strings.IndexByte(" {,\t|", text[i-1]) < 0 {
			continue
		}
		rest := strings.TrimLeft(text[from:], " ")
		if j := strings.IndexAny(rest, ",}|\t"); j >= 0 {
			rest = rest[:j]
		}
		if v, ok := seconds(rest); ok {
			return v
		}
		return -1
	}
}
