package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// part is a part of the report that can be printed alone.
type part struct {
	name  string
	print func(*page, *Report)
}

var parts = []part{
	{"requests", (*page).requests},
	{"ledger", (*page).ledger},
	{"findings", (*page).details},
	{"slowest", (*page).slowest},
	{"oncpu", (*page).onCPU},
	{"locks", (*page).locks},
	{"pauses", (*page).pauses},
	{"cpus", func(p *page, r *Report) { p.capacity(r); p.cpus(r) }},
	{"memory", (*page).memory},
	{"threads", (*page).threads},
	{"causes", (*page).lookedFor},
	{"seen", func(p *page, r *Report) { p.tiers(r); p.lost(r) }},
	{"cost", (*page).cost},
}

// Parts are the names of the parts of the report, in its order.
func Parts() (names []string) {
	for i := range parts {
		names = append(names, parts[i].name)
	}
	return names
}

// only prints the title and one part. A part that has nothing says so.
func (r *Report) only(w io.Writer, o TextOptions) error {
	p := newPage(o)
	p.title(r)
	for i := range parts {
		if parts[i].name != o.Only {
			continue
		}
		before := p.b.Len()
		parts[i].print(p, r)
		if p.b.Len() == before {
			p.line("")
			p.line("Nothing of it was recorded, or there was none: whystall causes, and -v for what was looked at.")
		}
		_, err := io.WriteString(w, p.b.String())
		return err
	}
	return fmt.Errorf("print report: no part %q: want %s", o.Only, strings.Join(Parts(), ", "))
}

const mostLocks = 10

// locks shows who waited for which lock, and who had it.
func (p *page) locks(r *Report) {
	var rows []account.Lock
	for _, l := range r.Locks {
		if l.WaitNS > 0 && len(rows) < mostLocks {
			rows = append(rows, l)
		}
	}
	if len(rows) > 0 {
		p.heading("LOCKS", "of Go, by the time that slow requests waited for them")
		p.line("  %9s %9s %9s %6s  %s", "slow", "waited", "waits", "queue", "taken at; who had it meanwhile")
		for i := range rows {
			l := &rows[i]
			p.par(fmt.Sprintf("  %9s %9s %9s %6d  ", finding.Duration(l.SlowNS),
				finding.Duration(l.WaitNS), count(l.Waits), l.MaxQueue),
				strings.Join(l.Sites, ", ")+had(l.Holders))
		}
	}
	if r.Kernel == nil || len(r.Kernel.Futexes) == 0 {
		return
	}
	p.heading("FUTEXES", "locks, conditions and notes that its threads waited for")
	p.line("  %9s %9s %6s  %-12s %s", "waited", "waits", "queue", "kind", "what; who had it meanwhile")
	for i := range r.Kernel.Futexes {
		f := &r.Kernel.Futexes[i]
		if i == mostLocks {
			break
		}
		name := f.Name
		if name == "" {
			name = fmt.Sprintf("at 0x%x", f.Address)
		}
		p.par(fmt.Sprintf("  %9s %9s %6d  %-12s ", finding.Duration(f.WaitNS), count(f.Waits),
			f.MaxQueue, middle(string(f.Kind), 12)), name+had(f.Holders))
	}
}

// had names who had a lock.
func had(l []account.Instead) string {
	var all int64
	for i := range l {
		all += l[i].NS
	}
	if s := whoList(l, all, 3); s != "" {
		return "; " + s
	}
	return ""
}
