package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

var (
	straceCount = &attach.Kind{Name: "strace -c", Read: readStraceCount, Apart: countStarts, Claim: func(lines []paste.Line) int {
		n := claimCounts(lines)
		return attach.ClaimIf(!ofFunctions(lines[:n]), n)
	}}
	ltraceCount = &attach.Kind{Name: "ltrace -c", Read: readStraceCount, Apart: countStarts, Claim: func(lines []paste.Line) int {
		n := claimCounts(lines)
		return attach.ClaimIf(ofFunctions(lines[:n]), n)
	}}
)

// ofFunctions reports whether a table counts calls of functions, which ltrace does. Only ltrace
// marks calls of the system.
func ofFunctions(lines []paste.Line) bool {
	functions, headed, rows := 0, false, 0
	for _, l := range lines {
		text := strings.TrimSpace(l.Text)
		headed = headed || countHead(text)
		if row, ok := callRowOf(text); ok {
			if rows++; !isSystemCall(row.name) {
				functions++
			}
		}
	}
	if !headed && functions*2 > rows {
		return true
	}
	return slices.ContainsFunc(lines, func(l paste.Line) bool {
		text := strings.TrimSpace(l.Text)
		row, ok := callRowOf(text)
		return countHead(text) && strings.Contains(text, "function") || ok && strings.HasPrefix(row.name, "SYS_")
	})
}

// callRow is a row of strace -c or ltrace -c.
type callRow struct {
	share, seconds float64
	perCall        float64 // us
	calls, errors  int
	name           string
}

// callRowOf reads "52.51    0.041400          22      1842         1 write".
func callRowOf(text string) (row callRow, ok bool) {
	f := strings.Fields(text)
	if name := demangled(f); name != "" {
		f = append(f[:4:4], name)
	}
	f = f[:withoutRemark(f)]
	if len(f) == 4 && numbers(f) {
		f = append(f, nameless) // ltrace prints some functions without a name
	}
	if len(f) != 5 && len(f) != 6 || f[len(f)-1] != nameless && !isName(f[len(f)-1]) {
		return row, false
	}
	if row.share, ok = number(f[0]); !ok || row.share < 0 || row.share > 100.5 {
		return row, false
	}
	if row.seconds, ok = number(f[1]); !ok || !strings.ContainsAny(f[1], ".,") {
		return row, false
	}
	if row.perCall, ok = number(f[2]); !ok {
		return row, false
	}
	if row.calls, ok = whole(f[3]); !ok {
		return row, false
	}
	if len(f) == 6 {
		if row.errors, ok = whole(f[4]); !ok {
			return row, false
		}
	}
	row.share /= 100
	row.name = f[len(f)-1]
	return row, true
}

// demangled is the name of a function of C++ with blanks in it, of a row whose first four fields
// are numbers; "": it has none.
func demangled(fields []string) string {
	if len(fields) < 5 || !numbers(fields[:4]) || numbers(fields[4:5]) {
		return ""
	}
	name := strings.Join(fields[4:], " ")
	if !strings.Contains(name, "::") && !strings.Contains(name, "(") {
		return ""
	}
	if i := strings.LastIndex(name, "operator"); i >= 0 {
		return "operator"
	}
	name, _, _ = strings.Cut(name, "(")
	name, _, _ = strings.Cut(name, "<")
	return name[strings.LastIndexByte(name, ' ')+1:]
}

// withoutRemark is how many fields a row has without what a person wrote behind its system call.
func withoutRemark(fields []string) int {
	for n := 5; n <= 6 && n < len(fields); n++ {
		if numbers(fields[:n-1]) && isSystemCall(fields[n-1]) {
			return n
		}
	}
	return len(fields)
}

// nameless stands for the name that a row lacks.
const nameless = "(no name)"

// totalRowOf reads "100.00    0.078848          13      5753        17 total", also without usecs.
func totalRowOf(text string) (row callRow, ok bool) {
	f := strings.Fields(text)
	if len(f) < 4 || f[len(f)-1] != "total" || !numbers(f[:len(f)-1]) {
		return row, false
	}
	row.seconds, ok = number(f[1])
	return row, ok
}

