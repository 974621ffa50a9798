package report

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/report/webpage"
)

// pageLedger is the ledger's rows with all that is known of each.
func (r *Report) pageLedger(t *table) *webpage.Ledger {
	l := &webpage.Ledger{
		Unit: t.scale.name, Slow: t.slowRequests, Usual: t.medianReq,
		SlowNS: perRequest(&r.Ledger.Slow), UsedNS: perRequest(&r.Ledger.Median),
		Total: [2]string{t.scale.print(t.slowTotal), "-"}, Note: r.notLookedInto(),
	}
	if t.medianReq > 0 {
		l.Total[1] = t.scale.print(t.medianTotal)
	}
	for i := range t.rows {
		w := &t.rows[i]
		row := webpage.Row{Leaf: w.leaf(), Label: w.label(unchanged), Share: tenths(w.share) + " %",
			Slow: t.scale.print(w.slowDigits), Usual: "-", Largest: w.largest, More: w.more()}
		row.SlowNS = w.ns / int64(max(1, t.slowRequests))
		if t.medianReq > 0 {
			row.Usual, row.UsualNS = t.scale.print(w.medianDigits), w.median/int64(t.medianReq)
		}
		l.Rows = append(l.Rows, row)
	}
	return l
}

// leaf is what the row is coloured by.
func (w *row) leaf() string {
	switch {
	case w.unexplained:
		return "unexplained"
	case w.other || w.account == nil:
		return "other"
	}
	return string(w.account.Leaf)
}

// more is what the page says of a row when it is asked.
func (w *row) more() (fs []webpage.Fact) {
	add := func(name, format string, args ...any) {
		fs = append(fs, webpage.Fact{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	for _, s := range []string{w.within(), w.meanwhile(unchanged)} {
		if s != "" {
			add("", "%s", sentence(s))
		}
	}
	a := w.account
	if a == nil || w.folded > 1 {
		return fs
	}
	if a.ExcessNS > 0 {
		add("beyond usual requests", "%s in all", finding.Duration(a.ExcessNS))
	}
	if a.Requests > 0 {
		add("in", "%s, the largest part of %d", plural(int64(a.Requests), "slow request", "slow requests"), a.Largest)
	}
	if a.MaxQueue > 1 {
		add("most at once", "%s", plural(int64(a.MaxQueue), "request", "requests"))
	}
	for _, s := range a.Sites {
		add("at", "%s %s", s.Func, finding.Duration(s.NS))
	}
	for _, s := range a.Through {
		add("through the lock in", "%s %s", s.Func, finding.Duration(s.NS))
	}
	for _, h := range a.Holders {
		add("held by", "%s %s", h.Who, finding.Duration(h.NS))
	}
	return fs
}

// rowIndex finds the row of the ledger that an account belongs to.
type rowIndex struct {
	own, shared        map[rowKey]int
	anywhere           map[rowKey]int // own without where the actor waited, which single requests lack
	other, unexplained int
	known              bool
}

func (t *table) index() rowIndex {
	x := rowIndex{own: map[rowKey]int{}, shared: map[rowKey]int{}, anywhere: map[rowKey]int{},
		other: -1, unexplained: -1, known: true}
	for i := range t.rows {
		switch w := &t.rows[i]; {
		case w.unexplained:
			x.unexplained = i
		case w.other:
			x.other = i
		case w.folded > 1:
			x.shared[foldOf(w.account)] = i
		default:
			x.own[keyOf(w.account)] = i
			if key := withoutDetail(w.account); w.account.Detail != "" {
				x.anywhere[key] = i
			}
		}
	}
	return x
}

// of is the index of the row, -1 where there is none.
func (x rowIndex) of(a *account.Account) int {
	if !x.known {
		return -1
	}
	if a.Leaf.Unexplained() || a.Leaf == account.LeafLockUnseen {
		return x.unexplained
	}
	b := &Account{Account: *a}
	if i, ok := x.own[keyOf(b)]; ok {
		return i
	}
	if i, ok := x.anywhere[withoutDetail(b)]; ok && a.Detail == "" {
		return i
	}
	if i, ok := x.shared[foldOf(b)]; ok {
		return i
	}
	return x.other
}

func withoutDetail(a *Account) rowKey {
	k := keyOf(a)
	k.detail = ""
	return k
}
