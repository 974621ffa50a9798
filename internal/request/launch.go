package request

// Many programs begin their goroutines in one place: a closure that counts, names or recovers, and
// calls what it was given. Its name says nothing about what a goroutine does, and readers, writers
// and background work would be one group.
//
// Such a closure, a launcher, is known by this:
//   - each goroutine waits within one call of it only, never in the closure itself;
//   - the same line calls different functions for different goroutines.
//
// A worker that calls its jobs waits in itself or in more than one of them.

// launchWaits is how many waits are looked at before an entry function is taken for a launcher.
const launchWaits = 32

// launched looks at a wait of g that anything may end, and reports whether it proved g's entry
// function a launcher. Then nothing is known about g any more.
func (f *Finder) launched(g *gstate, in *stackInfo) bool {
	l := &f.entries[g.entry].launch
	switch {
	case l.works || l.decided:
		return false
	case in.call == 0 || g.call != 0 && g.call != in.call:
		l.works = true
		return false
	}
	g.call = in.call
	l.waits++
	if l.call == 0 {
		l.call = in.call
	} else if c, first := f.calls[in.call-1], f.calls[l.call-1]; c.line == first.line && c.fn != first.fn {
		l.indirect = true
	}
	if !l.indirect || l.waits < launchWaits {
		return false
	}
	l.decided = true
	f.forgetEntry(g.entry)
	return true
}

// Launchers are the functions found so far that goroutines begin with and that only call what they
// were given.
func (f *Finder) Launchers() (names []string) {
	for i := range f.entries {
		if f.entries[i].launch.decided {
			names = append(names, f.entries[i].name)
		}
	}
	return names
}

// forgetEntry: the functions that entry calls did what was taken for its own doing.
func (f *Finder) forgetEntry(entry uint32) {
	for i := range f.stacks {
		if f.stacks[i].entry == entry {
			f.stacks[i] = stackInfo{}
		}
	}
	for i := range f.gs {
		g := &f.gs[i]
		if g.id == 0 || g.entry != entry || g.flags&flagUser != 0 {
			continue
		}
		f.abandon(g, Lost)
		g.entry, g.role, g.phase, g.call, g.site, g.visited = 0, roleNone, phaseNone, 0, 0, 0
		g.flags &^= flagFresh | flagWrote
	}
}

// arrived: a goroutine without a role has one now. If a launcher began it, its life may have been
// open.
func (f *Finder) arrived(g *gstate) {
	if g.phase != phaseMaybe {
		return
	}
	switch e := &f.entries[g.entry]; g.role {
	case roleLife:
		f.proven(g)
	case roleUnknown:
		if g.flags&flagChild != 0 || e.idleSite != 0 || e.marked {
			g.phase = phaseNone
		}
	default:
		g.phase = phaseNone
	}
}
