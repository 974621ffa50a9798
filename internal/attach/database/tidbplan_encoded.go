package database

import (
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// Plans that are not in lines: escaped, as a log has them, or packed, as TiDB's slow log has them.

// isEscapedPlan reports whether a line holds the rows of a plan, with \n and \t for their ends.
func isEscapedPlan(text string) bool {
	if !strings.Contains(text, `\n`) || !strings.Contains(text, `\t`) || len(text) > 1<<18 {
		return false
	}
	rows := 0
	for _, l := range unescapedPlan(text) {
		if isPlanRow(l.Text) {
			rows++
		}
	}
	return rows > 1
}

// unescapedPlan is a plan's rows as lines.
func unescapedPlan(text string) (out []paste.Line) {
	for _, row := range strings.Split(text, `\n`) {
		out = append(out, paste.Line{Text: strings.ReplaceAll(row, `\t`, "\t")})
	}
	return out
}

// planLines is a plan in lines of its own.
func planLines(lines []paste.Line) []paste.Line {
	if len(lines) == 1 && isEscapedPlan(lines[0].Text) {
		return unescapedPlan(lines[0].Text)
	}
	return lines
}

var planCall = pattern.New(`\btidb_decode_plan\('([A-Za-z0-9+/=]{8,})'\)`)

// mostPlan bounds a decoded plan.
const mostPlan = 1 << 20

// decodedPlan is the plan that a slow log has as tidb_decode_plan('...'): base64 of a block of
// snappy, whose lines are depth, operator, task, estimate and operator info, and rows, execution
// info, memory and disk where the statement was measured. It is nil where a part is cut off.
func decodedPlan(text string) (lines []paste.Line) {
	m := planCall.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	packed, err := base64.StdEncoding.DecodeString(m[1])
	if err != nil {
		return nil
	}
	plain, ok := unsnap(packed)
	if !ok {
		return nil
	}
	rows := strings.Split(strings.TrimRight(string(plain), "\n"), "\n")
	old := oldPlanIDs(rows)
	head := []string{"id", "task", "estRows", "operator info", "actRows", "execution info", "memory", "disk"}
	for i, row := range rows {
		f := strings.Split(row, "\t")
		if len(f) < 5 {
			return nil
		}
		if i == 0 {
			lines = append(lines, paste.Line{Text: strings.Join(head[:min(len(head), len(f)-1)], "\t")})
		}
		depth, err := strconv.Atoi(f[0])
		name := planName(f[1], old)
		if err != nil || depth < 0 || depth > 200 || name == "" {
			return nil
		}
		if depth > 0 {
			name = strings.Repeat("  ", depth-1) + "└─" + name
		}
		task := "root"
		switch {
		case f[2] == "1_1":
			task = "cop[tiflash]"
		case f[2] == "1_2":
			task = "cop[tidb]"
		case f[2] != "0":
			task = "cop[tikv]"
		}
		f[1], f[2] = name, task
		lines = append(lines, paste.Line{Text: strings.Join(f[1:], "\t")})
	}
	return lines
}

// planNames are operators by the numbers that TiDB gives them from 4.0 on.
var planNames = []string{"", "Selection", "Set", "Projection", "Aggregation", "StreamAgg", "HashAgg",
	"Show", "Join", "Union", "TableScan", "MemTableScan", "UnionScan", "IndexScan", "Sort", "TopN",
	"Limit", "HashJoin", "MergeJoin", "IndexJoin", "IndexMergeJoin", "IndexHashJoin", "Apply",
	"MaxOneRow", "Exists", "TableDual", "SelectLock", "Insert", "Update", "Delete", "IndexLookUp",
	"TableReader", "IndexReader", "Window", "TiKVSingleGather", "IndexMerge", "Point_Get",
	"ShowDDLJobs", "Batch_Point_Get", "ClusterMemTableReader", "DataSource", "LoadData",
	"TableSample", "TableFullScan", "TableRangeScan", "TableRowIDScan", "IndexFullScan",
	"IndexRangeScan", "ExchangeReceiver", "ExchangeSender", "CTEFullScan", "CTE", "CTETable",
	"PartitionUnion", "Shuffle", "ShuffleReceiver", "Foreign_Key_Check", "Foreign_Key_Cascade",
	"Expand", "ImportInto", "ScalarSubQuery"}

// planName is an operator's name, of its number and that of its node; "": it has none. Before 4.0
// hash joins had two numbers, so those behind them are one larger.
func planName(id string, old bool) string {
	kind, node, _ := strings.Cut(id, "_")
	n, err := strconv.Atoi(kind)
	if old && n > 17 {
		n--
	}
	if err != nil || n < 1 || n >= len(planNames) {
		return ""
	}
	if node == "" {
		return planNames[n]
	}
	return planNames[n] + "_" + node
}

// oldPlanIDs reports whether readers have the numbers of TiDB 3: what they read is in their info.
func oldPlanIDs(rows []string) bool {
	for _, row := range rows {
		f := strings.Split(row, "\t")
		if len(f) > 4 && (strings.HasPrefix(f[1], "32_") && strings.HasPrefix(f[4], "data:") ||
			strings.HasPrefix(f[1], "33_") && strings.HasPrefix(f[4], "index:")) {
			return true
		}
	}
	return false
}

// unsnap unpacks a block of snappy: its length, and elements that are bytes of their own or copies
// of what stands before.
func unsnap(in []byte) ([]byte, bool) {
	size, n := binary.Uvarint(in)
	if n <= 0 || size > mostPlan {
		return nil, false
	}
	in = in[n:]
	out := make([]byte, 0, size)
	for len(in) > 0 {
		tag := in[0]
		length, offset, used := int(tag>>2)+1, 0, 1
		switch tag & 3 {
		case 0: // bytes
			if extra := length - 60; extra > 0 { // the length stands in so many bytes behind
				if length, used = 0, 1+extra; len(in) < used {
					return nil, false
				}
				for i := range extra {
					length |= int(in[1+i]) << (8 * i)
				}
				length++
			}
			if length < 0 || len(in)-used < length {
				return nil, false
			}
			out = append(out, in[used:used+length]...)
			in = in[used+length:]
			if len(out) > int(size) {
				return nil, false
			}
			continue
		case 1:
			length, used = int(tag>>2&7)+4, 2
		case 2:
			used = 3
		case 3:
			used = 5
		}
		if len(in) < used {
			return nil, false
		}
		for i := range used - 1 {
			offset |= int(in[1+i]) << (8 * i)
		}
		if tag&3 == 1 {
			offset |= int(tag>>5) << 8
		}
		if offset <= 0 || offset > len(out) || len(out)+length > int(size) {
			return nil, false
		}
		for range length {
			out = append(out, out[len(out)-offset])
		}
		in = in[used:]
	}
	return out, len(out) == int(size)
}
