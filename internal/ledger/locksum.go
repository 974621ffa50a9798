package ledger

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/timeline"
)

// Both passes, that over a trace's goroutines and that over threads, tell of a lock what the slow requests lost behind it.

// mostLocks bounds the table.
const mostLocks = 100

// lockSum adds up, into l, what slow requests lost by account: between holders, behind one that was not seen (unseen), behind a known one.
// held, where it is there, hears of each account of the last kind.
func (acc *accounts) lockSum(l *account.Lock, ns map[uint32]int64, unseen leafCode, name func(timeline.FuncID) string, held func(id uint32, key accountKey)) {
	l.HolderNS = map[string]int64{}
	holders := map[string]int64{}
	for id, ns := range ns {
		key := acc.list[id]
		l.SlowNS += ns
		switch key.leaf {
		case codeLockBetween:
			l.BetweenNS += ns
			continue
		case unseen:
			l.UnseenNS += ns
			continue
		}
		holders[name(key.actor)] += ns
		l.HolderNS[string(leafOf[key.leaf])] += ns
		if held != nil {
			held(id, key)
		}
	}
	for who, ns := range holders {
		l.Holders = append(l.Holders, account.Instead{Who: who, Kind: account.InsteadHolder, NS: ns})
	}
	account.SortInstead(l.Holders)
	l.Holders = l.Holders[:min(len(l.Holders), account.MostInstead)]
}
