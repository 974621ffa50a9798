package profiler

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// A bpfTool is a tool of the BPF collections which prints a line for each event, or a table. It is
// known by the names of its columns.
type bpfTool struct {
	name   string
	has    string // columns of which all are there
	most   int    // columns at most; 0: any
	read   func(t *bpfTable) attach.Reading
	unlike string // a column that it has not
}

var bpfTools = []bpfTool{
	{name: "drsnoop", has: "LAT(ms) PAGES", read: readReclaims},
	{name: "biosnoop", has: "DISK LAT(ms)", read: readBlockIO},
	{name: "slow file calls", has: "LAT(ms) FILENAME", read: readSlowFiles},
	{name: "slow functions", has: "LAT(us) RVAL FUNC", read: readSlowFunctions},
	{name: "slow functions", has: "LAT(ms) RVAL FUNC", read: readSlowFunctions},
	{name: "runqslower", has: "LAT(us) COMM", read: readSlowQueue},
	{name: "biotop", has: "DISK AVGms", read: readBlockTop},
	{name: "tcplife", has: "TX_KB RX_KB MS", read: readSessions},
	{name: "tcpconnlat", has: "LAT(ms) DADDR", read: readConnects},
	{name: "opensnoop", has: "FD ERR PATH", read: readOpens},
	{name: "opensnoop", has: "COMM PID FD FILE", most: 5, read: readOpens},
	{name: "iosnoop", has: "TYPE DEV LATms", read: readOldBlockIO},
	{name: "tcpretrans", has: "LADDR:LPORT RADDR:RPORT STATE", read: readRetransmits},
	{name: "execsnoop", has: "PID ARGS", read: readExecs},
	{name: "syscount", has: "SYSCALL COUNT", read: readCounts},
	{name: "funccount", has: "FUNC COUNT", most: 2, read: readCounts},
	{name: "counts by process", has: "PID COMM COUNT", most: 3, read: readCounts},
	{name: "llcstat", has: "REFERENCE MISS HIT%", read: readCache},
	{name: "hardirqs", has: "HARDIRQ", most: 3, read: readInterrupts},
	{name: "softirqs", has: "SOFTIRQ", most: 3, read: readInterrupts},
	{name: "cachestat", has: "HITS MISSES DIRTIES", read: readCache},
	{name: "gethostlatency", has: "HOST PID", read: readOutside},
	{name: "slow queries", has: "MS QUERY", read: readOutside},
	{name: "filetop", has: "READS WRITES R_Kb", read: readCounts},
	{name: "vfsstat", has: "READ/s WRITE/s", read: readCounts},
	{name: "tcptop", has: "RADDR RX_KB TX_KB", unlike: "MS", read: readSessions},
	{name: "tcpstates", has: "OLDSTATE MS", read: readSessions},
	{name: "tcpconnect", has: "PID SADDR DADDR DPORT", read: readSessions},
	{name: "tcpdrop", has: "SADDR:SPORT DADDR:DPORT", read: readRetransmits},
	{name: "ugc", has: "START TIME(us) DESCRIPTION", read: readPauses},
	{name: "trace", has: "PID COMM FUNC", read: readEvents},
	{name: "argdist", has: "COUNT EVENT", most: 2, read: readEvents},
	{name: "compactsnoop", has: "ORDER MODE LAT(ms) STATUS", read: readCompactions},
	{name: "exitsnoop", has: "PCOMM AGE(s) EXIT_CODE", read: readListed},
	{name: "killsnoop", has: "SIG TPID RESULT", read: readListed},
	{name: "capable", has: "COMM CAP NAME AUDIT", read: readListed},
	{name: "dcsnoop", has: "PID COMM T FILE", most: 5, read: readListed},
	{name: "filelife", has: "COMM AGE(s) FILE", read: readListed},
	{name: "tcpaccept", has: "COMM IP RADDR RPORT LADDR LPORT", unlike: "MS", read: readListed},
	{name: "klockstat", has: "Caller AvgSpin Count", read: readKernelLocks},
	{name: "klockstat", has: "Caller AvgHold Count", read: readKernelLocks},
	{name: "klockstat", has: "Caller AvgWait Count", read: readKernelLocks},
}

