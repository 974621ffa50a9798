package database

import (
	"regexp"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// mysqlPlan reads MySQL's EXPLAIN ANALYZE, and EXPLAIN FORMAT=TREE: "-> Table scan on t
// (cost=0.35 rows=1) (actual time=0.02..0.03 rows=1 loops=1)". The cost is one number there, and
// numbers may be 1.5e+6.
var mysqlPlan = &attach.Kind{
	Name:  "MySQL plan",
	Hints: []string{"-> "},
	Claim: claimMySQLPlan,
	Read: func(p *attach.Part) attach.Reading {
		nodes := parseMySQLPlan(p.Lines)
		lost := deepen(nodes)
		r := readPlanOf("MySQL", nodes, p)
		if lost {
			r.Not = lostIndentation
		}
		return r
	},
}

var (
	mysqlBranch = regexp.MustCompile(`^[\s|]*(?:[*•] +)?(?:EXPLAIN: )?(-> )(\S.*?)\s*(?:\(cost=([\d.e+]+)(?:\.\.[\d.e+]+)? rows=([\d.e+]+)\))?\s*(?:\(actual time=([\d.e+]+)\.\.([\d.e+]+) rows=([\d.e+]+) loops=([\d.e+]+)\)|\(never executed\))?\s*\|?\s*$`)
	mysqlCost   = regexp.MustCompile(`\(cost=[\d.e+]+ rows=[\d.e+]+\)`)
	mysqlActual = regexp.MustCompile(`\(actual time=[\d.e+]+\.\.[\d.e+]+ rows=[\d.e+]+ loops=[\d.e+]+\)|\(never executed\)`)
	mysqlOps    = regexp.MustCompile(`-> (?:Nested loop|Inner hash join|Left hash join|Hash|Table scan on|Index (?:scan|lookup|range scan)|Covering index|Single-row|Filter:|Sort(?::| row)|Limit:|Aggregate|Group|Materialize|Stream results|Select #|Append|Constant row|Zero rows|Rows fetched|Temporary table|Union|Fill information schema|Remove duplicate|Window|Batched|Intersect|Insert into|Update |Delete from|Multi-range|Index skip|Common table|Weedout|Alternative)`)
)

// isMySQLNode asks for what only MySQL's tree has: its operators, or a cost of one number.
func isMySQLNode(text string) bool {
	return strings.Contains(text, "-> ") && mysqlBranch.MatchString(text) && !strings.Contains(text, " width=") &&
		(mysqlCost.MatchString(text) || mysqlOps.MatchString(text) && mysqlActual.MatchString(text))
}

// mysqlTree reports whether the first of some lines starts MySQL's tree.
func mysqlTree(lines []paste.Line) bool { return isMySQLNode(lines[0].Text) }

func claimMySQLPlan(lines []paste.Line) int {
	n, nodes := 0, 0
	for i, l := range lines {
		text := strings.TrimSpace(l.Text)
		switch {
		case i > 0 && l.Command != "":
			return attach.ClaimIf(nodes > 0, n)
		case isMySQLNode(l.Text):
			nodes++
			n = i + 1
		case mysqlBranch.MatchString(l.Text) && strings.Contains(l.Text, "-> ") && mysqlOps.MatchString(l.Text):
			n = i + 1
		case nodes > 0 && (rowsInSet.MatchString(text) || planRule.MatchString(l.Text) || text == "|"):
			n = i + 1
		default:
			return attach.ClaimIf(nodes > 0, n)
		}
	}
	return attach.ClaimIf(nodes > 0, n)
}

func parseMySQLPlan(lines []paste.Line) (nodes []*node) {
	for _, l := range lines {
		at := mysqlBranch.FindStringSubmatchIndex(l.Text)
		m := mysqlBranch.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		n := &node{name: m[2], depth: at[2], est: -1, act: -1, total: -1, idle: strings.Contains(l.Text, "(never executed)")}
		if strings.HasPrefix(strings.TrimLeft(l.Text, " |"), "EXPLAIN: ") {
			n.depth = 0
		}
		if v, ok := number(m[4]); ok && m[4] != "" {
			n.est = v
		}
		if m[8] != "" {
			n.act, _ = number(m[7])
			n.loops, _ = number(m[8])
			if v, ok := number(m[6]); ok {
				n.total = v / 1e3 * max(1, n.loops)
			}
		}
		nodes = append(nodes, n)
	}
	selfTimes(nodes)
	return nodes
}
