package database

import "github.com/whystall/whystall/internal/format/paste"

// A plan whose indentation was lost on the way still has the order of its nodes, and their times.

// flatNode is the least number of nodes for which equal indentation means a loss.
const flatNode = 3

// flat reports whether all nodes stand at one depth though there are several: a plan has one root.
func flat(nodes []*node) bool {
	if len(nodes) < flatNode {
		return false
	}
	for _, n := range nodes {
		if n.depth != nodes[0].depth {
			return false
		}
	}
	return true
}

// deepen gives the nodes of a flat plan depths again: each is below the nearest one above it that
// took as long or longer. That is a guess where two branches took alike.
func deepen(nodes []*node) bool {
	if !flat(nodes) {
		return false
	}
	var above []*node // the branch down to the last node
	for _, n := range nodes {
		for len(above) > 1 && n.total > above[len(above)-1].total && above[len(above)-1].total >= 0 {
			above = above[:len(above)-1]
		}
		n.depth = len(above)
		if n.total >= 0 {
			above = append(above, n)
		}
	}
	for _, n := range nodes {
		n.cut = false
	}
	selfTimes(nodes)
	return true
}

// lostIndentation is what a reading of such a plan says.
const lostIndentation = "Which node is below which: the indentation was lost, and is taken from the times."

// planFlat reports whether the branches of PostgreSQL's plan stand at the start of their lines,
// which they never do as psql prints them.
func planFlat(lines []paste.Line) bool {
	branches := 0
	for _, l := range lines {
		if len(l.Text) > 3 && l.Text[:3] == "-> " {
			branches++
		}
	}
	return branches > 0
}