// bpfTables are the kinds of these tools: one of each name.
func bpfTables() []*attach.Kind {
	var out []*attach.Kind
	for i := range bpfTools {
		tool := &bpfTools[i]
		first := strings.Fields(oneWord.Replace(tool.has))[0]
		if at := slices.IndexFunc(out, func(k *attach.Kind) bool { return k.Name == tool.name }); at >= 0 {
			out[at].Hints = append(out[at].Hints, first)
			continue
		}
		out = append(out, &attach.Kind{
			Name:  tool.name,
			Hints: []string{first, "Tracing ", "Ctrl"},
			Claim: func(lines []paste.Line) int { return claimTable(tool.name, lines) },
			Read: func(p *attach.Part) attach.Reading {
				t := readTable(tool, p)
				return tool.read(t)
			},
		})
	}
	return out
}

// twoWords are names of columns with a blank.
var twoWords = strings.NewReplacer("TIME (us)", "TIME(us)", "TIME (ms)", "TIME(ms)", "PREV COMM", "PREV-COMM", "PREV PID", "PREV-PID", "Avg Spin", "AvgSpin", "Max spin", "MaxSpin",
	"Total spin", "TotalSpin", "Avg Hold", "AvgHold", "Max hold", "MaxHold", "Total hold", "TotalHold", "Avg Wait", "AvgWait", "Max Wait", "MaxWait", "Total Wait", "TotalWait",
	"STATE (FLAGS)", "STATE", "REASON (CODE)", "REASON", "LATms", "LATms")

// oneWord undoes it, for a hint.
var oneWord = strings.NewReplacer("TIME(us)", "TIME", "AvgSpin", "Avg", "AvgHold", "Avg", "AvgWait", "Avg")

// columnsOf gives the names of the columns if a line is the header of a known tool.
func columnsOf(text string) (*bpfTool, []string) {
	if len(text) > 240 {
		return nil, nil
	}
	columns := strings.Fields(twoWords.Replace(text))
	if len(columns) < 2 {
		return nil, nil
	}
	for i := range bpfTools {
		t := &bpfTools[i]
		all := t.most == 0 || len(columns) <= t.most
		for _, want := range strings.Fields(t.has) {
			all = all && slices.Contains(columns, want)
		}
		if all && (t.unlike == "" || !slices.Contains(columns, t.unlike)) {
			return t, columns
		}
	}
	return nil, nil
}

// restColumns hold all that is left of a line.
var restColumns = words("- EVENT FUNC FILENAME PATH ARGS QUERY HOST FILE DESCRIPTION PREV-COMM STATE REASON")

// commColumns hold a thread's name, which may have blanks.
var commColumns = words("COMM PCOMM NAME CMD C-COMM")

// numberColumns hold numbers.
func numberColumn(name string) bool {
	switch name {
	case "PID", "TID", "PPID", "FD", "ERR", "RET", "COUNT", "Count", "PAGES", "BYTES", "OFF_KB", "MS", "LATms", "AVGms", "HITS", "MISSES", "DIRTIES", "REFERENCE", "MISS", "TX_KB", "RX_KB",
		"READS", "WRITES", "Kbytes", "MAJ", "MIN", "CPU", "TIME(s)", "TIME(ms)", "TIME(us)":
		return true
	}
	return strings.HasPrefix(name, "LAT(") || strings.HasPrefix(name, "QUE(") || strings.HasPrefix(name, "TOTAL_") || strings.HasSuffix(name, "/s") || strings.HasPrefix(name, "Avg") ||
		strings.HasPrefix(name, "Max") || strings.HasPrefix(name, "Total")
}

// rowOf divides a row by the columns: those before a thread's name from the left, the others after
// it.
func rowOf(columns []string, text string) map[string]string {
	fields := strings.Fields(text)
	if len(fields) < len(columns)-1 || len(fields) > 256 {
		return nil
	}
	comm := slices.IndexFunc(columns, func(c string) bool { return commColumns[c] })
	if comm < 0 {
		return fit(columns, fields, -1, 1)
	}
	for words := range 4 {
		if row := fit(columns, fields, comm, words+1); row != nil {
			return row
		}
	}
	return nil
}

