package database

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// jsonPlan reads plans as JSON: EXPLAIN (FORMAT JSON) of PostgreSQL, EXPLAIN FORMAT=JSON of MySQL
// and MariaDB, with or without times. Clients print boxes around it, and a plus at the end of each
// line. One that was cut off is read as far as it goes.
var jsonPlan = &attach.Kind{
	Name: "plan as JSON",
	Hints: []string{`"Node Type"`, `"Plan"`, `"query_block"`, `"query_plan"`, "QUERY PLAN",
		"EXPLAIN", "ANALYZE", "+--", "1. row ", "[", "{"},
	Yields: []string{"PostgreSQL log"},
	Claim:  claimJSONPlan,
	Read:   readJSONPlan,
}

var (
	planHead  = pattern.New(`^(QUERY PLAN|EXPLAIN|ANALYZE)$`)
	planRuler = pattern.New(`^[-+=* .0-9row]{8,}$`) // also mysql's "*** 1. row ***"
	planKeys  = pattern.New(`"(Node Type|query_block|query_plan)"\s*:`)
	planSure  = pattern.New(`"(Startup Cost|Plan Rows|Actual Loops|Actual Rows|Parallel Aware|select_id|cost_info|table_name|r_loops|estimated_rows|estimated_total_cost|actual_rows)"\s*:`)
)

// plainJSON takes off what a client prints around a line of a value.
func plainJSON(text string) string {
	text = strings.TrimSpace(strings.ReplaceAll(text, `\n`, " ")) // mysql writes it so into a pipe
	text = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(text, "|"), "|"))
	for _, name := range []string{"EXPLAIN:", "ANALYZE:"} {
		text = strings.TrimSpace(strings.TrimPrefix(text, name))
	}
	return strings.TrimSpace(strings.TrimSuffix(text, "+"))
}

// longestPlan bounds how many lines one plan has.
const longestPlan = 20000

func claimJSONPlan(lines []paste.Line) int {
	n, depth, known, sure := 0, 0, false, false
	cut := strings.HasPrefix(strings.TrimSpace(lines[0].Text), `"`) // its start was cut off
	if cut && !planKeys.MatchString(lines[0].Text) && !planSure.MatchString(lines[0].Text) {
		return 0
	}
	for i, l := range lines[:min(len(lines), longestPlan)] {
		text := plainJSON(l.Text)
		if i > 0 && l.Command != "" {
			break
		}
		if text == "" || depth == 0 && (planHead.MatchString(text) || planRuler.MatchString(text)) {
			if known || i > 5 {
				break
			}
			continue
		}
		if n == 0 && !strings.Contains(`[{"`, text[:1]) || !strings.Contains(`[]{}"-0123456789tfn,`, text[:1]) {
			break
		}
		n = i + 1
		known = known || planKeys.MatchString(text)
		sure = sure || planSure.MatchString(text)
		if depth += nesting(text); depth <= 0 && !cut {
			break
		}
	}
	if !known || !sure {
		return 0
	}
	for end := n; end < min(len(lines), n+2) && lines[end].Command == ""; end++ { // what a client prints below
		if text := strings.TrimSpace(lines[end].Text); pgRows.MatchString(text) ||
			rowsInSet.MatchString(text) || len(text) > 3 && strings.Trim(text, "+-") == "" {
			n = end + 1
		}
	}
	return n
}

// nesting is how many brackets outside of strings a line opens and leaves open.
func nesting(text string) (n int) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			n++
		case c == '}' || c == ']':
			n--
		}
	}
	return n
}

// deepest bounds how deep a plan is read.
const deepest = 200