func isName(s string) bool {
	if s == "" || len(s) > 200 || s == "total" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c == '_' || c == ':' || c == '@' || c == '.' || c == '~' || c == '<' || c == '>' ||
			c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' && i > 0) {
			return false
		}
	}
	return true
}

func countHead(text string) bool {
	text = strings.TrimPrefix(text, "^C")
	return strings.HasPrefix(text, "% time") && strings.Contains(text, "calls") && !strings.Contains(text, "cumulative")
}

func claimCounts(lines []paste.Line) int {
	first := strings.TrimSpace(lines[0].Text)
	row, isRow := callRowOf(first)
	if (!isRow || row.name == nameless) && !countHead(first) && !straceNote(first) {
		return 0
	}
	rows, head, over := 0, false, false
	n := claimed(lines, func(_ int, text string) bool {
		if over && !straceNote(text) { // another table is another run
			return false
		}
		if countHead(text) {
			head = true
			return true
		}
		if _, ok := totalRowOf(text); ok {
			over = true
			return true
		}
		if row, ok := callRowOf(text); ok && (head || row.name != nameless) {
			rows++
			return true
		}
		return straceNote(text) || strings.Trim(text, "- ") == ""
	})
	if rows == 0 || !head && rows < 2 {
		return 0
	}
	return n
}

// countStarts reports whether a line heads a table.
func countStarts(l paste.Line) bool { return countHead(strings.TrimSpace(l.Text)) }

// straceNote reports whether a line is strace's word about what it does.
func straceNote(text string) bool {
	return strings.HasPrefix(text, "strace: Process ") || strings.HasPrefix(text, "Process ") &&
		(strings.HasSuffix(text, "attached") ||
			strings.HasSuffix(text, "detached") || strings.Contains(text, "attached with") ||
			strings.Contains(text, "interrupt to quit")) ||
		strings.HasPrefix(text, "[pid ") && strings.HasSuffix(text, "+++")
}

func readStraceCount(p *attach.Part) attach.Reading {
	var rows []callRow
	var total float64
	calls, perName, ltrace := 0, map[string]float64{}, ofFunctions(p.Lines)
	byKind := map[waitKind]float64{}
	worst, again := callRow{}, 0
	said, ended := 0.0, false
	for _, text := range texts(p) {
		if row, ok := totalRowOf(text); ok {
			said, ended = said+row.seconds, true
		}
		row, ok := callRowOf(text)
		if !ok || len(rows) >= most {
			continue
		}
		rows = append(rows, row)
		total += row.seconds
		calls += row.calls
		perName[row.name] += row.seconds
		byKind[callWaits[row.name]] += row.seconds
		if row.errors > worst.errors {
			worst = row
		}
		again += row.errors
	}
	what, tool := "system call", "strace -c"
	var run *callRow
	if ltrace {
		what, tool = "function", "ltrace -c"
		if rows, run = withoutRun(rows); run != nil {
			total -= run.seconds
			calls -= run.calls
		}
	}
	r := attach.Reading{Title: fmt.Sprintf("%s, %s of %s, %s", tool, attach.Plural(calls, "call"),
		attach.Plural(len(rows), what), lasts(total)), State: attach.CannotTell, Who: attach.Who{PID: targetOf(p)}}
	if !ended {
		r.Flaws = append(r.Flaws,
			"its line of totals is not in it, so rows may have been cut off: sums are of those that are here")
	} else if said > 1.05*total && run == nil {
		r.Flaws = append(r.Flaws,
			fmt.Sprintf("rows were cut out of it: by its line of totals all calls took %s", lasts(said)))
	}
	top := topCalls(rows)
	if run != nil {
		top = "of what " + run.name + " called: " + top
	}
	r.Figures = append(r.Figures, top)
	if worst.errors > 0 && worst.calls > 0 {
		r.Figures = append(r.Figures, worst.failures(again))
	}
	asked := strings.Contains(p.Command, "strace") && wallOption(p.Command)
	wall := asked
	for _, row := range rows {
		// To enter and leave a wait takes microseconds of CPU time. More is wall time.
		if k := callWaits[row.name]; (k == waitIdle || k == waitLock || k == waitChild) &&
			row.seconds >= leastWall && row.seconds/float64(max(row.calls, 1)) >= 100e-6 {
			wall = true
		}
	}
	if !ended && run == nil { // shares as the table has them: rows are missing
		for _, row := range rows {
			if row.share > 0.05 {
				total = max(total, row.seconds/row.share)
			}
		}
	}
	countMeaning(&r, byKind, total, clock{wall: wall, asked: asked, ltrace: ltrace, all: followed(p)})
	if run != nil {
		r.Figures = append(r.Figures,
			fmt.Sprintf("%s of %s is the whole run, in which all others are", run.name, lasts(run.seconds)))
	}
	if ltrace {
		neverFreed(&r, rows)
	} else if line := mostWork(rows); line != "" && wall {
		r.Figures = slices.Insert(r.Figures, 1, line)
	}
	if yields := perName["sched_yield"]; total > 0 && yields/total >= 0.2 {
		r.Figures = append(r.Figures,
			fmt.Sprintf("%s of it is sched_yield: threads that spin give up the CPU and come back at once", pct(yields/total)))
	}
	return r
}

