package books

import (
	"testing"

	"github.com/whystall/whystall/internal/account"
)

// TestReason: what had no CPU behind several programs is one part of the line, and says how much of
// it was behind the largest.
func TestReason(t *testing.T) {
	queued := func(who string, ns int64) account.Account {
		return account.Account{Leaf: account.LeafNoCPU, Class: account.ClassOwn, Detail: who, NS: ns}
	}
	network := account.Account{Leaf: account.LeafNetwork, Class: account.ClassOwn, Site: "main.get", NS: 9e6}
	busy := account.Account{Leaf: account.LeafOnCPU, Class: account.ClassOwn, NS: 9e6,
		OnCPU: &account.OnCPU{NS: 10, Samples: 20, Works: []account.Work{
			{Kind: account.WorkOwn, Name: "main.f", NS: 4}, {Kind: account.WorkFault, Name: "zeroing",
				NS: 3}, {Kind: account.WorkFault, Name: "charging", NS: 3}}}}
	own := busy
	own.OnCPU = &account.OnCPU{NS: 10, Samples: 20,
		Works: []account.Work{{Kind: account.WorkOwn, Name: "main.f", NS: 6},
			{Kind: account.WorkOwn, Name: "main.g", NS: 4}}}
	for _, x := range []struct {
		accounts []account.Account
		want     string
	}{
		{[]account.Account{network, queued("a", 1e6)}, "9.0 ms network in main.get"},
		{[]account.Account{network, queued("a", 4e6)}, "9.0 ms network in main.get; 4.0 ms no CPU (a)"},
		{[]account.Account{network, queued("a", 9e6), queued("b", 1e6)},
			"10.0 ms no CPU (a); 9.0 ms network in main.get"},
		{[]account.Account{network, queued("a", 6e6), queued("b", 4e6)},
			"10.0 ms no CPU (mostly a); 9.0 ms network in main.get"},
		{[]account.Account{network, queued("a", 4e6), queued("b", 3e6), queued("c", 3e6)},
			"10.0 ms no CPU (3 programs, most of it a); 9.0 ms network in main.get"},
		{[]account.Account{busy}, "9.0 ms on CPU, of it 60 % page fault"},
		{[]account.Account{own}, "9.0 ms on CPU, of it 100 % own code, mostly main.f"},
	} {
		if got := reason(x.accounts, 19e6); got != x.want {
			t.Errorf("got %q, want %q", got, x.want)
		}
	}
}
