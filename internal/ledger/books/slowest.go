package books

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/oncpu"
	"github.com/whystall/whystall/internal/request"
)

// mostSlowest is how many requests are listed by name.
const mostSlowest = 10

// slowest lists the slowest requests of all groups, each with its accounts and a line of reason.
func (b *Books) slowest(list []request.Group) (out []account.Request) {
	l := b.slowUnits(list)
	for _, k := range l[:min(len(l), mostSlowest)] {
		q := account.Request{
			Begin: b.names.Time(k.Begin), End: b.names.Time(k.End), Goroutine: k.Number, Entry: list[k.group].Entry,
		}
		if k.Name != 0 {
			q.Name = b.runtime.Request(k.Name)
		}
		works := k.works()
		var all oncpu.Sum
		var onCPU int64
		for _, f := range k.facts {
			if f.kind() != FactNS {
				continue
			}
			key := b.accounts.keys[f.account]
			a := b.account(key)
			a.NS = f.ns()
			if key.Leaf == LeafOnCPU {
				onCPU += a.NS
			}
			if w := works[f.account]; len(w) > 0 {
				sum := sumOf(w)
				a.OnCPU = sum.Write(b.works, a.NS)
				all.Merge(sum)
			}
			q.Accounts = append(q.Accounts, a)
		}
		if all.Samples() >= account.LeastSamples {
			q.OnCPU = all.Write(b.works, onCPU)
		}
		sortAccounts(q.Accounts)
		q.Reason = reason(q.Accounts, k.Wall())
		out = append(out, q)
	}
	return out
}

// reason says in a line where most of the time went: the largest account, and the second if it has
// at least a fifth of the request.
func reason(l []account.Account, wall int64) string {
	var parts []string
	l = joinQueues(l)
	for _, a := range l[:min(len(l), 2)] {
		if len(parts) > 0 && a.NS*5 < wall {
			break
		}
		parts = append(parts, fmt.Sprintf("%.1f ms %s", float64(a.NS)/1e6, account.Phrase(&a))+ofIt(a.OnCPU))
	}
	return strings.Join(parts, "; ")
}

// ofIt says what most of time on a CPU was used for, by kind; of computing it says in which
// function too.
func ofIt(o *account.OnCPU) string {
	if o == nil || len(o.Works) == 0 {
		return ""
	}
	kinds := map[account.WorkKind]int64{}
	for i := range o.Works {
		kinds[o.Works[i].Kind] += o.Works[i].NS
	}
	most := o.Works[0].Kind
	for kind, ns := range kinds {
		if ns > kinds[most] || ns == kinds[most] && kind < most {
			most = kind
		}
	}
	s := fmt.Sprintf(", of it %.0f %% %s", 100*float64(kinds[most])/float64(o.NS), most)
	if most != account.WorkOwn && most != account.WorkLibrary {
		return s
	}
	for i := range o.Works {
		if w := &o.Works[i]; w.Kind == most {
			if w.Name != "" {
				s += ", mostly " + w.Name
			}
			break
		}
	}
	return s
}

// joinQueues adds up the accounts of a request that had no CPU, which differ only in who had it and
// in which wait it was. Each alone may be small though together they are most of the time. The sum
// names who had it for most of the time: alone from nine tenths on, else as "mostly" that one, and
// below half as one of so many programs.
func joinQueues(l []account.Account) []account.Account {
	var rest []account.Account
	var total, most int64
	queued := 0
	behind := map[string]int64{}
	for _, a := range l {
		if a.Leaf != account.LeafNoCPU {
			rest = append(rest, a)
			continue
		}
		queued++
		total += a.NS
		behind[a.Detail] += a.NS
	}
	if queued < 2 {
		return l
	}
	name := ""
	for who, ns := range behind {
		if who != "" && (ns > most || ns == most && who < name) {
			name, most = who, ns
		}
	}
	switch {
	case name == "" || most*10 >= total*9:
	case most*2 < total:
		name = fmt.Sprintf("%d programs, most of it %s", len(behind), name)
	default:
		name = "mostly " + name
	}
	l = append(rest, account.Account{Leaf: account.LeafNoCPU, Class: account.ClassOwn, Detail: name, NS: total})
	sortAccounts(l)
	return l
}
