package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// beside reports quota and steal, which are not part of the sum.
func (c *CPUs) beside() string {
	var parts []string
	if c.Quota > 0 {
		s := "quota " + cpus(c.Quota)
		if c.QuotaAt != "" {
			s += " at " + c.QuotaAt
		}
		if c.QuotaNS > 0 && c.UsedNS > 0 {
			s += fmt.Sprintf(": %s of %s used, %s", finding.Duration(c.UsedNS),
				finding.Duration(c.QuotaNS), percent(share(c.UsedNS, c.QuotaNS)))
		}
		parts = append(parts, s)
	} else {
		parts = append(parts, "no CPU quota")
	}
	if c.StealNS > 0 {
		parts = append(parts, "the hypervisor took "+finding.Duration(c.StealNS)+" from the host's CPUs")
	}
	return strings.Join(parts, "; ")
}

// beside reports what is not part of the sum.
func (m *Memory) beside() string {
	var parts []string
	if m.Begin > 0 && m.End > 0 && m.Begin != m.End {
		parts = append(parts, fmt.Sprintf("%s at the start, %s at the end", finding.Bytes(m.Begin),
			finding.Bytes(m.End)))
	}
	if m.Limit > 0 {
		parts = append(parts, "its limit is "+finding.Bytes(m.Limit))
	}
	if m.AnonHuge > 0 {
		parts = append(parts, finding.Bytes(m.AnonHuge)+" of it is in huge pages")
	}
	return strings.Join(parts, "; ")
}

type memoryRow struct {
	MemoryRow
	share string
}

// rows are the accounts that hold something, with shares that add up.
func (m *Memory) rows() (rows []memoryRow) {
	b := make([]int64, len(m.Accounts))
	for i := range m.Accounts {
		b[i] = m.Accounts[i].Bytes
	}
	for i, n := range apportion(b, 1000) {
		if b[i] != 0 {
			rows = append(rows, memoryRow{m.Accounts[i], tenths(n) + " %"})
		}
	}
	return rows
}

// whoList names the n largest of a list with their shares of whole.
func whoList(l []account.Instead, whole int64, n int) string {
	l = slices.Clone(l)
	slices.SortStableFunc(l, func(a, b account.Instead) int { return int(min(1, max(-1, b.NS-a.NS))) })
	var parts []string
	var rest int64
	for i, w := range l {
		if i < n && w.NS*100 >= whole {
			parts = append(parts, middle(Printable(shortFunc(w.Who)), 40)+" "+share2(w.NS, whole))
		} else {
			rest += w.NS
		}
	}
	if rest*100 >= whole && rest > 0 {
		parts = append(parts, "others "+share2(rest, whole))
	}
	return strings.Join(parts, ", ")
}
