package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/report/webpage"
)

// pageWaits is where slow requests waited, as a tree.
func pageWaits(w account.Waits) (out webpage.Waits) {
	for _, n := range w {
		out.Parent, out.Name = append(out.Parent, n.Parent), append(out.Name, n.Name)
		out.Leaf, out.NS = append(out.Leaf, string(n.Leaf)), append(out.NS, n.NS)
	}
	return out
}

// pageMostLocks is how many locks the page has.
const pageMostLocks = 20

// pageLocks is the locks of the program, then those of the process that the kernel saw.
func pageLocks(l *account.Result) (out []webpage.Lock) {
	for i := range l.Locks {
		k := &l.Locks[i]
		p := webpage.Lock{Name: strings.Join(k.Sites, ", "), SlowNS: k.SlowNS, Waits: k.Waits,
			WaitNS: k.WaitNS, MaxQueue: k.MaxQueue, Holders: amounts(k.Holders), Doing: doing(k.HolderNS)}
		for _, f := range k.Stack {
			p.Stack = append(p.Stack, frame(f))
		}
		out = append(out, p)
	}
	if l.Kernel != nil {
		for i := range l.Kernel.Futexes {
			f := &l.Kernel.Futexes[i]
			if !f.Kind.Lock() {
				continue
			}
			out = append(out, webpage.Lock{Name: strings.TrimSpace(f.Name + " " + string(f.Kind)),
				Waits: f.Waits, WaitNS: f.WaitNS, MaxQueue: f.MaxQueue, Holders: amounts(f.Holders),
				Doing: doing(f.HolderNS)})
		}
	}
	out = slices.DeleteFunc(out, func(k webpage.Lock) bool { return k.WaitNS == 0 && k.SlowNS == 0 })
	return out[:min(len(out), pageMostLocks)]
}

func frame(f account.Site) webpage.Frame {
	p := webpage.Frame{Func: f.Func, At: f.File}
	if f.Line > 0 {
		p.At = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return p
}

func amounts(l []account.Instead) (out []webpage.Amount) {
	for i := range l {
		out = append(out, webpage.Amount{Name: l[i].Who, Leaf: string(l[i].Kind), NS: l[i].NS})
	}
	return out
}

// doing lists what holders did, the largest first.
func doing(m map[string]int64) (out []webpage.Amount) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, webpage.Amount{Name: name, Leaf: name, NS: m[name]})
	}
	slices.SortStableFunc(out, func(a, b webpage.Amount) int { return int(min(1, max(-1, b.NS-a.NS))) })
	return out
}

func pageCurves(l *account.Result) (out []webpage.Curve) {
	for _, c := range l.Curves {
		p := webpage.Curve{Name: string(c.Kind), Bytes: c.Kind.Bytes()}
		for _, x := range c.Points {
			p.Points = append(p.Points, [2]float64{float64(x.At - l.Begin), x.Value})
		}
		out = append(out, p)
	}
	return out
}

// pagePauses is the pauses that the other outputs print, with all of their hops.
func (r *Report) pagePauses() (out webpage.Pauses) {
	bs, which := r.longest()
	if len(bs) == 0 {
		return out
	}
	out.Which, out.Fair = sentence(which), sentence(fairWords(&r.Kernel.Fair))
	for i := range bs {
		b := &bs[i]
		out.List = append(out.List, webpage.Pause{Words: b.words(), Spent: amounts(b.Leaves),
			Hops: slices.Clone(b.Hops)})
	}
	return out
}

// pageUses is the ledgers of Ps, CPUs and memory.
func (r *Report) pageUses() (out []webpage.Use) {
	rows := func(as []CapacityRow) (parts []webpage.UsePart) {
		for _, a := range as {
			parts = append(parts, webpage.UsePart{Name: a.Cause, Share: a.Share, Amount: finding.Duration(a.NS)})
		}
		return parts
	}
	if c := &r.Ledger.Capacity; c.TotalNS > 0 {
		out = append(out, webpage.Use{Title: "Ps", Parts: rows(c.Accounts),
			Text: fmt.Sprintf("%s x %s; runnable goroutines waiting for a P: %.1f on average, %d at most.", plural(int64(c.Procs), "P", "Ps"), finding.Duration(c.WallNS), c.RunnableAvg, c.RunnableMax)})
	}
	if c := r.Ledger.CPUs; c != nil {
		out = append(out, webpage.Use{Title: "CPUs", Parts: rows(c.Accounts),
			Text: fmt.Sprintf("%s that it may use x %s; %s.",
				plural(int64(c.Allowed), "CPU", "CPUs"), finding.Duration(c.WallNS), c.beside())})
	}
	if l := r.Ledger.Memory; l != nil {
		u := webpage.Use{Title: "Memory", Text: finding.Bytes(l.RSS) + " resident. " + sentence(l.beside())}
		for _, a := range l.Accounts {
			u.Parts = append(u.Parts, webpage.UsePart{Name: a.Account, Share: a.Share, Amount: finding.Bytes(a.Bytes)})
		}
		out = append(out, u)
	}
	for i := range out {
		out[i].Parts = slices.DeleteFunc(out[i].Parts, func(p webpage.UsePart) bool { return p.Share == 0 })
	}
	return out
}

func (r *Report) pageThreads() (out webpage.Threads) {
	k := r.Kernel
	if k == nil {
		return out
	}
	out.Text = sentence(k.running())
	if s := k.who(); s != "" {
		out.Text += " Who had the CPU while they were queued: " + s + "."
	}
	for i := range k.Threads {
		t := &k.Threads[i]
		out.List = append(out.List, webpage.Thread{TID: t.TID, Name: t.Comm, On: t.OnNS,
			Queued: t.QueuedNS, Throttled: t.ThrottledNS, Blocked: t.BlockedNS})
	}
	return out
}
