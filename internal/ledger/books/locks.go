package books

import (
	"github.com/whystall/whystall/internal/account"
)

// MostLocks is how many locks a result lists.
const MostLocks = 100

// SumLock adds up, into l, what slow requests lost behind one lock. Both owners of books need it,
// that of goroutines and that of threads. Ns is the time lost, by account. It is of three kinds:
// between holders, behind a holder that was not seen, whose leaf is unseen, and behind known
// holders. If each is not nil, it is called for every account of the third kind.
func (b *Books) SumLock(l *account.Lock, ns map[uint32]int64, unseen Leaf, each func(id uint32, key Key)) {
	l.HolderNS = map[string]int64{}
	holders := map[string]int64{}
	for id, ns := range ns {
		key := b.accounts.keys[id]
		l.SlowNS += ns
		switch key.Leaf {
		case LeafLockBetween:
			l.BetweenNS += ns
			continue
		case unseen:
			l.UnseenNS += ns
			continue
		}
		holders[b.names.Func(key.Actor)] += ns
		l.HolderNS[key.Leaf.String()] += ns
		if each != nil {
			each(id, key)
		}
	}
	l.Holders = account.InsteadByName(holders, account.InsteadHolder)
}
