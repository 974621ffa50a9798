package request

// groupOf is the group of the activation that g has just been proven to be in.
func (f *Finder) groupOf(g *gstate) GroupID {
	e := &f.entries[g.entry]
	if g.flags&flagUser == 0 {
		if e.group == NoGroup || e.server == nil && e.groupSite != e.idleSite {
			e.group, e.groupSite = f.newGroup(g), e.idleSite
		}
		return e.group
	}
	// A goroutine mostly does the same thing again.
	if last := e.lastUser; last == NoGroup || f.groups[last].name != g.name ||
		(f.groups[last].Kind == KindTask) != (g.task != 0) {
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
		k.kind, k.name, boundary = KindTask, g.name, "from the task's start to its end"
	case g.flags&flagUser != 0:
		k.kind, k.name, boundary = KindRegion, g.name, "from the region's start to its end"
	case e.server != nil:
		k.kind, boundary = e.server.kind, e.server.boundary
	case e.busy:
		k.kind, boundary = kindRounds, "from one answer of a goroutine to its next"
	case e.idleSite != 0:
		s := &f.sites[e.idleSite]
		k.kind, boundary = KindLoop, "from the end of the wait in "+s.frame+" to the next"
	default:
		k.kind, boundary = KindGoroutine, "from the goroutine's creation to its end"
	}
	if id, ok := f.groupID[k]; ok {
		return id
	}
	id := GroupID(len(f.groups))
	f.groupID[k] = id
	name := e.name
	if name == "runtime.main" {
		name = "main.main"
	}
	f.groups = append(f.groups, Group{Entry: name, Kind: k.kind, Name: f.Name(k.name),
		Boundary: boundary, entry: g.entry, name: k.name})
	return id
}

// wanted reports whether Options.Entry, which is set, wants g's activation.
func (f *Finder) wanted(g *gstate) bool {
	return f.wantedGroup(g.group) || g.name != 0 && f.options.Entry.MatchString(f.Name(g.name))
}

// wantedGroup reports whether it wants all of a group's.
func (f *Finder) wantedGroup(id GroupID) bool {
	gr := &f.groups[id]
	if gr.wanted == 0 {
		gr.wanted = 1
		if f.options.Entry.MatchString(gr.Entry) || gr.Name != "" && f.options.Entry.MatchString(gr.Name) {
			gr.wanted = 2
		}
	}
	return gr.wanted == 2
}

// tally notes what a kept activation did, to decide later who only serves others.
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

// Groups lists the groups found so far; the index is the GroupID. Counts and Listed are right after
// Finish.
func (f *Finder) Groups() []Group { return f.groups }
