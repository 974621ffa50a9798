package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// pgActivity reads pg_stat_activity with its wait events: one glance.
var pgActivity = &attach.Kind{
	Name:  "pg_stat_activity",
	Hints: []string{"wait_event", "-[ RECORD"},
	Claim: claimActivity,
	Read:  readActivity,
}

var pgRows = pattern.New(`^\(\d+ rows?\)$`)

func claimActivity(lines []paste.Line) int {
	if !strings.Contains(lines[0].Text, "wait_event") && !strings.HasPrefix(lines[0].Text, "-[ RECORD") {
		return 0
	}
	if strings.HasPrefix(lines[0].Text, "-[ RECORD") {
		n, own := 0, 0
		for n < len(lines) && (strings.HasPrefix(lines[n].Text, "-[ RECORD") ||
			strings.Contains(lines[n].Text, "|") && lines[n].Command == "") {
			if strings.HasPrefix(lines[n].Text, "wait_event") {
				own++
			}
			n++
		}
		return attach.ClaimIf(own > 0, n)
	}
	if !slices.ContainsFunc(strings.Split(lines[0].Text, "|"),
		func(c string) bool { return strings.HasPrefix(strings.TrimSpace(c), "wait_event") }) ||
		!strings.Contains(lines[0].Text, "|") {
		return 0
	}
	n := 1
	for n < len(lines) && lines[n].Command == "" &&
		(inTable(lines, n) || pgRows.MatchString(strings.TrimSpace(lines[n].Text))) {
		n++
		if pgRows.MatchString(strings.TrimSpace(lines[n-1].Text)) {
			break
		}
	}
	if n < 3 {
		return 0
	}
	return n
}

// backend is a row of pg_stat_activity. by is who blocks it, where a query adds pg_blocking_pids.
type backend struct {
	kind, event, state, pid, by string
	holder                      string // what the row says of the state of whom it waits for
	is                          string // its backend_type; "": not said
	n                           int    // how many the row counts; a row of a list counts one
}

// counts are names that people give to the number of backends of a row.
var counts = []string{"count", "cnt", "count(*)", "n", "num", "total", "sessions", "connections", "backends"}

// filled is a cell without the words that clients print for NULL.
func filled(cell string) string {
	cell = strings.TrimSpace(cell)
	switch strings.ToLower(cell) {
	case "[null]", "(null)", "<null>", "null", "∅", "¤", "\\n", "-":
		return ""
	}
	return cell
}