// loose reads the next value. Of one that was cut off it gives what is there, and false.
func loose(d *json.Decoder, depth int) (any, bool) {
	t, err := d.Token()
	if err != nil || depth > deepest {
		return nil, false
	}
	switch t {
	case json.Delim('{'):
		m := map[string]any{}
		for d.More() {
			key, err := d.Token()
			name, ok := key.(string)
			if err != nil || !ok {
				return m, false
			}
			v, whole := loose(d, depth+1)
			if m[name] = v; !whole {
				return m, false
			}
		}
		_, err := d.Token()
		return m, err == nil
	case json.Delim('['):
		var list []any
		for d.More() {
			v, whole := loose(d, depth+1)
			if list = append(list, v); !whole {
				return list, false
			}
		}
		_, err := d.Token()
		return list, err == nil
	}
	return t, true
}

// planOf is a plan's value. A paste may start within it: then what stands before the first key is
// made up.
func planOf(lines []paste.Line) (any, bool) {
	var b strings.Builder
	for _, l := range lines {
		text := plainJSON(l.Text)
		switch {
		case b.Len() > 0 || strings.HasPrefix(text, "{") || strings.HasPrefix(text, "["):
		case strings.HasPrefix(text, `"`):
			b.WriteString("{")
		default:
			continue
		}
		b.WriteString(text + "\n")
	}
	return loose(json.NewDecoder(strings.NewReader(b.String())), 0)
}

func readJSONPlan(p *attach.Part) attach.Reading {
	v, whole := planOf(p.Lines)
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	m, _ := v.(map[string]any)
	r := &result{}
	if !whole {
		r.Flaws = append(r.Flaws, "the plan is cut off: its last nodes are not in it")
	}
	if _, ok := m["Node Type"]; ok {
		m = map[string]any{"Plan": m}
	}
	if root, ok := m["Plan"].(map[string]any); ok {
		t := planTimes{plan: float(m, "Planning Time") / 1e3, total: float(m, "Execution Time") / 1e3}
		nodes := pgNodes(nil, root, 0, 1, &t.io)
		t.io /= launched(root) + 1 // it is added up over those that read at the same time
		cteTimes(nodes)
		return t.tell(r, "PostgreSQL", nodes)
	}
	t := planTimes{}
	nodes := mysqlNodes(nil, m, "", 0)
	if len(nodes) == 0 {
		r.Title = "plan as JSON, cut off"
		r.Means = "No node of the plan is in it."
		return r.done(attach.CannotTell)
	}
	return t.tell(r, "MySQL", nodes)
}

func float(m map[string]any, keys ...string) float64 {
	for _, k := range keys {
		if f, ok := m[k].(float64); ok && !math.IsInf(f, 0) && math.Abs(f) < 1e15 {
			return f
		}
	}
	return 0
}

func word(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// pgNodes lists the nodes of a plan of PostgreSQL.
// Workers run their loops at the same time: workers is how many did so above it.
func pgNodes(out []*node, m map[string]any, depth int, workers float64, io *float64) []*node {
	n := &node{name: cmp.Or(word(m, "Node Type"), "a node"), depth: depth,
		est: float(m, "Plan Rows"), act: -1, total: -1}
	if index := word(m, "Index Name"); index != "" {
		n.name += " using " + index
	}
	if table := cmp.Or(word(m, "Relation Name"), word(m, "CTE Name")); table != "" {
		n.name += " on " + table
	}
	if name, ok := strings.CutPrefix(word(m, "Subplan Name"), "CTE "); ok {
		n.cte = name
	}
	if _, ok := m["Actual Loops"]; ok {
		n.act, n.loops = float(m, "Actual Rows"), float(m, "Actual Loops")
	}
	if _, ok := m["Actual Total Time"]; ok {
		n.total = float(m, "Actual Total Time") / 1e3 * max(1, n.loops) / min(workers, max(1, n.loops))
	}
	if launched := float(m, "Workers Launched"); launched > 0 {
		workers = launched + 1
	}
	*io = max(*io, float(m, "I/O Read Time", "Shared I/O Read Time")/1e3)
	out = append(out, n)
	children, _ := m["Plans"].([]any)
	below := 0.0
	for _, c := range children {
		if c, ok := c.(map[string]any); ok {
			at := len(out)
			out = pgNodes(out, c, depth+1, workers, io)
			if out[at].cte == "" {
				below += max(0, out[at].total)
			}
			n.cut = n.cut || out[at].act < 0 && out[at].total < 0
		}
	}
	n.cut = n.cut || lacks(word(m, "Node Type"), len(children))
	n.self = max(0, n.total-below)
	return out
}

// launched is the largest number of workers below a node of PostgreSQL.
func launched(m map[string]any) float64 {
	most := max(0, float(m, "Workers Launched"))
	children, _ := m["Plans"].([]any)
	for _, c := range children {
		if c, ok := c.(map[string]any); ok {
			most = max(most, launched(c))
		}
	}
	return most
}

// mysqlNodes lists the tables of a plan of MySQL or MariaDB, and the operations of newer ones.
func mysqlNodes(out []*node, v any, key string, depth int) []*node {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = mysqlNodes(out, e, key, depth)
		}
	case map[string]any:
		if n := mysqlNode(v, key, depth); n != nil {
			out = append(out, n)
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = mysqlNodes(out, v[k], k, depth+1)
		}
	}
	return out
}

