package database

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// mysqlPlan reads MySQL's EXPLAIN ANALYZE, and EXPLAIN FORMAT=TREE: "-> Table scan on t
// (cost=0.35 rows=1) (actual time=0.02..0.03 rows=1 loops=1)". The cost is one number there, and
// numbers may be 1.5e+6.
var mysqlPlan = &attach.Kind{
	Name:    "MySQL plan",
	Hints:   []string{"-> ", ". row *", "+--", "| EXPLAIN"},
	Claim:   claimMySQLPlan,
	Reports: true, // each is of one statement
	Apart:   func(l paste.Line) bool { return treeDepth(l.Text) <= len("| ") },
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
	mysqlBranch = pattern.New(`^[\s|]*(?:[*•] +)?(?:EXPLAIN: )?(-> )(\S.*?)\s*(?:\(cost=([\d.e+-]+)(?:\.\.[\d.e+-]+)? rows=([\d.e+-]+)\))?\s*(?:\(actual time=([\d.e+-]+)\.\.([\d.e+-]+) rows=([\d.e+-]+) loops=([\d.e+-]+)\)|\(never executed\))?\s*\|?\s*$`)
	mysqlCost   = pattern.New(`\(cost=[\d.e+-]+ rows=[\d.e+-]+\)`)
	mysqlActual = pattern.New(`\(actual time=[\d.e+-]+\.\.[\d.e+-]+ rows=[\d.e+-]+ loops=[\d.e+-]+\)|\(never executed\)`)
	mysqlOps    = pattern.New(`-> (?:Nested loop|Inner hash join|Left hash join|Hash|Table scan on|Index (?:scan|lookup|range scan)|Covering index|Single-row|Filter:|Sort(?::| row)|Limit:|Aggregate|Group|Materialize|Stream results|Select #|Append|Constant row|Zero rows|Rows fetched|Temporary table|Union|Fill information schema|Remove duplicate|Window|Batched|Intersect|Insert into|Update |Delete from|Multi-range|Index skip|Common table|Weedout|Alternative)`)
)

// isMySQLNode asks for what only MySQL's tree has: its operators, or a cost of one number.
func isMySQLNode(text string) bool {
	return strings.Contains(text, "-> ") && mysqlBranch.MatchString(text) && !strings.Contains(text, " width=") &&
		(mysqlCost.MatchString(text) || mysqlOps.MatchString(text) && mysqlActual.MatchString(text))
}

// mysqlTree reports whether the first of some lines starts MySQL's tree.
func mysqlTree(lines []paste.Line) bool { return isMySQLNode(lines[0].Text) }

// treeHead is how many lines stand in front of a tree, as the client prints a column: none, the
// number of the row, or the column's name in a box.
func treeHead(lines []paste.Line) int {
	for i, l := range lines[:min(len(lines), 4)] {
		t := strings.TrimSpace(l.Text)
		switch {
		case isMySQLNode(l.Text):
			return i
		case i > 0 && l.Command != "", !innoRow.MatchString(t) && !planRule.MatchString(t) &&
			strings.Trim(t, " |") != "EXPLAIN":
			return 0
		}
	}
	return 0
}

// treeDepth is where a node's arrow stands; -1: there is none. The name of the column in front of
// it takes no place.
func treeDepth(text string) int {
	if strings.HasPrefix(strings.TrimLeft(text, " |"), "EXPLAIN: ") {
		return 0
	}
	return strings.Index(text, "-> ")
}

// nextTree reports whether a node that stands where the plan's first one does is the first of the
// next plan. Selects of their own stand there as well; and where no node of the plan stands further
// to the right, the indentation was lost.
func nextTree(text string, root, deepest int) bool {
	return deepest > root && treeDepth(text) <= root && !strings.Contains(text, "-> Select #")
}

func claimMySQLPlan(lines []paste.Line) int {
	n, nodes, root, deepest := 0, 0, 0, 0
	head := treeHead(lines)
	for i, l := range lines {
		if i < head {
			continue
		}
		text := strings.TrimSpace(l.Text)
		own := isMySQLNode(l.Text)
		if nodes > 0 && strings.Contains(l.Text, "-> ") && (strings.HasPrefix(text, "EXPLAIN: ") ||
			own && nextTree(l.Text, root, deepest)) {
			return n
		}
		switch {
		case i > 0 && l.Command != "":
			return attach.ClaimIf(nodes > 0, n)
		case own:
			if nodes == 0 {
				root = treeDepth(l.Text)
			}
			deepest = max(deepest, treeDepth(l.Text))
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
		m := mysqlBranch.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		n := &node{name: m[2], depth: treeDepth(l.Text), est: -1, act: -1, total: -1,
			idle: strings.Contains(l.Text, "(never executed)")}
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
