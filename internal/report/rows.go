package report

import (
	"sort"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/account"
)

// The ledger as a person reads it, in steps:
//
//  1. Time without a CPU is one account for all neighbours that had it. On a busy machine there are
//     many, and the row names the first (neighbours).
//  2. Accounts of at least 1 % of the slow requests' time have a row each, the largest first, up to
//     maxRows. So have those of a tenth of the usual requests' time: it is worth knowing that slow
//     requests did not wait there (ownRows).
//  3. The rest share rows by class and cause, if together they reach as much (fold).
//  4. What is left is "other". Everything unexplained is one row, which is always there.
//  5. Shares and times are rounded so that they add up to the printed total (round).

const maxRows = 12

// row is a line of the ledger.
type row struct {
	account     *Account // the one, or the largest of those that share the row
	folded      int      // how many accounts share it
	other       bool
	unexplained bool
	ns, median  int64
	largest     int // in how many slow requests it is the largest account
	instead     []account.Instead
	stw, fence  int64 // of ns: while the world was stopped, in a ragged barrier
	turn        int64 // of ns: for others, whose turn came first

	share                    int64 // rounded, in tenths of a percent
	slowDigits, medianDigits int64 // rounded, in digits of the table's scale
}

// table is a ledger that is ready to be printed.
type table struct {
	rows                    []row
	scale                   scale
	slowTotal, medianTotal  int64 // digits of the scale, per request
	slowRequests, medianReq int
}

type rowKey struct {
	class               account.Class
	leaf                account.Leaf
	actor, site, detail string
}

// foldOf is the key of a row that accounts share.
func foldOf(a *Account) rowKey { return rowKey{class: a.Class, leaf: a.Leaf} }

func keyOf(a *Account) rowKey {
	k := rowKey{a.Class, a.Leaf, a.Actor, a.Site, a.Detail}
	if a.behindOthers() {
		k.detail = "\x00others"
	}
	return k
}

// behindOthers reports whether a is time in which a neighbour had the CPU.
func (a *Account) behindOthers() bool {
	return a.Leaf == account.LeafNoCPU && a.Detail != "" && a.Detail != account.OwnThreads &&
		a.Detail != account.WakeUpLatency && a.Detail != account.Recorder
}

// neighbours adds up accounts that differ only in the neighbour which had the CPU. as is ordered by
// size.
func neighbours(as []*Account) (out []*Account) {
	at := map[rowKey]int{}
	names := map[int][]string{}
	for _, a := range as {
		i, ok := at[keyOf(a)]
		if !a.behindOthers() || !ok {
			at[keyOf(a)] = len(out)
			names[len(out)] = []string{a.Detail}
			out = append(out, a)
			continue
		}
		if len(names[i]) == 1 {
			sum := *out[i] // the report's own account stays as it is
			out[i] = &sum
		}
		s := out[i]
		s.NS += a.NS
		s.Largest += a.Largest
		s.Instead = append(s.Instead[:len(s.Instead):len(s.Instead)], a.Instead...)
		s.Tags.STWNS += a.Tags.STWNS
		s.Tags.BarrierNS += a.Tags.BarrierNS
		names[i] = append(names[i], a.Detail)
		s.Detail = strings.Join(names[i][:min(2, len(names[i]))], ", ")
		if n := len(names[i]) - 2; n > 0 {
			s.Detail += ", " + strconv.Itoa(n) + " more"
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].NS > out[j].NS })
	return out
}

func isUnexplained(leaf account.Leaf) bool {
	return leaf.Unexplained() || leaf == account.LeafLockUnseen
}

// layout is a table that is being made.
type layout struct {
	table
	slow, median       *Column
	rowOf              map[rowKey]int // index in rows
	own                int            // how many rows are of one account: the first ones
	slowFold           map[rowKey]int64
	usualFold          map[rowKey]int64 // ns of the accounts that share a row, by class and cause
	other, unexplained row
}

func newTable(l *Ledger) *table {
	t := &layout{
		table: table{slowRequests: l.Slow.Requests, medianReq: l.Median.Requests},
		slow:  &l.Slow, median: &l.Median, rowOf: map[rowKey]int{}, slowFold: map[rowKey]int64{},
		usualFold: map[rowKey]int64{},
		other:     row{other: true}, unexplained: row{unexplained: true},
	}
	t.fold(t.ownRows())
	t.addUsual()
	sort.SliceStable(t.rows, func(i, j int) bool { return t.rows[i].ns > t.rows[j].ns })
	if t.other.ns > 0 || t.other.median > 0 {
		t.rows = append(t.rows, t.other)
	}
	t.rows = append(t.rows, t.unexplained)
	t.round(t.slow, t.median)
	return &t.table
}

