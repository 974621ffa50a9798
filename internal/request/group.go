package request

import (
	"fmt"
	"slices"
)

type groupKey struct {
	entry uint32
	kind  string
	name  NameID
}

// maxNames bounds the names a hostile trace can make us keep.
const maxNames = 1 << 16

func (f *Finder) intern(s string) NameID {
	if s == "" {
		return 0
	}
	if id, ok := f.nameIDs[s]; ok {
		return id
	}
	if len(f.names) >= maxNames {
		return 0
	}
	id := NameID(len(f.names))
	f.names = append(f.names, s)
	f.nameIDs[s] = id
	return id
}

// Name is the text of id: from the trace, untrusted.
func (f *Finder) Name(id NameID) string {
	if int(id) >= len(f.names) {
		return ""
	}
	return f.names[id]
}

// groupOf is the group of the activation that g has just been proven to be in.
func (f *Finder) groupOf(g *gstate) GroupID {
	e := &f.entries[g.entry]
	if g.flags&flagUser == 0 {
		if e.group == NoGroup || e.kind == nil && e.groupSite != e.idleSite {
			e.group, e.groupSite = f.newGroup(g), e.idleSite
		}
		return e.group
	}
	// a goroutine mostly does the same thing again
	if last := e.lastUser; last == NoGroup || f.groups[last].name != g.name || (f.groups[last].Kind == KindTask) != (g.task != 0) {
		e.lastUser = f.newGroup(g)
	}
	return e.lastUser
}

// newGroup finds or makes the group of g's activation.
func (f *Finder) newGroup(g *gstate) GroupID {
	e := &f.entries[g.entry]
	k := groupKey{entry: g.entry}
	boundary := ""
	switch {
	case g.flags&flagUser != 0 && g.task != 0:
		k.kind, k.name, boundary = KindTask, g.name, "from the task's begin to its end"
	case g.flags&flagUser != 0:
		k.kind, k.name, boundary = KindRegion, g.name, "from the region's begin to its end"
	case e.kind != nil:
		k.kind, boundary = e.kind.kind, e.kind.boundary
	case e.busy:
		k.kind, boundary = rounds, "from one answer of a goroutine to its next"
	case e.idleSite != 0:
		s := &f.sites[e.idleSite]
		k.kind, boundary = KindLoop, "from the end of the wait in "+s.frame+" to the next"
	default:
		k.kind, boundary = KindGoroutine, "from the goroutine's creation to its end"
	}
	if id, ok := f.groupIDs[k]; ok {
		return id
	}
	id := GroupID(len(f.groups))
	f.groupIDs[k] = id
	name := e.name
	if name == "runtime.main" {
		name = "main.main"
	}
	f.groups = append(f.groups, Group{Entry: name, Kind: k.kind, Name: f.Name(k.name), Boundary: boundary, entry: g.entry, name: k.name})
	return id
}

// asked: Options.Entry wants g's activation.
func (f *Finder) asked(g *gstate) bool {
	return f.askedGroup(g.group) || g.name != 0 && f.o.Entry.MatchString(f.Name(g.name))
}

// askedGroup: it wants all of a group's.
func (f *Finder) askedGroup(id GroupID) bool {
	gr := &f.groups[id]
	if gr.asked == 0 {
		gr.asked = 1
		if f.o.Entry.MatchString(gr.Entry) || gr.Name != "" && f.o.Entry.MatchString(gr.Name) {
			gr.asked = 2
		}
	}
	return gr.asked == 2
}

// tally notes what a kept activation did, for the decision who only serves others.
func (f *Finder) tally(g *gstate) {
	e := &f.entries[g.entry]
	e.count++
	if g.flags&flagServed != 0 {
		e.served++
	}
	if g.flags&flagSpawned != 0 {
		e.spawned++
	}
	if g.writes > 0 {
		e.wrote++
	}
	if g.flags&flagTail != 0 {
		e.tail++
	}
	if g.flags&flagBusy != 0 {
		e.waits++
	}
}

// Groups lists the groups found so far. Counts and Listed are right after Finish. The index is the GroupID.
func (f *Finder) Groups() []Group { return f.groups }

