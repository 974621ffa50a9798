package systool

import (
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// sysstatBanner is the first line of all tools of sysstat. Old versions lack what follows the date.
var sysstatBanner = pattern.New(`^Linux (\S+) \(([^)]*)\)\s+\S.*?(?:\s+_\S+_)?(?:\s*\((\d+) CPU\))?$`)

// banner takes the first line of sysstat's tools apart; nil: it is none.
func banner(text string) []string {
	if !strings.HasPrefix(strings.TrimSpace(text), "Linux ") {
		return nil
	}
	return sysstatBanner.FindStringSubmatch(strings.Join(fields(text), " "))
}

// sysstatTime takes the time, or the word for an average, from the start of a row. The word differs
// by language, and it ends with a colon: Average:, Durchschn.:, Moyenne :.
func sysstatTime(f []string) (at string, average bool, rest []string, ok bool) {
	if len(f) < 2 {
		return "", false, nil, false
	}
	if f[0] == "#" { // pidstat -h writes the name Time.
		if f[1] == "Time" || f[1] == "PID" || f[1] == "UID" {
			return "", false, slices.DeleteFunc(slices.Clone(f[1:]), func(s string) bool { return s == "Time" }), true
		}
		return "", false, nil, false
	}
	first := f[0]
	if !strings.ContainsAny(first, "0123456789") {
		switch {
		case strings.ContainsAny(first, "/%"): // a name of a column, of which somebody says what it is
		case len(first) > 2 && strings.HasSuffix(first, ":") && first != "avg-cpu:" && first != "Device:":
			return "", true, f[1:], true
		case f[1] == ":" && len(f) > 2:
			return "", true, f[2:], true
		}
		return "", false, nil, false
	}
	if len(f) > 3 && strings.HasSuffix(first, "시") && strings.HasSuffix(f[1], "분") { // Korean has blanks in it
		first, f = first+f[1]+f[2], f[2:]
	}
	if !clockTime(first) {
		return "", false, nil, false
	}
	if slices.Contains([]string{"AM", "PM", "am", "pm"}, f[1]) {
		return first + " " + f[1], false, f[2:], len(f) > 2
	}
	if zone(f[1]) && len(f) > 2 {
		return first, false, f[2:], true
	}
	return first, false, f[1:], true
}

// zone reports whether a word is a time zone, as some locales print it behind the time.
func zone(s string) bool {
	if len(s) < 3 || len(s) > 5 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return false
	}
	return !slices.Contains([]string{"PID", "UID", "CPU", "DEV", "TTY", "BUS", "INTR", "NODE",
		"TGID", "TID", "IFACE", "USER"}, s)
}

// clockTime knows 13:41:28, 13时41分28秒, 下午01时41分28秒, and the seconds since 1970 that old
// versions of pidstat -h write.
func clockTime(s string) bool {
	s, _ = halfDay(s)
	if s == "" || s[0] < '0' || s[0] > '9' {
		return false
	}
	if n, ok := whole(s); ok {
		return n > 1e9 && n < 1e10
	}
	if strings.Count(s, ":") == 2 {
		return len(s) <= 8 && strings.Trim(s, "0123456789:") == ""
	}
	return strings.HasSuffix(s, "秒") || strings.HasSuffix(s, "초")
}

// halfDay takes the Chinese word for the half of the day off a time; later: it is the second one.
func halfDay(s string) (rest string, later bool) {
	if rest, later = strings.CutPrefix(s, "下午"); later {
		return rest, true
	}
	return strings.TrimPrefix(s, "上午"), false
}

// seconds of the day of a row's time; false where it cannot be told.
func seconds(at string) (float64, bool) {
	at, later := halfDay(at)
	if n, ok := whole(at); ok {
		return float64(n), true
	}
	for _, layout := range []string{"15:04:05", "03:04:05 PM", "15时04分05秒", "15時04分05秒", "15시04분05초"} {
		if t, err := time.Parse(layout, at); err == nil {
			hour := t.Hour()
			if later && hour < 12 {
				hour += 12
			}
			return float64(hour*3600 + t.Minute()*60 + t.Second()), true
		}
	}
	return 0, false
}

// sysstatTool is one of sysstat's tools that print a time before each row.
type sysstatTool int

const (
	noTool sysstatTool = iota
	pidstatTool
	mpstatTool
	sarTool
)

// sysstatNames is which tool prints these names above its rows.
func sysstatNames(names []string) sysstatTool {
	if tool := sysstatSure(names); tool != noTool || len(names) < 2 {
		return tool
	}
	has := func(n string) bool { return slices.Contains(names, n) }
	rates := 0
	for _, n := range names {
		if _, ok := number(n); ok {
			return noTool
		}
		if strings.HasSuffix(n, "/s") || strings.HasPrefix(n, "%") {
			rates++
		}
	}
	if rates >= 3 && (has("PID") || has("TID") || has("TGID")) {
		return pidstatTool // the last name, Command, may stand in the next line
	}
	if rates >= 3 { // one of sar's many other tables
		return sarTool
	}
	return noTool
}

