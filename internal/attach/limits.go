package attach

import (
	"fmt"
	"slices"
)

// Tables of the host that are full: the kernel drops packets or closes connections then, and no
// thread of the service shows it.
const (
	ConntrackTable = "the host's table of connections (nf_conntrack)"
	OrphanSockets  = "the host's limit of orphaned sockets (tcp_max_orphans)"
)

// nearLimit is the share of a limit from which a table counts as full: its count moves all the
// time.
const nearLimit = 0.95

// bound is a limit of the host that two facts show.
type bound struct {
	used, max   FactName
	noun, where string
}

var bounds = []bound{
	{Orphans, OrphansMax, "orphaned sockets", OrphanSockets},
	{Conntrack, ConntrackMax, "connections in the table", ConntrackTable},
}

// AtLimit gives a sign for each limit of the host that facts show to be reached.
func AtLimit(facts []Fact) (out []Sign) {
	value := func(name FactName) (most float64) {
		for _, f := range facts {
			if f.Name == name {
				most = max(most, f.Value)
			}
		}
		return most
	}
	for _, b := range bounds {
		used, limit := value(b.used), value(b.max)
		if limit > 0 && used >= nearLimit*limit {
			out = append(out, Sign{Grade: Outside, Where: b.where, Share: min(1, used/limit),
				Proof: []string{fmt.Sprintf("%.0f %s of %.0f allowed (%.1f %%)", used, b.noun, limit, 100*used/limit)}})
		}
	}
	return out
}

// full holds what one part counts against the limit that another part says.
func full(told []*Told, all []*Verdict) []*Verdict {
	for _, b := range bounds {
		used, from := fact(told, b.used)
		limit, of := fact(told, b.max)
		said := slices.ContainsFunc(told, func(t *Told) bool { // a part that has both says so itself
			_, count := fact([]*Told{t}, b.used)
			_, bound := fact([]*Told{t}, b.max)
			return count != nil && bound != nil
		})
		if from == nil || of == nil || said {
			continue
		}
		for _, s := range AtLimit([]Fact{used, limit}) {
			all = append(all, &Verdict{Sign: s, Group: from.Group, From: []*Told{from, of}})
		}
	}
	return all
}