// list decides which groups are the requests. User marks and known servers are. Of unknown ones, those whose work
// is given to them from outside: a tier is listed beside those above it only if it has so much more of them that it
// cannot be their background.
func (f *Finder) list() {
	var sum [tierTimer + 1]int64
	tiers := make([]tier, len(f.groups))
	for i := range f.groups {
		gr := &f.groups[i]
		e := &f.entries[gr.entry]
		gr.Listed, gr.Why = gr.Count > 0 || gr.LeftOut != [leftOutCount]int64{}, ""
		switch {
		case gr.Kind == handedOn:
			tiers[i] = tierNet
		case gr.Kind == rounds:
			tiers[i] = tierChan
		case gr.Kind == KindLoop:
			tiers[i] = f.sites[e.idleSite].tier()
		case gr.Kind == KindGoroutine:
			tiers[i] = tierLife
		case gr.Kind == KindTask && f.lost > 0:
			gr.Why = fmt.Sprintf("%d tasks were not followed: more than %d were open at once", f.lost, maxTasks)
		}
		if tiers[i] != tierKnown && f.o.Entry == nil && gr.Listed {
			gr.Listed, gr.Why = f.ownWork(e, gr.Kind)
		}
		if gr.Listed {
			// One that is too slow to end in the trace is a request all the same.
			sum[tiers[i]] += gr.Count + gr.LeftOut[OpenBegin] + gr.LeftOut[OpenEnd]
		}
	}
	if f.o.Entry != nil {
		for i := range f.groups {
			f.groups[i].Listed = f.groups[i].Count > 0
		}
		return
	}
	for i := range f.groups {
		gr := &f.groups[i]
		var above int64
		for t := range tiers[i] {
			above += sum[t]
		}
		var enough bool
		switch tiers[i] {
		case tierKnown:
			continue
		case tierNet: // beside a known server it must look like one too, by answering, or be far more than that
			e := &f.entries[gr.entry]
			enough = gr.Count > above && (gr.Kind == handedOn || e.accepted || e.wrote*2 >= e.count) || gr.Count > 100*above
		case tierChan:
			enough = gr.Count > 10*above
		default:
			enough = above == 0
		}
		if gr.Listed && !enough {
			gr.Listed, gr.Why = false, "looks like background work beside the requests"
		} else if gr.Listed {
			gr.Why = "boundaries were learned from where its goroutines wait"
			gr.Doubt = f.doubt(gr)
		}
	}
}

// ownWork: the group does not only serve another.
func (f *Finder) ownWork(e *entry, kind string) (bool, string) {
	if kind == handedOn {
		if !f.handsOn(e) {
			return false, "what its readers read is seldom answered by others"
		}
		return !e.marked, ""
	}
	if n := f.unseenReads(); kind == rounds && (n*4 < e.count*3 || n*3 > e.count*4) {
		return false, "its rounds are not as many as what was read and given to nobody who waited"
	}
	switch {
	case f.handsOn(e):
		return false, "what it reads is answered by others"
	case e.writer(f):
		return false, "writes what others hand it"
	case e.marked:
		return false, "its user tasks and regions are the requests"
	case e.accepts:
		return false, "accepts connections"
	case e.count > 0 && e.served*2 >= e.count:
		return false, fmt.Sprintf("serves others: %d of %d woke a request that waited", e.served, e.count)
	case e.count > 0 && e.spawned*10 >= e.count*8 && e.wrote*10 < e.count:
		return false, fmt.Sprintf("hands its work on: %d of %d created a goroutine", e.spawned, e.count)
	}
	return true, ""
}

// Listed are the groups to be shown, largest first.
func (f *Finder) Listed() []GroupID {
	var ids []GroupID
	for i := range f.groups {
		if f.groups[i].Listed {
			ids = append(ids, GroupID(i))
		}
	}
	slices.SortStableFunc(ids, func(a, b GroupID) int {
		return int(min(1, max(-1, f.groups[b].Count-f.groups[a].Count)))
	})
	return ids
}
