package capacity

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched"
)

const (
	mostSpanSites = 10      // in a list
	mostSiteNames = 1 << 12 // bounds the names that a program may add
)

// spanSum is an account.Spans while it is added up.
type spanSum struct {
	out     *account.Spans
	flags   map[string]int64
	sites   Sites
	threads map[string]int64 // by name
}

func newSpanSum(out *account.Spans) *spanSum {
	return &spanSum{out: out, flags: map[string]int64{}, sites: Sites{}, threads: map[string]int64{}}
}

// add adds a span: thread tid spent ns in it from begin on, in the program at the stack user. Flag
// is what the list of flags names it by, "" for nothing. A moment weighs 1 ns in the lists, so that
// kinds of moments are ordered by their number.
func (x *spanSum) add(k *sched.Timeline, tid uint32, begin, ns int64, user uint32, flag string) {
	x.out.N++
	x.out.NS += ns
	x.out.Max = max(x.out.Max, ns)
	weight := max(ns, 1)
	if flag != "" {
		x.flags[flag] += weight
	}
	if p := sched.PlaceOf(k, user); p.Func != "" {
		x.sites.Add(account.Site{Func: p.Func, File: p.Module}, ns)
	}
	t, _ := k.Name(tid, begin)
	x.threads[sched.PlainComm(t.Comm)] += weight
}

// write fills in the lists by flag and by place.
func (x *spanSum) write() {
	x.out.Flags = account.InsteadByName(x.flags, account.InsteadFlag)
	x.out.Sites = x.sites.List()
}

// writeThreads fills in the list by thread.
func (x *spanSum) writeThreads() {
	x.out.By = account.InsteadByName(x.threads, account.InsteadThread)
}

// Sites adds up time by function.
type Sites map[string]*account.Site

// Add adds ns, and one to how often it was. Beyond the bound no new function is added.
func (m Sites) Add(s account.Site, ns int64) {
	x := m[s.Func]
	if x == nil {
		if len(m) >= mostSiteNames {
			return
		}
		x = &s
		m[s.Func] = x
	}
	x.NS += ns
	x.N++
}

// List gives the largest. It is not nil, so that a report without any has an empty list.
func (m Sites) List() []account.Site {
	l := make([]account.Site, 0, len(m))
	for _, s := range m {
		l = append(l, *s)
	}
	slices.SortFunc(l, func(a, b account.Site) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(b.N, a.N), cmp.Compare(a.Func, b.Func))
	})
	return l[:min(len(l), mostSpanSites)]
}