// fit gives the row if a thread's name has this many words.
func fit(columns, fields []string, comm, words int) map[string]string {
	row := map[string]string{}
	at := 0
	for i, c := range columns {
		n := 1
		if i == comm {
			n = words
		}
		if restColumns[c] && i == len(columns)-1 {
			row[c] = strings.Join(fields[min(at, len(fields)):], " ")
			return row
		}
		if at+n > len(fields) {
			return nil
		}
		value := strings.Join(fields[at:at+n], " ")
		at += n
		if numberColumn(c) {
			if _, ok := number(value); !ok && value != "-" && !strings.HasPrefix(value, "0x") {
				return nil
			}
		}
		row[c] = value
	}
	if at != len(fields) && !restColumns[columns[len(columns)-1]] {
		return nil
	}
	return row
}

// tableNote reports whether a line may stand in a table beside its rows.
func tableNote(text string) bool {
	return preamble(text) || clockLine.MatchString(strings.Trim(text, "[]")) || strings.Contains(text, "loadavg:") || strings.HasPrefix(text, "Detaching") || strings.HasPrefix(text, "Total References:") ||
		strings.HasPrefix(text, "Printing ") || strings.HasPrefix(text, "Tracing ") || text == "[...]" || text == "..." || strings.HasPrefix(text, "Top ") && strings.Contains(text, "syscalls") ||
		strings.HasPrefix(text, "Buffers MB:") || len(text) > 2 && strings.Contains("pruth", text[:1]) && text[1] == ':' || strings.HasPrefix(text, "Summarize")
}

func claimTable(name string, lines []paste.Line) int {
	first := strings.TrimSpace(lines[0].Text)
	tool, columns := columnsOf(first)
	if tool == nil && !tableNote(first) || tool != nil && tool.name != name {
		return 0
	}
	rows, end, notes := 0, 0, 0
	claimed(lines, func(i int, text string) bool {
		if t, c := columnsOf(text); t != nil {
			if t.name != name {
				return false
			}
			tool, columns = t, c
			return true
		}
		switch {
		case tableNote(text):
			notes++
			return rows > 0 || notes < 6
		case tool == nil:
			return false
		case rowOf(columns, text) != nil:
			rows++
			end = i + 1
			return true
		}
		return false
	})
	if tool == nil {
		return 0
	}
	if rows == 0 { // a table without events says something too
		if _, c := columnsOf(first); c != nil && first != "" {
			return 1
		}
		return 0
	}
	return end
}

// bpfTable is the rows of a tool.
type bpfTable struct {
	name    string
	columns []string
	rows    []map[string]string
	heads   int // how often the header stands, or a time: intervals
}

func readTable(tool *bpfTool, p *attach.Part) *bpfTable {
	t := &bpfTable{name: tool.name}
	for _, text := range texts(p) {
		if got, c := columnsOf(text); got != nil {
			t.columns = c
			t.heads++
			continue
		}
		if t.columns == nil || tableNote(text) || len(t.rows) >= most {
			continue
		}
		if row := rowOf(t.columns, text); row != nil {
			t.rows = append(t.rows, row)
		}
	}
	return t
}

// has reports whether there is such a column.
func (t *bpfTable) has(column string) bool { return slices.Contains(t.columns, column) }

// num reads a column of a row.
func num(row map[string]string, column string) float64 {
	f, _ := number(row[column])
	return f
}

// owner is the program of a row.
func owner(row map[string]string) string {
	for _, c := range []string{"COMM", "PCOMM", "NAME", "CMD", "C-COMM"} {
		if row[c] != "" {
			return row[c]
		}
	}
	if row["PID"] != "" {
		return "PID " + row["PID"]
	}
	return ""
}

// span is the time over which the rows came, in seconds; 0 if no column says it.
func (t *bpfTable) span() float64 {
	if len(t.rows) < 2 {
		return 0
	}
	first, last := timeOf(t.rows[0]), timeOf(t.rows[len(t.rows)-1])
	if first < 0 || last <= first {
		return 0
	}
	return last - first
}

// timeOf is a row's time in seconds, by whatever clock; -1: none.
func timeOf(row map[string]string) float64 {
	if s, ok := row["TIME(s)"]; ok {
		f, _ := number(s)
		return f
	}
	if s, ok := row["TIME(ms)"]; ok {
		f, _ := number(s)
		return f / 1000
	}
	parts := strings.Split(row["TIME"], ":")
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
