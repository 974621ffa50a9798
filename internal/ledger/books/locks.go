package books

import (
	"github.com/whystall/whystall/internal/account"
)

// Both passes, that over a trace's goroutines and that over threads, tell of a lock what the slow requests lost behind it.

// mostLocks bounds the table.
const MostLocks = 100

// lockSum adds up, into l, what slow requests lost by account: between holders, behind one that was not seen (unseen), behind a known one.
// held, where it is there, hears of each account of the last kind.
func (p *Books) SumLock(l *account.Lock, ns map[uint32]int64, unseen Leaf, held func(id uint32, key Key)) {
	l.HolderNS = map[string]int64{}
	holders := map[string]int64{}
	for id, ns := range ns {
		key := p.acc.list[id]
		l.SlowNS += ns
		switch key.Leaf {
		case LeafLockBetween:
			l.BetweenNS += ns
			continue
		case unseen:
			l.UnseenNS += ns
			continue
		}
		holders[p.names.Func(key.Actor)] += ns
		l.HolderNS[string(leafOf[key.Leaf])] += ns
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
