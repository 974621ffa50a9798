package database

import (
	"fmt"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// pgVacuum is what the log says of one autovacuum of a table, over several lines.
type pgVacuum struct {
	table        string
	analyze      bool    // it took statistics, and removed nothing
	read         float64 // s, of what it took
	took         float64 // s
	timed        bool    // its line with that is there
	kept, remain float64 // dead rows that somebody may still see; all rows
	age          float64 // of what keeps them, in transactions; 0: not said
}

var (
	vacuumOf   = pattern.New(`automatic (?:aggressive )?vacuum (?:to prevent wraparound )?of table "([^"]+)"`)
	vacuumKept = pattern.New(`tuples: \d+ removed, (\d+) remain, (\d+) are dead but not yet removable`)
	vacuumAge  = pattern.New(`removable cutoff: \d+, which was (\d+) XIDs old`)
	vacuumTook = pattern.New(`elapsed: ([\d.]+) s(?:ec)?`)
	otherAuto  = pattern.New(`automatic analyze of table "([^"]+)"`)
	vacuumRead = pattern.New(`^\s*(?:.*: )?I/O timings: read: ([\d.]+) ms`)
)

// vacuum reads a line of a report of autovacuum.
func (e *pgEvents) vacuum(text string) {
	if m := vacuumOf.FindStringSubmatch(text); m != nil {
		e.vacuums = append(e.vacuums, pgVacuum{table: m[1]})
		e.inVacuum = true
	} else if m := otherAuto.FindStringSubmatch(text); m != nil {
		e.vacuums = append(e.vacuums, pgVacuum{table: m[1], analyze: true})
		e.inVacuum = true
	}
	if !e.inVacuum {
		return
	}
	v := &e.vacuums[len(e.vacuums)-1]
	if m := vacuumRead.FindStringSubmatch(text); m != nil {
		v.read, _ = number(m[1])
		v.read /= 1e3
	}
	if m := vacuumKept.FindStringSubmatch(text); m != nil {
		v.remain, _ = number(m[1])
		v.kept, _ = number(m[2])
	}
	if m := vacuumAge.FindStringSubmatch(text); m != nil {
		v.age, _ = number(m[1])
	}
	if m := vacuumTook.FindStringSubmatch(text); m != nil {
		v.took, v.timed = number(m[1])
		e.inVacuum = false
	}
}

// muchDead is a number of dead rows from which on scans feel them.
const muchDead = 1e4

// tellVacuum says what vacuums took and left; it reports whether they left much.
func (e *pgEvents) tellVacuum(r *result) bool {
	var worst pgVacuum
	for _, v := range e.vacuums {
		if v.kept > worst.kept {
			worst = v
		}
	}
	for _, analyze := range []bool{false, true} {
		e.longestVacuum(r, analyze)
	}
	if worst.kept < muchDead {
		return false
	}
	line := fmt.Sprintf("%s dead rows of %s could not be removed yet, of %s rows that remain",
		count(worst.kept), worst.table, count(worst.remain))
	if worst.age > 0 {
		line += fmt.Sprintf(": what keeps them is %s transactions old", count(worst.age))
	}
	r.figure(line)
	r.next("psql -c 'SELECT pid, state, xact_start, backend_xmin FROM pg_stat_activity ORDER BY xact_start LIMIT 5; SELECT slot_name, xmin, catalog_xmin FROM pg_replication_slots'", "the oldest transaction, and slots that keep dead rows")
	return true
}

// longestVacuum says how many vacuums there were, or analyzes, and which took longest.
func (e *pgEvents) longestVacuum(r *result, analyze bool) {
	var longest pgVacuum
	n, timed, what, paced := 0, 0, "autovacuum", ", paced by vacuum_cost_delay where that is not 0"
	if analyze {
		what, paced = "autoanalyze", ""
	}
	for _, v := range e.vacuums {
		if v.analyze != analyze {
			continue
		}
		n++
		if v.timed {
			timed++
		}
		if v.took > longest.took {
			longest = v
		}
	}
	switch {
	case n == 0:
	case timed < n && longest.took == 0:
		r.figure(attach.Plural(n, what) + ", whose times are not all here")
	case longest.took == 0:
		r.figure(attach.Plural(n, what) + " of less than 10 ms")
	default:
		line := fmt.Sprintf("%s; the longest, of %s, took %s%s", attach.Plural(n, what),
			longest.table, dur(longest.took), paced)
		if longest.read > 0 {
			line += fmt.Sprintf("; %s of it reading", dur(longest.read))
		}
		r.figure(line)
	}
}
