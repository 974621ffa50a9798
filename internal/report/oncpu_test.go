package report

import (
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// Own computing is no stall, unless a finding says that others wait for it.
func TestComputingThatStalls(t *testing.T) {
	works := &account.OnCPU{Samples: 500, NS: 90 * ms,
		Works: []account.Work{{Kind: account.WorkOwn, Name: "keys", NS: 85 * ms, Samples: 470},
			{Kind: account.WorkFault, NS: 5 * ms, Samples: 30}}}
	column := Column{Requests: 10, WallNS: 100 * ms, OnCPU: works}
	column.Accounts = []Account{{Account: account.Account{Class: account.ClassOwn,
		Leaf: account.LeafOnCPU, NS: 90 * ms}}}
	for _, c := range []struct {
		name  string
		claim int64
		scope finding.Scope
		stall bool
	}{
		{"nothing found", 0, finding.Slow, false},
		{"its faults", 5 * ms, finding.Slow, false},
		{"all of it, behind which others wait", 89 * ms, finding.Slow, true},
		{"of usual requests", 89 * ms, finding.Usual, false},
	} {
		r := &Report{Ledger: Ledger{Slow: column}}
		r.Findings = []finding.Finding{{Cause: "x", Scope: c.scope,
			Claims: []finding.Claim{{Leaf: string(account.LeafOnCPU), NS: c.claim}}}}
		if got := r.computes(); got == "" || strings.Contains(got, "no stall") == c.stall {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	r := &Report{Ledger: Ledger{Slow: column}}
	r.Findings = []finding.Finding{{Cause: "x", Scope: finding.Slow,
		Claims: []finding.Claim{{Leaf: string(account.LeafBehindTurn), NS: 5 * ms}}}}
	if got := r.computes(); got == "" || strings.Contains(got, "no stall") {
		t.Errorf("others lie in their sockets meanwhile: %q", got)
	}
}

// Where allocation takes most of the time, the sentence says so, and where it is asked for.
func TestAllocates(t *testing.T) {
	for _, c := range []struct {
		clearing int64
		want     []string
	}{
		{70, []string{"75.0 % of slow requests' time is the allocation of memory", "cleared", "main.sheet"}},
		{10, []string{""}},
	} {
		on := &account.OnCPU{NS: 100, Samples: 50, Works: []account.Work{
			{Kind: account.WorkAlloc, Name: account.AllocClears, Samples: 35, NS: c.clearing,
				Sites: []account.Site{{Func: "main.sheet", NS: c.clearing, N: 35}}},
			{Kind: account.WorkAlloc, Samples: 3, NS: 5},
		}}
		column := Column{Requests: 1, WallNS: 100, OnCPU: on}
		column.Accounts = []Account{{Account: account.Account{Class: account.ClassOwn,
			Leaf: account.LeafOnCPU, NS: 100}}}
		r := &Report{Ledger: Ledger{Slow: column}}
		got := r.computes()
		for _, w := range c.want {
			if w == "" && got != "" || !strings.Contains(got, w) {
				t.Errorf("clearing %d: %q, want %q in it", c.clearing, got, w)
			}
		}
	}
}
