package request

import (
	"strings"

	"github.com/whystall/whystall/exectrace"
)

// Many programs begin their goroutines in one place: a closure that counts, names or recovers, and calls what it was
// given. Its name says nothing of what a goroutine does, and readers, writers and background work would be one group.
// Such a closure is known by this: each goroutine waits within one call of it only, never in the closure itself, and
// the same line calls different functions for different goroutines. A worker that calls its jobs waits in itself
// or in more than one of them.

// launch is what is known of whether an entry function only calls what it was given.
type launch struct {
	call     uint32 // the first call seen
	waits    uint32
	indirect bool // the same line called another function
	works    bool // it waits itself, or in several calls
	decided  bool // it is one: the function that it calls is the entry
}

// launchWaits is how many waits are looked at before an entry function is taken for a launcher.
const launchWaits = 32

// isLauncher: known without looking. There may be one kind of goroutine only.
func isLauncher(name string) bool {
	return strings.HasPrefix(name, "sync.(*WaitGroup).Go.func") ||
		pkgBase(name) == "errgroup" && strings.HasPrefix(methodOf(name), "(*Group).") && strings.Contains(name, "Go.func")
}

// call is one call by an entry function.
type call struct {
	entry, line uint32
	fn          string
}

// callOf is the call of frames' entry function; 0 if it is the innermost of the program.
func (f *Finder) callOf(frames []exectrace.Frame, entry uint32) uint32 {
	n := len(frames) - 1
	if e := &f.entries[entry]; n < 1 || e.role != roleUnknown || e.launch.works || isStd(frames[n-1].Func) {
		return 0
	}
	c := call{entry, uint32(frames[n].Line), frames[n-1].Func}
	if id, ok := f.callIDs[c]; ok {
		return id
	}
	f.calls = append(f.calls, c)
	id := uint32(len(f.calls))
	f.callIDs[c] = id
	return id
}

// launched looks at a wait of g, that anything may end, and says whether it proved g's entry function a launcher:
// then nothing is known of g any more.
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

// Launchers are the functions found so far that goroutines begin with and that only call what they were given.
func (f *Finder) Launchers() (names []string) {
	for i := range f.entries {
		if f.entries[i].launch.decided {
			names = append(names, f.entries[i].name)
		}
	}
	return names
}

// forgetEntry: what was taken for the doing of entry is of the functions it calls.
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

// arrived: a goroutine without a role has one now. If it was begun by a launcher its life may have been open.
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