// sysstatSure is the same, by names that no other tool has.
func sysstatSure(names []string) sysstatTool {
	has := func(n string) bool { return slices.Contains(names, n) }
	switch {
	case len(names) < 2 || numeric(names[:1]) && numeric(names[1:2]):
		return noTool
	case has("Command") && (has("PID") || has("TID")):
		return pidstatTool
	case names[0] == "CPU" && (has("%usr") || has("%user")) || names[0] == "NODE" && has("%usr"):
		steal, irq := slices.Index(names, "%steal"), slices.Index(names, "%irq")
		cut := irq < 0 && steal < 0 && has("%usr") // sar -u has %user
		if !cut && (irq < 0 || steal >= 0 && steal < irq) {
			return sarTool
		}
		return mpstatTool
	case names[0] == "CPU" && (names[1] == "intr/s" || strings.HasSuffix(names[1], "/s") && !has("total/s")):
		return mpstatTool
	case slices.ContainsFunc(sarTables, func(s []string) bool { return s[0] == names[0] && has(s[1]) }):
		return sarTool
	case names[0] == "INTR" && names[1] == "all":
		return sarTool
	}
	return noTool
}

// sysstatTimeless knows a line of names whose time was lost, as where columns were cut out.
func sysstatTimeless(f []string) bool { return sysstatSure(f) != noTool }

// sarTables are the first column and another one, of what sar alone prints.
var sarTables = [][]string{
	{"runq-sz", "plist-sz"}, {"kbmemfree", "%memused"}, {"pgpgin/s", "fault/s"}, {"tps", "bread/s"}, {"DEV", "tps"},
	{"IFACE", "rxpck/s"}, {"IFACE", "rxerr/s"}, {"IFACE", "rxidle/s"}, {"pswpin/s", "pswpout/s"}, {"proc/s", "cswch/s"},
	{"kbswpfree", "%swpused"}, {"totsck", "tcpsck"}, {"dentunusd", "file-nr"}, {"kbhugfree", "%hugused"},
	{"CPU", "MHz"}, {"CPU", "total/s"}, {"active/s", "passive/s"}, {"atmptf/s", "retrans/s"}, {"irec/s", "orq/s"},
	{"ihdrerr/s", "fragcrt/s"}, {"imsg/s", "omsg/s"}, {"idgm/s", "odgm/s"}, {"idgm6/s", "odgm6/s"},
	{"call/s", "retrans/s"},
	{"scall/s", "badcall/s"}, {"INTR", "intr/s"}, {"%scpu-10", "%scpu"}, {"%sio-10", "%fio"}, {"%smem-10", "%fmem"},
	{"TTY", "rcvin/s"}, {"FILESYSTEM", "MBfsfree"}, {"tcp6sck", "udp6sck"}, {"cswch/s", "proc/s"}, {"BUS", "idvendor"},
	{"frmpg/s", "bufpg/s"}, {"DEVICE", "rpm"}, {"DEVICE", "degC"}, {"cswch/s", ""},
	{"irec6/s", "orq6/s"}, {"imsg6/s", "omsg6/s"},
	{"ierr/s", "oerr/s"}, {"ierr6/s", "oerr6/s"}, {"ihdrer6/s", "iinadr6/s"}, {"CPU", "wghMHz"},
	{"FCHOST", "fch_rxf/s"},
}

// sysstatNote reports whether cells behind a time are a note of sar's between its rows: a restart
// of the machine, or a comment, as of a suspend.
func sysstatNote(cells []string) bool {
	return len(cells) > 1 && (cells[0] == "COM" || cells[0] == "LINUX" && cells[1] == "RESTART")
}

// sysstatWhole reports whether a line is complete, below these names.
func sysstatWhole(names []string, text string) bool {
	if banner(text) != nil {
		return true
	}
	_, _, rest, ok := sysstatTime(fields(text))
	if !ok {
		return sysstatTimeless(fields(text))
	}
	if sysstatNames(rest) != noTool {
		return true
	}
	return sysstatNote(rest) || names != nil && sysstatRow(names, rest) || names == nil && headlessTool(rest) != noTool
}

// sysstatStarts reports whether a line starts with a time, as rows and names do.
func sysstatStarts(text string) bool {
	f := fields(text)
	return len(f) > 0 && (clockTime(f[0]) && strings.Contains(f[0], ":") || strings.HasSuffix(f[0], "시") || f[0] == "Average:" || f[0] == "Linux")
}