// large reports whether so much time of slow and of usual requests is worth a row.
func (t *layout) large(ns, usual int64) bool {
	return ns*100 >= t.slow.WallNS || usual > 0 && usual*10 >= t.median.WallNS
}

// ownRows gives large accounts a row each, and returns the rest.
func (t *layout) ownRows() (rest []*Account) {
	order := make([]*Account, 0, len(t.slow.Accounts))
	for i := range t.slow.Accounts {
		order = append(order, &t.slow.Accounts[i])
	}
	sort.SliceStable(order, func(i, j int) bool { return order[i].NS > order[j].NS })
	usual := map[rowKey]int64{}
	for i := range t.median.Accounts {
		usual[keyOf(&t.median.Accounts[i])] += t.median.Accounts[i].NS
	}
	for _, a := range neighbours(order) {
		if isUnexplained(a.Leaf) || !t.large(a.NS, usual[keyOf(a)]) || len(t.rows) == maxRows {
			rest = append(rest, a)
			continue
		}
		t.rowOf[keyOf(a)] = len(t.rows)
		t.rows = append(t.rows, row{account: a})
		t.rows[len(t.rows)-1].add(a)
	}
	t.own = len(t.rows)
	return rest
}

// fold gives the rest rows by class and cause where that is large enough, and the row "other".
func (t *layout) fold(rest []*Account) {
	for _, a := range rest {
		t.slowFold[foldOf(a)] += a.NS
	}
	for i := range t.median.Accounts {
		m := &t.median.Accounts[i]
		if _, ok := t.rowOf[keyOf(m)]; !ok && !isUnexplained(m.Leaf) {
			t.usualFold[foldOf(m)] += m.NS
		}
	}
	for _, a := range rest {
		key := foldOf(a)
		to := &t.other
		if isUnexplained(a.Leaf) {
			to = &t.unexplained
		} else if t.large(t.slowFold[key], t.usualFold[key]) {
			i, ok := t.rowOf[key]
			if !ok {
				i = len(t.rows)
				t.rowOf[key] = i
				t.rows = append(t.rows, row{account: a})
			}
			to = &t.rows[i]
		}
		to.add(a)
	}
}

// addUsual adds the usual requests' time to the rows. A large part of it that slow requests did not
// spend gets a row of its own.
func (t *layout) addUsual() {
	for i := range t.median.Accounts {
		m := &t.median.Accounts[i]
		if j, ok := t.rowOf[keyOf(m)]; ok {
			t.rows[j].median += m.NS
			continue
		}
		key := foldOf(m)
		j, ok := t.rowOf[key]
		switch {
		case isUnexplained(m.Leaf):
			t.unexplained.median += m.NS
		// A fold's key has neither actor nor site. It may be the row of one account without both,
		// which takes the usual time only if others are folded into it.
		case ok && (j >= t.own || t.rows[j].folded > 1):
			if t.rows[j].median += m.NS; t.rows[j].ns == 0 {
				t.rows[j].folded++ // no slow request waited there
			}
		case !ok && t.large(0, t.usualFold[key]):
			t.rowOf[key] = len(t.rows)
			t.rows = append(t.rows, row{account: m, folded: 1, median: m.NS})
		default:
			t.other.median += m.NS
		}
	}
}

// add adds an account of slow requests to the row.
func (w *row) add(a *Account) {
	w.ns += a.NS
	w.largest += a.Largest
	w.folded++
	w.instead = append(w.instead[:len(w.instead):len(w.instead)], a.Instead...)
	w.stw += a.Tags.STWNS
	w.fence += a.Tags.BarrierNS
	w.turn += a.Tags.TurnNS
}

func (t *table) round(slow, median *Column) {
	ns, med := make([]int64, len(t.rows)), make([]int64, len(t.rows))
	for i := range t.rows {
		ns[i], med[i] = t.rows[i].ns, t.rows[i].median
	}
	t.scale = scaleFor(perRequest(slow))
	t.slowTotal = (perRequest(slow) + t.scale.digit/2) / t.scale.digit
	t.medianTotal = (perRequest(median) + t.scale.digit/2) / t.scale.digit
	shares, s, m := apportion(ns, 1000), apportion(ns, t.slowTotal), apportion(med, t.medianTotal)
	for i := range t.rows {
		t.rows[i].share, t.rows[i].slowDigits, t.rows[i].medianDigits = shares[i], s[i], m[i]
	}
}