// leastWall is a time in s in calls that wait of which it can be told whether it is wall time: the
// kernel's own accounts go by ticks of some ms.
const leastWall = 0.1

// clock is what the seconds of a table are of.
type clock struct {
	wall, asked bool // wall time, and strace was asked for it
	ltrace      bool
	all         bool // several threads' time is added up
}

// followed reports whether a table is of all threads together: of -f, or of more than one process.
func followed(p *attach.Part) bool {
	for _, f := range strings.Fields(p.Command) {
		if strings.HasPrefix(f, "-f") || strings.HasPrefix(f, "-cwf") || strings.HasPrefix(f, "-cf") {
			return true
		}
	}
	notes := 0
	for _, text := range texts(p) {
		if strings.HasPrefix(text, "strace: Process ") &&
			(strings.HasSuffix(text, "attached") || strings.HasSuffix(text, "detached")) {
			notes++
		}
	}
	return notes > 2
}

// withoutRun leaves out the row of the whole run, which contains all others: their shares are then
// of what is left.
func withoutRun(rows []callRow) (others []callRow, run *callRow) {
	left := 0.0
	for _, row := range rows {
		if row.name == "__libc_start_main" {
			run = &row
			continue
		}
		others = append(others, row)
		left += row.seconds
	}
	if run == nil || run.seconds < left || left <= 0 { // of other threads too: it does not contain them
		return rows, nil
	}
	for i := range others {
		others[i].share = others[i].seconds / left
	}
	return others, run
}

// neverFreed says where a program allocated and freed nothing.
func neverFreed(r *attach.Reading, rows []callRow) {
	allocated := 0
	for _, row := range rows {
		switch row.name {
		case "malloc", "calloc":
			allocated += row.calls
		case "free", "realloc", "cfree":
			return
		}
	}
	if allocated >= 100 {
		r.Figures = slices.Insert(r.Figures, 0,
			fmt.Sprintf("%d calls of malloc and calloc, and none of free", allocated))
		r.Means = fmt.Sprintf("The program itself allocated %d times and freed nothing: its memory grows, unless a library frees for it. %s", allocated, upper(r.Means))
	}
}

// mostWork is the row with most time that waits neither for work nor for a lock, where it is not
// among the first: what waits for work heads most tables.
func mostWork(rows []callRow) string {
	at := -1
	for i, row := range rows {
		if k := callWaits[row.name]; k != waitIdle && k != waitLock && k != waitChild &&
			row.calls > 0 && (at < 0 || row.seconds > rows[at].seconds) {
			at = i
		}
	}
	if at < 3 {
		return ""
	}
	return fmt.Sprintf("most time of the others: %s", topCalls(rows[at:at+1]))
}