func parseActivity(lines []paste.Line) (list []backend) {
	if strings.HasPrefix(lines[0].Text, "-[ RECORD") {
		for _, l := range lines {
			if strings.HasPrefix(l.Text, "-[ RECORD") {
				list = append(list, backend{n: 1})
				continue
			}
			name, value, _ := strings.Cut(l.Text, "|")
			if len(list) == 0 {
				continue
			}
			at := &list[len(list)-1]
			switch strings.TrimSpace(name) {
			case "wait_event_type":
				at.kind = filled(value)
			case "wait_event":
				at.event = filled(value)
			case "state":
				at.state = filled(value)
			case "pid":
				at.pid = filled(value)
			case "backend_type":
				at.is = filled(value)
			case "pg_blocking_pids", "blocked_by", "blocking_pids", "blocked_by_pids":
				at.by = strings.Trim(filled(value), "{} ")
			}
		}
		return list
	}
	var head []string
	for _, l := range lines {
		cells := strings.Split(strings.Trim(strings.TrimSpace(l.Text), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if slices.Contains(cells, "wait_event") || slices.Contains(cells, "wait_event_type") {
			head = cells
			continue
		}
		if len(cells) < 2 || noRow(l.Text) || head == nil {
			continue
		}
		cell := func(name string) string {
			if i := slices.Index(head, name); i >= 0 && i < len(cells) {
				return filled(cells[i])
			}
			return ""
		}
		by := strings.Trim(cmp.Or(cell("blocked_by_pids"), cell("pg_blocking_pids"),
			cell("blocked_by"), cell("blocking_pids")), "{} ")
		list = append(list, backend{cell("wait_event_type"), cell("wait_event"), cell("state"),
			cmp.Or(cell("pid"), cell("waiting_pid"), cell("blocked_pid")), by,
			cmp.Or(cell("holder_state"), cell("blocker_state"), cell("blocking_state")), cell("backend_type"), 1})
		if cell("pid") == "" {
			for _, name := range counts {
				if v, ok := number(cell(name)); ok && v >= 1 {
					list[len(list)-1].n = int(min(v, 1e6))
					break
				}
			}
		}
	}
	return list
}

func readActivity(p *attach.Part) attach.Reading {
	r := &result{}
	r.Glance = true
	list := parseActivity(p.Lines)
	r.leftRows(p.Lines, len(list))
	n := map[string]int{}
	events := map[string]map[string]int{}
	active, all, open := 0, 0, 0
	for _, b := range list {
		all += b.n
		if strings.HasPrefix(b.state, "idle in transaction") {
			open += b.n
		}
		if b.state != "active" && b.state != "" || b.kind == "Activity" || b.kind == "Client" {
			continue
		}
		active += b.n
		n[b.kind] += b.n
		if events[b.kind] == nil {
			events[b.kind] = map[string]int{}
		}
		events[b.kind][b.event] += b.n
	}
	r.Title = fmt.Sprintf("pg_stat_activity, %s, %d active", attach.Plural(all, "backend"), active)
	line := func(kind string) string {
		return fmt.Sprintf("%d of %d active backends wait for %s: %s", n[kind], active, kind, listed(events[kind]))
	}
	if n["Lock"] > 0 {
		r.figure(line("Lock"))
		r.outside("a lock in the database's own tables, which another transaction holds",
			line("Lock"), ratio(float64(n["Lock"]), float64(active)))
		if !blockers(r, list) {
			r.next("psql -c 'SELECT pid, pg_blocking_pids(pid), query FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0'", "names who blocks whom")
		}
	}
	if n["LWLock"] > 1 {
		r.figure(line("LWLock"))
		cause := "lock-contention"
		if event := attach.Largest(events["LWLock"])[0]; slices.Contains(onDisk, event) {
			cause = "disk-wait" // who has it writes or reads a file
		}
		r.candidate(cause, line("LWLock"))
	}
	if standby := events["IPC"]["SyncRep"]; standby > 0 {
		r.figure(fmt.Sprintf("%d of %d active backends wait for a standby to confirm their commit (SyncRep)", standby, active))
		r.outside("a standby that has to confirm each commit: it, or the way to it, is slow",
			r.Figures[len(r.Figures)-1], ratio(float64(standby), float64(active)))
	}
	if n["IO"] > 1 && 2*n["IO"] >= active {
		r.figure(line("IO"))
		r.candidate("disk-wait", line("IO"))
	}
	if open > 0 {
		r.figure(attach.Plural(open, "backend") + " idle in a transaction, which keeps its locks open")
	}
	r.Not = "One glance: how long they wait, it does not say."
	if len(r.Signs) == 0 {
		if one := others(list); one != "" {
			r.figure(one)
			r.Means = "It waits inside of PostgreSQL, and not for a lock of rows or tables: one glance does not say whether that lasts."
			r.next("the same query again after some seconds", "the same wait of the same backend is no short one")
			return r.done(attach.CannotTell)
		}
		r.figure(fmt.Sprintf("%d active backends, none waits for a lock", active))
		r.Means = "No backend waits for a lock at this instant" + r.shown() + "."
		if n[""] > fewActive {
			r.Means = fmt.Sprintf("No backend waits for a lock at this instant%s; %d active ones wait for nothing that PostgreSQL names: they compute, or want a CPU.", r.shown(), n[""])
			r.next("vmstat 1 10; pg_stat_statements", "whether the CPUs are full, and by which statements")
			return r.done(attach.CannotTell)
		}
		return r.done(attach.Healthy)
	}
	r.Means = cmp.Or(r.Means, "Several backends wait inside of PostgreSQL at this instant.")
	return r.done(attach.CannotTell)
}

// fewActive is up to how many backends may compute at one instant on any server.
const fewActive = 3

// onDisk are events of PostgreSQL's own locks under which it waits for a file.
var onDisk = []string{"WALWrite", "WALWriteLock", "buffer_io", "BufferIO"}

// others says what single backends wait for, inside of PostgreSQL: each may be nothing, or hang.
func others(list []backend) string {
	var out []string
	for _, b := range list {
		if b.kind != "LWLock" && b.kind != "LWLockTranche" && b.kind != "LWLockNamed" &&
			b.kind != "BufferPin" && b.kind != "BufferLock" && (b.kind != "IPC" && b.kind != "IO" || b.event == "") {
			continue
		}
		who := cmp.Or(b.is, "backend")
		if b.pid != "" {
			who += " " + b.pid
		}
		if b.n > 1 {
			out = append(out, fmt.Sprintf("%d backends wait for %s %s", b.n, b.kind, b.event))
			continue
		}
		out = append(out, fmt.Sprintf("%s waits for %s %s", who, b.kind, b.event))
	}
	if len(out) > 3 {
		out = append(out[:3], fmt.Sprintf("%d more", len(out)-3))
	}
	return strings.Join(out, "; ")
}

// blockers names the backends that others wait for and that wait for none themselves.
func blockers(r *result, list []backend) bool {
	waits, state := map[string]bool{}, map[string]string{}
	for _, b := range list {
		waits[b.pid] = b.by != ""
		state[b.pid] = b.state
	}
	n := map[string]int{}
	for _, b := range list {
		if b.holder != "" && !strings.Contains(b.by, ",") {
			state[b.by] = cmp.Or(state[b.by], b.holder)
		}
		for _, pid := range strings.FieldsFunc(b.by, func(c rune) bool { return c == ',' || c == ' ' }) {
			if !waits[pid] {
				n[pid]++
			}
		}
	}
	if len(n) == 0 {
		return false
	}
	holder := attach.Largest(n)[0]
	line := fmt.Sprintf("backend %s blocks %d of them", holder, n[holder])
	if s := state[holder]; strings.HasPrefix(s, "idle") {
		line += "; it is " + strings.Replace(s, "idletx", "idle in transaction", 1) +
			", so its program holds the transaction open"
	} else if s != "" {
		line += "; it is " + s
	}
	r.figure(line)
	r.next("psql -c \"SELECT pid, state, xact_start, query FROM pg_stat_activity WHERE pid = "+
		holder+"\"", "says what it did last, and since when its transaction is open")
	return true
}

// listed names the first three of some with their numbers, and how many are left.
func listed(n map[string]int) string {
	names := attach.Largest(n)
	var out []string
	for _, name := range names[:min(3, len(names))] {
		out = append(out, fmt.Sprintf("%s (%d)", name, n[name]))
	}
	if len(names) > 3 {
		out = append(out, fmt.Sprintf("%d others", len(names)-3))
	}
	return strings.Join(out, ", ")
}
