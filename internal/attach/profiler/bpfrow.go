package profiler

import (
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// blanks are names of columns with a blank, and what they are here.
var blanks = [][2]string{
	{"TIME (us)", "TIME(us)"}, {"TIME (ms)", "TIME(ms)"}, {"GC TIME", "GC-TIME"},
	{"PREV COMM", "PREV-COMM"}, {"PREV PID", "PREV-PID"}, {"PREV TID", "PREV-TID"},
	{"Avg Spin", "AvgSpin"}, {"Max spin", "MaxSpin"}, {"Total spin", "TotalSpin"},
	{"Avg Hold", "AvgHold"}, {"Max hold", "MaxHold"}, {"Total hold", "TotalHold"},
	{"Max Hold", "MaxHold"}, {"Total Hold", "TotalHold"}, {"Avg Wait", "AvgWait"},
	{"Max Wait", "MaxWait"}, {"Total Wait", "TotalWait"},
	{"STATE (FLAGS)", "STATE"}, {"REASON (CODE)", "REASON"}, {"# ALLOCS", "#ALLOCS"},
	{"# BYTES", "#BYTES"}, {"# CALLS", "#CALLS"},
	{"VQ Name", "VQName"}, {"In SGs", "InSGs"}, {"Out SGs", "OutSGs"}, {"In BW", "InBW"}, {"Out BW", "OutBW"},
}

// twoWords takes the blanks out of names of columns, and asPrinted puts one back.
var twoWords = func() *strings.Replacer {
	var pairs []string
	for _, b := range blanks {
		pairs = append(pairs, b[0], b[1])
	}
	return strings.NewReplacer(pairs...)
}()

func asPrinted(column string) string {
	if strings.HasPrefix(column, "TIME(") { // some have a blank before the unit
		return "TIME"
	}
	for _, b := range blanks {
		if b[1] == column {
			return b[0]
		}
	}
	return column
}

// restColumns hold all that is left of a line.
var restColumns = words("- EVENT FUNC FILENAME PATH ARGS ARGs QUERY HOST FILE DESCRIPTION PREV-COMM STATE REASON CALL COMMAND DATA EXIT_CODE METHOD NAME FUNCTION/ARGS CMDLINE ADDR NEWSTATE")

// nameColumns hold names that may have blanks.
var nameColumns = words("SYSCALL STAGE COMM PCOMM NAME CMD C-COMM Comm CMDLINE")

// numberColumn reports whether a column holds numbers.
func numberColumn(name string) bool {
	switch name {
	case "PID", "TID", "Tid", "PPID", "FD", "ERR", "RET", "COUNT", "Count", "PAGES", "BYTES",
		"OFF_KB", "MS", "LATms", "AVGms", "HITS", "MISSES", "DIRTIES",
		"REFERENCE", "MISS", "TX_KB", "RX_KB", "READS", "WRITES", "Kbytes", "KBYTES", "MAJ", "MIN",
		"CPU", "TIME(s)", "TIME(ms)", "TIME(us)", "GC-TIME", "%RND", "%SEQ",
		"#ALLOCS", "#BYTES", "#CALLS", "ALLOCS", "InSGs", "OutSGs", "InBW", "OutBW", "CONNECTS",
		"RETRANSMITS", "Chgs", "BACKLOG", "RPORT", "LPORT", "SECONDS", "SIZE",
		"NUMA_migrations", "NUMA_migrations_ms", "R_Kb", "W_Kb", "AGE(s)":
		return true
	}
	for _, start := range []string{"LAT(", "QUE(", "TOTAL_", "Avg", "Max", "Total"} {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	return strings.HasSuffix(name, "/s") || strings.HasSuffix(name, "_ms") || strings.HasSuffix(name, "_us")
}

// bpfRow is a row of a table.
type bpfRow struct {
	columns, cells []string
}

// at is what stands in a column; "" where the row has none of this name.
func (r bpfRow) at(column string) string {
	if i := slices.Index(r.columns, column); i >= 0 && i < len(r.cells) {
		return r.cells[i]
	}
	return ""
}

// num reads a column.
func (r bpfRow) num(column string) float64 {
	f, _ := number(r.at(column))
	return f
}

// owner is the program of a row.
func (r bpfRow) owner() string {
	for _, c := range []string{"COMM", "PCOMM", "NAME", "CMD", "C-COMM"} {
		if name := r.at(c); name != "" {
			return name
		}
	}
	if pid := r.at("PID"); pid != "" {
		return "PID " + pid
	}
	return ""
}

// time is a row's time in seconds, by whatever clock; -1: none.
func (r bpfRow) time() float64 {
	switch {
	case slices.Contains(r.columns, "TIME(s)"):
		return r.num("TIME(s)")
	case slices.Contains(r.columns, "TIME(ms)"):
		return r.num("TIME(ms)") / 1000
	}
	return clockOf(r.at("TIME"))
}

// clockOf reads "10:20:30" in seconds; -1: it is no time of day.
func clockOf(text string) float64 {
	parts := strings.Split(strings.TrimSuffix(text, ":"), ":")
	if len(parts) != 3 {
		return -1
	}
	h, _ := number(parts[0])
	m, _ := number(parts[1])
	s, ok := number(parts[2])
	if !ok {
		return -1
	}
	return h*3600 + m*60 + s
}

// withUnit is a time as klockstat prints it, with a blank before its unit.
var withUnit = pattern.New(`\b(\d+(?:\.\d+)?) (ns|us|ms|s|m|h)(\s|$)`)

// rowOf divides a row by the columns: those before a program's name from the left, the others after
// it.
func rowOf(columns []string, text string) (bpfRow, bool) {
	text = strings.Replace(strings.TrimPrefix(text, "^C"), " <-> ", " ", 1)
	if strings.HasPrefix(text, "**") { // a person set it in bold
		text = strings.Trim(text, "*")
	}
	if slices.Contains(columns, "AvgWait") || slices.Contains(columns, "AvgHold") {
		text = withUnit.ReplaceAllString(text, "$1$2$3")
	}
	fields := strings.Fields(text)
	if len(fields) < len(columns)-1 || len(fields) > 256 {
		return bpfRow{}, false
	}
	comm := slices.IndexFunc(columns, func(c string) bool { return nameColumns[c] })
	if comm < 0 && len(columns) > 0 && columns[0] == "TYPE" { // of objects: "block size 64"
		comm = 0
	}
	if comm < 0 {
		return fit(columns, fields, -1, 1)
	}
	for words := range 4 {
		if row, ok := fit(columns, fields, comm, words+1); ok {
			return row, true
		}
	}
	if disk := slices.Index(columns, "DISK"); disk > comm && disk < len(fields) && len(fields) == len(columns)-1 {
		return fit(columns, slices.Insert(slices.Clone(fields), disk, "?"), comm, 1) // a device without a name
	}
	return bpfRow{}, false
}

// fit gives the row if a program's name has this many words.
func fit(columns, fields []string, comm, words int) (bpfRow, bool) {
	row := bpfRow{columns, make([]string, 0, len(columns))}
	at := 0
	for i, c := range columns {
		n := 1
		if i == comm {
			n = words
		}
		if (restColumns[c] || nameColumns[c]) && i == len(columns)-1 && i != comm {
			row.cells = append(row.cells, strings.Join(fields[min(at, len(fields)):], " "))
			return row, true
		}
		if at+n > len(fields) {
			return row, false
		}
		value := fields[at]
		if n > 1 {
			value = strings.Join(fields[at:at+n], " ")
		}
		at += n
		if numberColumn(c) && !isFigure(value) {
			return row, false
		}
		row.cells = append(row.cells, value)
	}
	return row, at == len(fields)
}

// isFigure reports whether a cell may stand in a column of numbers.
func isFigure(value string) bool {
	if value == "-" || value == "LL_MAX" || strings.HasPrefix(value, "0x") {
		return true
	}
	if _, ok := number(value); ok {
		return true
	}
	_, err := time.ParseDuration(value)
	return err == nil
}