// failures says how many calls of the row ended with an error number. Where a call that does not
// block has nothing to do, that is no failure.
func (row callRow) failures(all int) string {
	share := pct(float64(row.errors) / float64(row.calls))
	if usual := notYet[row.name]; usual != "" {
		return fmt.Sprintf("%d of %d calls of %s ended with an error number (%s), which is no failure where it is %s; %d of all", row.errors, row.calls, row.name, share, usual, all)
	}
	return fmt.Sprintf("%d of %d calls of %s failed (%s); %d of all", row.errors, row.calls, row.name, share, all)
}

// notYet is the error number by which a call on a socket that does not block says: not yet.
var notYet = map[string]string{"connect": "EINPROGRESS", "accept": "EAGAIN", "accept4": "EAGAIN",
	"read": "EAGAIN", "readv": "EAGAIN", "recv": "EAGAIN", "recvfrom": "EAGAIN",
	"recvmsg": "EAGAIN", "recvmmsg": "EAGAIN", "write": "EAGAIN", "writev": "EAGAIN",
	"sendto": "EAGAIN", "sendmsg": "EAGAIN", "futex": "EAGAIN or ETIMEDOUT", "poll": "EINTR",
	"epoll_wait": "EINTR", "epoll_pwait": "EINTR"}

// failedHow says how calls of a name ended that have an error number.
func failedHow(name string) string {
	if usual := notYet[name]; usual != "" {
		return "with an error number, as " + usual
	}
	return "failed"
}

// wallOption reports whether strace was asked for wall time: -w, also as -cw.
func wallOption(command string) bool {
	for _, f := range strings.Fields(command) {
		if len(f) > 1 && f[0] == '-' && f[1] != '-' && strings.Contains(f, "w") &&
			strings.Contains("-cwfTtryqvxiC", f[1:2]) || f == "--summary-wall-clock" {
			return true
		}
	}
	return false
}

// topCalls lists the calls that took most.
func topCalls(rows []callRow) string {
	var out []string
	for i, row := range rows[:min(len(rows), 3)] {
		if i > 0 && row.seconds == 0 {
			break
		}
		each := 0.0
		if row.calls > 0 {
			each = row.seconds / float64(row.calls)
		}
		out = append(out, fmt.Sprintf("%s %s: %s in %d calls, %s each", pct(row.share), row.name,
			lasts(row.seconds), row.calls, lasts(each)))
	}
	return strings.Join(out, "; ")
}

func countMeaning(r *attach.Reading, byKind map[waitKind]float64, total float64, c clock) {
	if total <= 0 {
		r.Means = "Its times are all nil: no call used a clock tick of system time."
	} else {
		idle := byKind[waitIdle] / total
		switch {
		case c.ltrace:
			r.Means = "ltrace adds up wall time of calls, its own breakpoints included: a share is where a trace stopped most, not what a function costs."
		case c.wall:
			how := "Without -w strace counts CPU time in the kernel; its waits are long here for that, so it may be wall time"
			if c.asked {
				how = "This is wall time in calls (-w)"
			}
			if c.all {
				how += ", of all threads added up"
			}
			r.Means = fmt.Sprintf("%s; %s of it is in calls that wait for work or for time to pass, %s in futex.", how, pct(idle), pct(byKind[waitLock]/total))
		default:
			r.Means = fmt.Sprintf("Without -w these seconds are CPU time in the kernel and no waiting; %s of it is in calls that wait for work, %s in futex.", pct(idle), pct(byKind[waitLock]/total))
		}
		if sync := byKind[waitSync] / total; c.wall && sync >= 0.2 && byKind[waitSync] >= 0.1 {
			r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Candidate, Share: sync,
				Proof: []string{fmt.Sprintf("%s of the time in calls is in those that wait for a disk to have written", pct(sync))}})
		}
	}
	if c.ltrace {
		r.Not = "ltrace stops the program twice at each call, so rates and shares differ without it."
		r.Next = append(r.Next, ask("perf record -e cpu-clock -g -p PID -- sleep 10", r.Who.PID,
			"which functions take the CPU time, without breakpoints"))
		return
	}
	r.Not = "strace slows every call down, so rates and shares differ without it; a wait in epoll_wait, poll or futex is no loss by itself."
	r.Next = append(r.Next, ask("strace -f -T -tt -p PID", r.Who.PID, "how long single calls took, by wall time"))
}
