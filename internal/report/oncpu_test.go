package report

import (
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// Own computing is no stall, unless a finding says that others wait for it.
func TestComputingThatStalls(t *testing.T) {
	works := &account.OnCPU{Samples: 500, NS: 90 * ms, Works: []account.Work{{Kind: account.WorkOwn, Name: "keys", NS: 85 * ms, Samples: 470}, {Kind: account.WorkFault, NS: 5 * ms, Samples: 30}}}
	column := Column{Requests: 10, WallNS: 100 * ms, OnCPU: works}
	column.Accounts = []Account{{Account: account.Account{Class: account.ClassOwn, Leaf: account.LeafOnCPU, NS: 90 * ms}}}
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
		r.Findings = []finding.Finding{{Cause: "x", Scope: c.scope, Claims: []finding.Claim{{Leaf: string(account.LeafOnCPU), NS: c.claim}}}}
		if got := r.computes(); got == "" || strings.Contains(got, "no stall") == c.stall {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
