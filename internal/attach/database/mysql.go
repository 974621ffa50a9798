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

// processlist reads SHOW PROCESSLIST of MySQL and MariaDB, as a table or with \G: one glance.
var processlist = &attach.Kind{
	Name:  "MySQL processlist",
	Hints: []string{"|", "Command", "+--", "*****"},
	Claim: claimProcesslist,
	Read:  readProcesslist,
}

// mysqlSlow reads the slow log of MySQL, MariaDB and Percona Server.
var mysqlSlow = &attach.Kind{
	Name:  "MySQL slow log",
	Hints: []string{"# ", "mysqld, Version", "mariadbd, Version", "Version: "},
	Claim: claimMySQLSlow,
	Read:  readMySQLSlow,
}

var (
	procHead  = pattern.New(`^\|?\s*Id\s*[|\t ]\s*User\s*[|\t ].*\bCommand\s*[|\t ]\s*Time\b|^\|?\s*Id\s*\|.*\|\s*\.{3}\s*\|.*\bTime\s*\|\s*State\s*\|\s*Info\b`) // others may be left out
	procField = pattern.New(`^\s*(Id|User|Host|db|Command|Time|State|Info|Progress|Rows_sent|Rows_examined|Rows_read|Time_ms): ?(.*)$`)
	slowTimes = pattern.New(`Query_time: ([\d.]+)\s+Lock_time: ([\d.]+)\s+Rows_sent: (\d+)\s+Rows_examined: (\d+)`)
	slowMeta  = pattern.New(`^# (Time|User@Host|Thread_id|Query_time|Rows_affected|Schema|Bytes_sent|Pages_|Full_scan|Filesort|InnoDB_|Tmp_|QC_Hit|No InnoDB|Log_slow|administrator|explain|Stored_routine|Merge|Old_rows|Engine_time)|^(use .*|SET timestamp=\d+);$|^(Tcp port|Time\s+Id\s+Command)|, Version: .* started with:$`)
	slowIO    = pattern.New(`InnoDB_IO_r_wait: ([\d.]+)\s+InnoDB_rec_lock_wait: ([\d.]+)\s+InnoDB_queue_wait: ([\d.]+)`)
)

func claimProcesslist(lines []paste.Line) int {
	if procComma.MatchString(strings.TrimSpace(lines[0].Text)) {
		return claimCommaRows(lines)
	}
	if innoRow.MatchString(strings.TrimSpace(lines[0].Text)) {
		n, own := 0, 0
		for n < len(lines) && lines[n].Command == "" &&
			(innoRow.MatchString(strings.TrimSpace(lines[n].Text)) || procField.MatchString(lines[n].Text)) {
			if strings.Contains(lines[n].Text, "Command:") {
				own++
			}
			n++
		}
		return attach.ClaimIf(own > 0, n)
	}
	i := 0
	if planRule.MatchString(lines[0].Text) && len(lines) > 1 {
		i = 1
	}
	n, rows := i+1, 0
	switch {
	case procHead.MatchString(lines[i].Text):
	case procRow(lines[i].Text): // the names were cut off
		n = i
	case i+2 < len(lines) && tableRule(lines[i+1].Text) && procRow(lines[i+2].Text): // or translated
	default:
		return 0
	}
	for ; n < len(lines); n++ {
		t := strings.TrimSpace(lines[n].Text)
		if lines[n].Command != "" || t == "" && (n+1 >= len(lines) || !strings.HasPrefix(lines[n+1].Text, "|")) {
			break
		}
		if rowsInSet.MatchString(t) {
			return n + 1
		}
		if !strings.Contains(t, "|") && !planRule.MatchString(t) &&
			strings.Contains(lines[i].Text, "|") && !strings.HasPrefix(lines[n].Text, " ") {
			break
		}
		if !noRow(t) {
			rows++
		}
	}
	return attach.ClaimIf(rows > 0, n)
}

// procNames are the columns of the processlist, for rows whose names were cut off.
var procNames = []string{"Id", "User", "Host", "db", "Command", "Time", "State", "Info"}

// procCommands are what stands in the column Command.
var procCommands = []string{"Query", "Sleep", "Daemon", "Connect", "Execute", "Binlog Dump",
	"Binlog Dump GTID", "Prepare", "Killed", "Init DB", "Quit", "Statistics", "Ping", "Field List"}

