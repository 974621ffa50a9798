package report

import (
	"sort"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/account"
)

// The ledger as a person reads it, in steps:
//
//  1. time without a CPU is one account for all neighbours that had it: on a busy machine they are many, and the row names the first
//  2. accounts of at least 1 % of the slow requests' time have a row of their own, the largest first, up to maxRows, and so
//     have those of a tenth of the usual ones': that slow requests did not wait there tells something, too
//  3. of the rest, those with the same class and cause share a row if together they reach as much
//  4. what is left is "other"; everything unexplained is one row, always there
//  5. shares and times are rounded so that what is printed adds up to the total that is printed

const maxRows = 12

// row is a line of the ledger.
type row struct {
	account     *Account // the one, or the largest of those folded
	folded      int      // accounts in it, when there is more than one
	other       bool
	unexplained bool
	ns, median  int64
	largest     int // of how many slow requests it is the largest account
	instead     []account.Instead
	stw, fence  int64 // of ns: while the world was stopped, in a ragged barrier
	turn        int64 // of ns: for others, whose turn was before

	share, slowDigits, medianDigits int64 // rounded: tenths of a percent; digits of the table's scale
}

// table is a ledger made ready.
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

func keyOf(a *Account) rowKey {
	k := rowKey{a.Class, a.Leaf, a.Actor, a.Site, a.Detail}
	if a.behindOthers() {
		k.detail = "\x00others"
	}
	return k
}

// behindOthers tells whether a is time in which a neighbour had the CPU.
func (a *Account) behindOthers() bool {
	return a.Leaf == account.LeafNoCPU && a.Detail != "" && a.Detail != account.OwnThreads && a.Detail != account.WakeUpLatency && a.Detail != account.Recorder
}

// neighbours adds up what stood behind different neighbours and is the same otherwise. as is in the order of size.
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
			sum := *out[i] // the report's own stays as it is
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

func newTable(l *Ledger) *table {
	slow, median := &l.Slow, &l.Median
	t := &table{slowRequests: slow.Requests, medianReq: median.Requests}
	order := make([]*Account, 0, len(slow.Accounts))
	for i := range slow.Accounts {
		order = append(order, &slow.Accounts[i])
	}
	sort.SliceStable(order, func(i, j int) bool { return order[i].NS > order[j].NS })
	order = neighbours(order)

	large := func(ns, usual int64) bool { return ns*100 >= slow.WallNS || usual > 0 && usual*10 >= median.WallNS }
	usual := map[rowKey]int64{}
	for i := range median.Accounts {
		usual[keyOf(&median.Accounts[i])] += median.Accounts[i].NS
	}
	rowOf := map[rowKey]int{}
	var rest []*Account
	for _, a := range order {
		if isUnexplained(a.Leaf) || !large(a.NS, usual[keyOf(a)]) || len(t.rows) == maxRows {
			rest = append(rest, a)
			continue
		}
		rowOf[keyOf(a)] = len(t.rows)
		t.rows = append(t.rows, row{account: a, folded: 1, ns: a.NS, largest: a.Largest, instead: a.Instead})
		t.rows[len(t.rows)-1].tag(a)
	}
	folds := map[rowKey]int64{}
	for _, a := range rest {
		folds[rowKey{class: a.Class, leaf: a.Leaf}] += a.NS
	}
	usualFolds := map[rowKey]int64{}
	for i := range median.Accounts {
		m := &median.Accounts[i]
		if _, ok := rowOf[keyOf(m)]; !ok && !isUnexplained(m.Leaf) {
			usualFolds[rowKey{class: m.Class, leaf: m.Leaf}] += m.NS
		}
	}
	own := len(t.rows)
	other, unexplained := row{other: true}, row{unexplained: true}
	for _, a := range rest {
		fold := rowKey{class: a.Class, leaf: a.Leaf}
		to := &other
		if isUnexplained(a.Leaf) {
			to = &unexplained
		} else if large(folds[fold], usualFolds[fold]) {
			i, ok := rowOf[fold]
			if !ok {
				i = len(t.rows)
				rowOf[fold] = i
				t.rows = append(t.rows, row{account: a})
			}
			to = &t.rows[i]
		}
		to.ns += a.NS
		to.largest += a.Largest
		to.folded++
		to.instead = append(to.instead[:len(to.instead):len(to.instead)], a.Instead...)
		to.tag(a)
	}
	// A fold's key has neither actor nor site; an account without both that has a row of its own takes the fold in.
	for i := range median.Accounts {
		m := &median.Accounts[i]
		switch j, ok := rowOf[keyOf(m)]; {
		case ok:
			t.rows[j].median += m.NS
		case isUnexplained(m.Leaf):
			unexplained.median += m.NS
		default:
			fold := rowKey{class: m.Class, leaf: m.Leaf}
			j, ok := rowOf[fold]
			switch {
			case ok && (j >= own || t.rows[j].folded > 1):
				if t.rows[j].median += m.NS; t.rows[j].ns == 0 {
					t.rows[j].folded++ // no slow request waited there
				}
			case !ok && large(0, usualFolds[fold]):
				rowOf[fold] = len(t.rows)
				t.rows = append(t.rows, row{account: m, folded: 1, median: m.NS})
			default:
				other.median += m.NS
			}
		}
	}
	sort.SliceStable(t.rows, func(i, j int) bool { return t.rows[i].ns > t.rows[j].ns })
	if other.ns > 0 || other.median > 0 {
		t.rows = append(t.rows, other)
	}
	t.rows = append(t.rows, unexplained)
	t.round(slow, median)
	return t
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

func (w *row) tag(a *Account) {
	w.stw += a.Tags.STWNS
	w.fence += a.Tags.BarrierNS
	w.turn += a.Tags.TurnNS
}

// within tells how much passed in pauses of the runtime, a path there and no cause, and how much for other requests.
func (w *row) within() string {
	if w.account == nil || w.other || w.unexplained || w.account.Leaf.Stopped() || w.account.Leaf == account.LeafSTWQueue {
		return ""
	}
	var parts []string
	for _, p := range []struct {
		ns    int64
		words string
	}{{w.stw, " while the world was stopped"}, {w.fence, " in a ragged barrier"}, {w.turn, " for others, whose turn came before"}} {
		if p.ns*100 >= w.ns && p.ns > 0 {
			parts = append(parts, share2(p.ns, w.ns)+p.words)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "of it " + strings.Join(parts, ", ")
}

// meanwhile tells what ran while the row's goroutines were runnable, largest first; "" where it is not known or the
// row is too small to matter.
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
		return account.Words(account.Named{Class: w.account.Class, Leaf: w.account.Leaf}, name) + " (" + plural(int64(w.folded), "account", "accounts") + ")"
	}
	return describe(w.account, name)
}

// describe names an account as its row and all evidence does.
func describe(a *Account, name func(string) string) string {
	return account.Words(account.Named{Class: a.Class, Leaf: a.Leaf, Actor: a.Actor, Site: a.Site, Detail: a.Detail, Holder: a.Holder}, name)
}

// fitted describes in at most max columns: import paths go first, then the middles of names.
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

// shortFunc leaves the directories of a symbol's import path out: "caddyhttp.(*Server).ServeHTTP". Slashes in type
// arguments and receivers stay.
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