func perRequest(c *Column) int64 {
	if c.Requests == 0 {
		return 0
	}
	return c.WallNS / int64(c.Requests)
}

// within says how much of the row passed in pauses of the runtime, which are a path and no cause,
// and how much for other requests.
func (w *row) within() string {
	if w.account == nil || w.other || w.unexplained || w.account.Leaf.Stopped() ||
		w.account.Leaf == account.LeafSTWQueue {
		return ""
	}
	var parts []string
	for _, p := range []struct {
		ns    int64
		words string
	}{{w.stw, " while the world was stopped"}, {w.fence, " in a ragged barrier"},
		{w.turn, " for others, whose turn came before"}} {
		if p.ns*100 >= w.ns && p.ns > 0 {
			parts = append(parts, share2(p.ns, w.ns)+p.words)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "of it " + strings.Join(parts, ", ")
}

// meanwhile says what ran while the row's goroutines were runnable, the largest first; "" where it
// is not known or the row is too small to matter.
func (w *row) meanwhile(name func(string) string) string {
	if w.share < 100 || len(w.instead) == 0 || w.other || w.unexplained {
		return ""
	}
	type key struct {
		who  string
		kind account.InsteadKind
	}
	sums, order, whole := map[key]int64{}, []key{}, int64(0)
	for _, i := range w.instead {
		k := key{i.Who, i.Kind}
		if _, ok := sums[k]; !ok {
			order = append(order, k)
		}
		sums[k] += i.NS
		whole += i.NS
	}
	sort.SliceStable(order, func(i, j int) bool { return sums[order[i]] > sums[order[j]] })
	var parts []string
	var rest int64
	for i, k := range order {
		if i >= 3 || sums[k]*25 < whole {
			rest += sums[k]
			continue
		}
		who := name(k.who)
		switch w := (account.Instead{Kind: k.kind}); {
		case k.kind == account.InsteadRequest:
			who = "other requests (" + who + ")"
		case w.Lacked():
			// The P was held by a thread that was not at work.
			who = strings.TrimSpace(string(k.kind) + " (" + who + ")")
		}
		parts = append(parts, who+" "+share2(sums[k], whole))
	}
	if rest*100 >= whole {
		parts = append(parts, "others "+share2(rest, whole))
	}
	return "meanwhile: " + strings.Join(parts, ", ")
}

func share2(ns, whole int64) string {
	return strconv.FormatInt((ns*100+whole/2)/max(whole, 1), 10) + " %"
}

// label describes a row in words; name prints a symbol as the caller wants it.
func (w *row) label(name func(string) string) string {
	switch {
	case w.unexplained:
		return "unexplained"
	case w.other && w.folded == 0: // of the usual requests only
		return "other"
	case w.other:
		return "other (" + plural(int64(w.folded), "account", "accounts") + " below 1 %)"
	case w.folded > 1:
		return account.Words(account.Named{Class: w.account.Class, Leaf: w.account.Leaf}, name) +
			" (" + plural(int64(w.folded), "account", "accounts") + ")"
	}
	return describe(w.account, name)
}

// describe names an account as its row and all evidence do.
func describe(a *Account, name func(string) string) string {
	return account.Words(account.Named{Class: a.Class, Leaf: a.Leaf, Actor: a.Actor, Site: a.Site,
		Detail: a.Detail, Holder: a.Holder}, name)
}

// fitted describes in at most max columns: it drops import paths first, then the middles of names.
func fitted(max int, describe func(name func(string) string) string) string {
	s := describe(Printable)
	if width(s) <= max {
		return s
	}
	s = describe(func(n string) string { return Printable(shortFunc(n)) })
	for limit := max; width(s) > max && limit >= 12; limit-- {
		s = describe(func(n string) string { return middle(Printable(shortFunc(n)), limit) })
	}
	return middle(s, max)
}

// shortFunc leaves out the directories of a symbol's import path: "caddyhttp.(*Server).ServeHTTP".
// Slashes in type arguments and receivers stay.
func shortFunc(s string) string {
	end := strings.IndexAny(s, "([ ")
	if end < 0 {
		end = len(s)
	}
	if i := strings.LastIndexByte(s[:end], '/'); i >= 0 {
		return s[i+1:]
	}
	return s
}
