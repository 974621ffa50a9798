package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

// counted lists the groups that have a request to show. A group whose requests were all left out
// has none.
func (q *Requests) counted() []Group {
	return slices.DeleteFunc(slices.Clone(q.Groups), func(g Group) bool { return g.Count == 0 })
}

// leftOut says which requests were counted apart, "" if none were.
func (r *Report) leftOut() string {
	q := &r.Requests
	var parts []string
	if q.Open > 0 {
		parts = append(parts, count(q.Open)+" already running at the start or unfinished at the end")
	}
	for _, l := range q.LeftOut {
		parts = append(parts, count(l.N)+" "+l.Reason)
	}
	if q.NotKept > 0 {
		parts = append(parts, count(q.NotKept)+" slow ones whose history was not kept")
	}
	if q.Limited > 0 {
		parts = append(parts, count(q.Limited)+" whose explanation reached a limit")
	}
	return strings.Join(parts, ", ")
}

// why says in one line where the time went: its largest parts, in the words of the ledger above.
func (s *Request) why() string {
	var parts []string
	for i := range s.Accounts {
		a := &s.Accounts[i]
		if len(parts) == 2 || i == 1 && (s.Accounts[0].NS*2 >= s.WallNS || a.NS*5 < s.WallNS) {
			break
		}
		parts = append(parts, finding.Duration(a.NS)+" "+describe(a, shortFunc))
	}
	if len(parts) == 0 {
		return s.Reason
	}
	return strings.Join(parts, "; ")
}

// when prints the start as a time of day, with the date where that is not the heading's.
func (s *Request) when(day string) string {
	if s.UTC == nil {
		return fmt.Sprintf("+%d.%03d s", s.OffsetNS/1e9, s.OffsetNS%1e9/1e6)
	}
	t := clock(*s.UTC, len("2006-01-02T15:04:05.000"))
	if rest, ok := strings.CutPrefix(t, day+" "); ok && day != "" {
		return rest
	}
	return t
}

// notLookedInto reports time that has a name and may still hide something; "" if there is none.
func (r *Report) notLookedInto() string {
	c, n := &r.Ledger.Slow, &r.NotLookedAt
	if c.Requests == 0 || n.RunningNS+n.SyscallNS == 0 || r.Kernel != nil {
		return ""
	}
	each := func(ns int64) string {
		return finding.Duration(ns/int64(c.Requests)) + " (" + percent(share(ns, c.WallNS)) + ")"
	}
	return "on CPU " + each(n.RunningNS) + " and syscall " + each(n.SyscallNS) +
		" a request: only kernel evidence shows whether threads really ran and what syscalls waited for."
}
