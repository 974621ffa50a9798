package request

import "fmt"

// list decides which groups are the requests:
//  1. User marks and known servers are.
//  2. Unknown ones are candidates if their work is given to them from outside (ownWork).
//  3. A tier of candidates is listed beside those above it only if it has so many more that it
//     cannot be their background.
func (f *Finder) list() {
	var sum [tierTimer + 1]int64
	tiers := make([]tier, len(f.groups))
	for i := range f.groups {
		gr := &f.groups[i]
		e := &f.entries[gr.entry]
		gr.Listed, gr.Why = gr.Count > 0 || gr.LeftOut != [leftOutCount]int64{}, ""
		switch {
		case gr.Kind == kindHandedOn:
			tiers[i] = tierNet
		case gr.Kind == kindRounds:
			tiers[i] = tierChan
		case gr.Kind == KindLoop:
			tiers[i] = f.sites[e.idleSite].tier()
		case gr.Kind == KindGoroutine:
			tiers[i] = tierLife
		case gr.Kind == KindTask && f.lostTasks > 0:
			gr.Why = fmt.Sprintf("%d tasks were not followed: more than %d were open at once", f.lostTasks, maxTasks)
		}
		if tiers[i] != tierKnown && f.options.Entry == nil && gr.Listed {
			gr.Listed, gr.Why = f.ownWork(e, gr.Kind)
		}
		if gr.Listed {
			// A request that is too slow to end in the trace is one all the same.
			sum[tiers[i]] += gr.Count + gr.LeftOut[OpenBegin] + gr.LeftOut[OpenEnd]
		}
	}
	if f.options.Entry != nil {
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
		case tierNet:
			// Beside a known server it must look like one too, by answering, or be far more than
			// that.
			e := &f.entries[gr.entry]
			enough = gr.Count > above && (gr.Kind == kindHandedOn || e.accepted ||
				e.wrote*2 >= e.count) || gr.Count > 100*above
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

// ownWork reports whether the group does not only serve another, and if it does, how.
func (f *Finder) ownWork(e *entry, kind string) (bool, string) {
	if kind == kindHandedOn {
		if !f.handsOn(e) {
			return false, "what its readers read is seldom answered by others"
		}
		return !e.marked, ""
	}
	if n := f.unseenReads(); kind == kindRounds && (n*4 < e.count*3 || n*3 > e.count*4) {
		return false, "its rounds are not as many as what was read and given to nobody who waited"
	}
	switch {
	case f.handsOn(e):
		return false, "what it reads is answered by others"
	case f.onlyWrites(e):
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

// handsOn reports whether others answer what goroutines of e read.
func (f *Finder) handsOn(e *entry) bool {
	if !f.readsNet(e) || e.wrote*10 >= e.count && e.count > 0 {
		return false
	}
	if e.relayGroup != NoGroup && f.groups[e.relayGroup].Count*2 >= e.count {
		return true
	}
	// Writes by entry functions that do not read. Those woken through a sync.Cond are left out:
	// which request woke them is not in the trace, so only the reader's part is known.
	var sends int64
	for i := range f.entries {
		if o := &f.entries[i]; o != e && o.role == roleUnknown && !f.readsNet(o) && o.conds*8 < o.sends {
			sends += o.sends
		}
	}
	return sends*2 >= e.count
}

// onlyWrites reports whether goroutines of e wait for messages, and do nothing with one but write
// to a connection.
func (f *Finder) onlyWrites(e *entry) bool {
	return e.idleSite != 0 && f.sites[e.idleSite].tier() == tierChan && e.count > 0 &&
		e.wrote*10 >= e.count*9 && e.waits*10 < e.count && e.gives*10 < e.count
}

// doubt is what is not in a group's times.
func (f *Finder) doubt(gr *Group) string {
	e := &f.entries[gr.entry]
	switch {
	case gr.Kind == kindRounds:
		return "its goroutines never wait for work: requests wait before that in a queue or socket, and how long is not in these times"
	case gr.Kind == kindHandedOn && e.unseen*10 > gr.Count:
		return fmt.Sprintf("%d reads gave work to nobody who waited for some: it waited in a queue, and is not among these", e.unseen)
	case gr.Kind == kindHandedOn && e.blind*10 > gr.Count:
		return fmt.Sprintf("%d of %d end where they were handed to a writer that was busy", e.blind, gr.Count)
	case gr.Kind == KindLoop && f.readsNet(e) && e.tail*2 > e.count:
		return fmt.Sprintf("%d of %d were there before they were read: how long is not in their times", e.tail, e.count)
	}
	return ""
}
