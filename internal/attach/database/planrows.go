package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// What a person wants to know of a plan is how many rows it reads for those that it gives.
const (
	fewestRead = 1000 // of fewer nobody feels the reading
	readForOne = 10   // so many rows read for one that is given are told
)

// readFor says that of a plan; "": it is no large number, or the plan gives no rows by its nature.
// what are rows, or keys of them and of indexes.
func readFor(reader, what string, read, given float64) string {
	if given < 0 || read < fewestRead || read < readForOne*max(1, given) {
		return ""
	}
	rows := "rows"
	if given == 1 {
		rows = "row"
	}
	return fmt.Sprintf("%s read %s %s, and the statement gives %s %s", reader, count(read), what, count(given), rows)
}

// second puts a figure behind the first one.
func (r *result) second(text string) {
	if text != "" {
		r.Figures = slices.Insert(r.Figures, min(1, len(r.Figures)), text)
	}
}

var planChanges = pattern.New(`^(?:Insert|Update|Delete|Replace|Merge|ModifyTable|Import|Load|Foreign_Key|LockRows)`)

// planRead says how much a plan of TiDB read for what it gives. Of keys those count that are no old
// or deleted ones; where most are, that is told by itself.
func planRead(ops []*operator) string {
	if !isPlanRoot(ops[0].text) || planChanges.MatchString(ops[0].name) {
		return ""
	}
	most, read, what := ops[0], -1.0, ""
	for _, o := range ops {
		if o.vain() {
			return ""
		}
		if o.used > read {
			most, read, what = o, o.used, "keys"
			for _, below := range under(ops, o) { // the row above has what all tasks did
				if strings.Contains(below.name, "Scan") && below.task == o.task {
					most = below
				}
			}
		}
		if strings.Contains(o.name, "Scan") && o.act >= read {
			most, read, what = o, o.act, "rows"
		}
	}
	return readFor(most.name, what, read, ops[0].act)
}

// readMost is that of a plan of PostgreSQL or MySQL; "" as well where what it threw away is told.
func readMost(nodes []*node, topless bool) string {
	if topless || planChanges.MatchString(nodes[0].name) {
		return ""
	}
	most, read := nodes[0], -1.0
	for _, n := range nodes {
		if !scanNode.MatchString(n.name) || n.act < 0 {
			continue
		}
		if own := n.act*max(1, n.loops) + n.removed; own > read {
			most, read = n, own
		}
	}
	return readFor(most.name, "rows", read, nodes[0].act*max(1, nodes[0].loops))
}

// scanNode is a node that reads a table or an index.
var scanNode = pattern.New(`(?i)\b(?:scan|lookup)\b`)