// mysqlNode is a table or an operation; nil: an object is neither.
func mysqlNode(m map[string]any, key string, depth int) *node {
	n := &node{depth: depth, act: -1, total: -1}
	switch {
	case word(m, "table_name") != "" && key == "table":
		n.name = cmp.Or(word(m, "access_type"), "access") + " of " + word(m, "table_name")
		n.est = float(m, "rows_examined_per_scan", "rows", "rows_examined_per_join")
		if _, ok := m["r_rows"]; ok {
			n.act, n.loops = float(m, "r_rows"), float(m, "r_loops")
		}
		if _, ok := m["r_table_time_ms"]; ok {
			n.total = (float(m, "r_table_time_ms") + float(m, "r_other_time_ms")) / 1e3
		} else if _, ok := m["r_total_time_ms"]; ok {
			n.total = float(m, "r_total_time_ms") / 1e3
		}
		n.self = max(0, n.total)
	case word(m, "operation") != "":
		n.name, n.est = word(m, "operation"), float(m, "estimated_rows")
		if _, ok := m["actual_last_row_ms"]; ok {
			n.act, n.loops = float(m, "actual_rows"), float(m, "actual_loops")
			n.total = float(m, "actual_last_row_ms") / 1e3 * max(1, n.loops)
			n.self = n.total
			inputs, _ := m["inputs"].([]any)
			for _, c := range inputs {
				if c, ok := c.(map[string]any); ok {
					n.self -= float(c, "actual_last_row_ms") / 1e3 * max(1, float(c, "actual_loops"))
				}
			}
			n.self = max(0, n.self)
		}
	case key == "query_block" && depth <= 1:
		if _, ok := m["r_total_time_ms"]; !ok {
			return nil
		}
		n.name, n.total, n.loops = "the statement", float(m, "r_total_time_ms")/1e3, 1
	default:
		return nil
	}
	return n
}

// planTimes are times of a plan in seconds; 0: it has none.
type planTimes struct {
	total, plan, io float64
	mysql           bool
	more            besides
	topless         bool // its first nodes are cut off, so total is of a node that runs in a loop
}

// again is the command that runs the statement once more, and analyze the one that counts rows.
func (t planTimes) again() (again, analyze string) {
	if t.mysql {
		return "EXPLAIN ANALYZE again", "ANALYZE TABLE"
	}
	return "EXPLAIN (ANALYZE, BUFFERS) again", "ANALYZE"
}

// tell says what a plan says.
func (t planTimes) tell(r *result, name string, nodes []*node) attach.Reading {
	for _, n := range nodes {
		if t.total == 0 {
			t.total = max(0, n.total)
		}
	}
	if t.total == 0 {
		unrun(r, name, nodes)
		return r.done(attach.CannotTell)
	}
	r.Title = fmt.Sprintf("%s EXPLAIN ANALYZE as JSON, %s, %s", name, attach.Plural(len(nodes), "node"), dur(t.total))
	return t.run(r, nodes)
}