// claimSysstat counts the lines of one of sysstat's tools: a banner, lines of names, rows.
func claimSysstat(kind sysstatTool, lines []paste.Line) int {
	var names []string
	whole := func(text string) bool { return sysstatWhole(names, text) }
	return claimLogical(lines, broken{whole: whole, starts: sysstatStarts}, func(at int, text string) bool {
		if banner(text) != nil {
			return names == nil && sysstatAhead(lines[at+1:]) == kind // below names, it is another run
		}
		_, _, rest, ok := sysstatTime(fields(text))
		if f := fields(text); !ok && sysstatSure(f) == kind && aside(lines[at+1:], f) {
			names = f
			return true
		}
		if !ok {
			return names != nil && (strings.Contains(text, "LINUX RESTART") || aside(lines[at+1:], names))
		}
		if sysstatNote(rest) {
			return names != nil || sysstatAhead(lines[at+1:]) == kind
		}
		if k := sysstatNames(rest); k != noTool {
			names = rest
			return k == kind
		}
		if names == nil {
			tool, columns := headless(rest)
			if below := namesBelow(lines[at:]); tool != kind || below != noTool && below != kind {
				return false
			}
			names = columns
			return true
		}
		return sysstatRow(names, rest)
	})
}

// newRun reports whether a line starts a run of one of sysstat's tools.
func newRun(first paste.Line) bool { return banner(first.Text) != nil }

// sysstatAhead is the tool of the names that come next, behind notes.
func sysstatAhead(lines []paste.Line) sysstatTool {
	for at := 0; at < len(lines); at++ {
		next, ok := following(lines, at)
		if !ok {
			return noTool
		}
		_, _, rest, ok := sysstatTime(fields(next.Text))
		switch {
		case !ok:
			return sysstatSure(fields(next.Text)) // names whose time was lost
		case !sysstatNote(rest):
			if tool := sysstatNames(rest); tool != noTool {
				return tool
			}
			return headlessTool(rest)
		}
		for lines[at].N != next.N {
			at++
		}
	}
	return noTool
}

// aside reports whether a row of these names follows at once: so the line above it is these names,
// or somebody's note between the rows.
func aside(lines []paste.Line, names []string) bool {
	if len(lines) == 0 || lines[0].Command != "" {
		return false
	}
	_, _, rest, ok := sysstatTime(fields(lines[0].Text))
	return ok && len(rest) == len(names) && sysstatRow(names, rest)
}

// sysstatRow reports whether these cells fit below these names: as many, and figures but for names
// of things.
func sysstatRow(names, cells []string) bool {
	if len(cells) < len(names) || len(cells) > len(names) && names[len(names)-1] != "Command" {
		return false
	}
	for i, n := range names {
		if strings.ContainsAny(n, "/%") && n != "IFACE" {
			if _, ok := number(cells[i]); !ok && cells[i] != "-" {
				if _, ok := size(cells[i], 1); !ok {
					return false
				}
			}
		}
	}
	return true
}

// sysstatTables are the tables of a part, one for each set of columns.
type sysstatTables struct {
	tables []*table
	cpus   int
	host   string
}

func parseSysstat(p *attach.Part) (s sysstatTables) {
	var now *table
	var names []string
	since := ""
	if names = filteredNames(p.Command, p.Lines[0].Text); names != nil {
		now = s.of(names)
	}
	for _, text := range logical(p.Lines,
		broken{func(text string) bool { return sysstatWhole(names, text) }, sysstatStarts}) {
		f := fields(text)
		if m := banner(text); m != nil {
			s.host = m[2]
			if n, ok := whole(m[3]); ok {
				s.cpus = n
			}
			continue
		}
		at, average, rest, ok := sysstatTime(f)
		switch {
		case !ok && sysstatTimeless(f):
			now, names, since = s.of(f), f, ""
		case !ok, sysstatNote(rest):
		case sysstatNames(rest) != noTool:
			now, names, since = s.of(rest), rest, at
		case now == nil && headlessTool(rest) != noTool:
			_, names = headless(rest)
			now = s.of(names)
			fallthrough
		case now != nil && sysstatRow(now.names, rest):
			now.rows = append(now.rows, row{time: at, average: average, since: since, cells: rest})
			since = ""
		}
	}
	return s
}

// of gives the table of these names. There are few sets of names, since each kind knows its own.
func (s *sysstatTables) of(names []string) *table {
	for _, t := range s.tables {
		if slices.Equal(t.names, names) {
			return t
		}
	}
	t := &table{names: names}
	s.tables = append(s.tables, t)
	return t
}

// with is the first table that has all of these columns, or nil.
func (s *sysstatTables) with(names ...string) *table {
	for _, t := range s.tables {
		if !slices.ContainsFunc(names, func(n string) bool { return !t.has(n) }) {
			return t
		}
	}
	return nil
}

// times counts the different times of rows that are no averages.
func (t *table) times() int {
	n, last := 0, ""
	for _, r := range t.rows {
		if !r.average && (r.time != last || n == 0) {
			n, last = n+1, r.time
		}
	}
	return n
}

// interval is the median of seconds between samples; 0: not known.
func (t *table) interval() float64 {
	var gaps []float64
	last, was := "", -1.0
	for _, r := range t.rows {
		if r.average || r.time == last {
			continue
		}
		last = r.time
		at, ok := seconds(r.time)
		if !ok {
			continue
		}
		if from, ok := seconds(r.since); ok && r.since != "" {
			was = from // a restart, or what was cut out, may lie before it
		}
		if was >= 0 && at > was {
			gaps = append(gaps, at-was)
		}
		was = at
	}
	return attach.Median(gaps)
}