// procRow reports whether a line is a row of the processlist, by what its cells are.
func procRow(text string) bool {
	t := strings.TrimSpace(text)
	if !strings.HasPrefix(t, "|") {
		return false
	}
	cells := strings.Split(strings.Trim(t, "|"), "|")
	if len(cells) < len(procNames) {
		return false
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return allDigits(cells[0]) && slices.Contains(procCommands, cells[4]) && allDigits(cells[5])
}

// connection is a row of the processlist.
type connection struct {
	id                   string
	command, state, info string
	s                    float64
}

func parseProcesslist(lines []paste.Line) (list []connection) {
	var head []string
	for _, l := range lines {
		t := strings.TrimSpace(l.Text)
		if innoRow.MatchString(t) {
			list = append(list, connection{})
			continue
		}
		if m := procField.FindStringSubmatch(l.Text); m != nil && len(list) > 0 && head == nil {
			c := &list[len(list)-1]
			switch m[1] {
			case "Id":
				c.id = m[2]
			case "Command":
				c.command = m[2]
			case "State":
				c.state = m[2]
			case "Info":
				c.info = m[2]
			case "Time":
				c.s, _ = number(m[2])
			}
			continue
		}
		if m := procQuoted.FindStringSubmatch(t); m != nil {
			c := connection{command: m[1], state: m[3], info: strings.Trim(m[4], "'")}
			c.s, _ = number(m[2])
			list = append(list, c)
			continue
		}
		sep := "|"
		if !strings.Contains(t, "|") {
			sep = "\t"
		}
		cells := strings.Split(strings.Trim(t, "|"), sep)
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if procHead.MatchString(l.Text) {
			head = cells
			continue
		}
		if head == nil && procRow(l.Text) {
			head = procNames
		}
		cell := func(name string) string {
			if i := slices.Index(head, name); i >= 0 && i < len(cells) {
				return cells[i]
			}
			return ""
		}
		if len(cells) < 5 || head == nil || noRow(l.Text) {
			continue
		}
		c := connection{id: cell("Id"), command: cell("Command"), state: cell("State"), info: cell("Info")}
		c.s, _ = number(cell("Time"))
		list = append(list, c)
	}
	return list
}

// background are commands of threads that serve no client.
var background = []string{"Sleep", "Daemon", "Binlog Dump", "Binlog Dump GTID", "Connect",
	"Slave_IO", "Slave_SQL", "Slave_worker"}

// longCommit is a commit, in s, that no group commit explains.
const longCommit = 5

// longWork is for how long a lone statement is at work, in s, before it is called long.
const longWork = 10

func readProcesslist(p *attach.Part) attach.Reading {
	r := &result{}
	r.Glance = true
	list := parseProcesslist(p.Lines)
	r.leftRows(p.Lines, len(list))
	states, asleep, locked, commits, busy := map[string]int{}, 0, 0, 0, 0
	longest := connection{}
	for _, c := range list {
		low := strings.ToLower(c.state)
		switch {
		case slices.Contains(background, c.command), c.command == "" && c.state == "":
			asleep++
			continue
		case strings.Contains(strings.ToLower(c.info), "show ") &&
			strings.Contains(strings.ToLower(c.info), "processlist"):
			continue
		case c.waitsForLock():
			locked++
		case strings.Contains(low, "commit") && low != "autocommit" || low == "query end" || low == "updating status":
			commits++
		}
		busy++
		states[cmp.Or(c.state, "no state")]++
		if c.s > longest.s {
			longest = c
		}
	}
	r.Title = fmt.Sprintf("MySQL processlist, %s, %d at work", attach.Plural(len(list), "connection"), busy)
	if busy > 0 {
		r.figure(fmt.Sprintf("of %d at work: %s; %d asleep or background", busy, listed(states), asleep))
	} else {
		r.figure(fmt.Sprintf("%d connections asleep or background, none at work", asleep))
	}
	if longest.s > 0 {
		r.figure(fmt.Sprintf("the longest is in state %q for %s", longest.state, dur(longest.s)))
	}
	r.Not = "One glance; Time is whole seconds in this state, and a sleeping connection may hold locks."
	switch {
	case locked > 0:
		line := fmt.Sprintf("%d of %d at work wait for locks of tables or metadata", locked, busy)
		others := r.Figures
		r.Figures = []string{line}
		tellWaiter(r, list)
		r.Figures = append(r.Figures, others...)
		r.outside("a lock in the database's own tables, which another session holds", line,
			ratio(float64(locked), float64(busy)))
		if strings.Contains(strings.ToLower(longest.state), "commit") && longest.s >= longCommit {
			commit := fmt.Sprintf("one session commits for %s, and may be what the others wait for", dur(longest.s))
			r.figure(commit)
			r.candidate("disk-wait", commit)
		}
		r.next("mysql -e 'SELECT * FROM performance_schema.metadata_locks' -e 'SELECT * FROM sys.schema_table_lock_waits'", "name who holds it")
	case commits > 2 && 2*commits >= busy:
		line := fmt.Sprintf("%d of %d commit at this instant", commits, busy)
		r.figure(line)
		r.candidate("disk-wait", line)
		r.Means = "Several sessions are in the commit at one instant: a slow fsync of the log looks like this, and so does group commit."
		r.next("iostat -x 1 10", "says whether the disk is slow")
	case busy > 1 && longest.s >= 1, longest.s >= longWork:
		r.Means = "Statements run for seconds; the states do not say what they wait for: Updating may be a row's lock."
		if busy == 1 {
			r.Means = fmt.Sprintf("One statement has been at work for %s; its state does not say what it waits for.", dur(longest.s))
			if strings.HasPrefix(strings.ToLower(longest.state), "updating") {
				r.Means += " Updating may be a row's lock."
			}
		}
		r.next("mysql -e 'SHOW ENGINE INNODB STATUS\\G'", "says which transactions wait for locks")
		return r.done(attach.CannotTell)
	default:
		r.Means = "No session waits for a lock of a table at this instant" + r.shown() + "."
	}
	return r.done(attach.Healthy)
}
