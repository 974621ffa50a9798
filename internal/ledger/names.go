package ledger

import (
	"strings"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/timeline"
)

// The pass names what its books number: see books.Names and books.Runtime.

// Func is the name of a function of the program, or of what the kernel's records added.
func (p *pass) Func(id uint32) string { return p.tl.Func(timeline.FuncID(id)) }

// Word is a string of the trace.
func (p *pass) Word(id uint32) string { return p.src.String(exectrace.StringID(id)) }

// Time is a time of the trace.
func (p *pass) Time(rel int64) int64 { return p.tl.Abs(rel) }

// Request is the name of a request.
func (p *pass) Request(id request.NameID) string { return p.f.Name(id) }

// SiteOf is where a stack stands in the program; for a wait for a lock, where the lock is taken.
func (p *pass) SiteOf(stack uint32, lock bool) uint32 {
	info := p.tl.Get(exectrace.StackID(stack))
	if lock {
		return uint32(info.LockSite)
	}
	return uint32(info.Site)
}

// Behind is who had a CPU.
func (p *pass) Behind(ref uint32) account.Instead { return p.j.words.Instead(ref) }

// Lacked is what the thread of a P lacked.
func (p *pass) Lacked(ref uint32, entries map[string]bool) account.Instead {
	return p.j.holders.named(p, ref, entries)
}

// Place is where a stack stands in the program.
func (p *pass) Place(stack uint32) account.Site { return p.site(exectrace.StackID(stack)) }

// site is where a stack stands in the program.
func (p *pass) site(id exectrace.StackID) account.Site {
	if id == 0 {
		return account.Site{}
	}
	want := p.tl.Get(id).Site
	var via string
	for _, f := range p.src.Frames(nil, id) {
		name := timeline.Plain(f.Func)
		if name == p.tl.Func(want) {
			return account.Site{Func: name, File: f.File, Line: f.Line, Via: via}
		}
		for _, pkg := range []string{"os.", "net.", "syscall.", "internal/poll."} {
			if strings.HasPrefix(name, pkg) {
				via = name
			}
		}
	}
	return account.Site{Func: p.tl.Func(want)}
}

// Occupant is who held a P.
func (p *pass) Occupant(who uint32, entries map[string]bool) account.Instead {
	switch who {
	case whoIdle:
		return account.Instead{Who: "idle P", Kind: account.InsteadIdle}
	case whoUnknown, timeline.HolderUnknown:
		return account.Instead{Who: "unknown", Kind: account.InsteadUnknown}
	case timeline.HolderGCDedicated:
		return account.Instead{Who: "GC worker (dedicated)", Kind: account.InsteadGC}
	case timeline.HolderGCIdle:
		return account.Instead{Who: "GC worker (idle)", Kind: account.InsteadGC}
	case timeline.HolderGCFractional:
		return account.Instead{Who: "GC worker (fractional)", Kind: account.InsteadGC}
	case timeline.HolderSweep:
		return account.Instead{Who: "allocations that sweep", Kind: account.InsteadSweep}
	}
	fn := p.tl.Func(timeline.FuncID(who))
	switch {
	case strings.HasPrefix(fn, "runtime.gcBgMarkWorker"):
		return account.Instead{Who: "GC worker", Kind: account.InsteadGC}
	case strings.HasPrefix(fn, "runtime.") && fn != "runtime.main":
		return account.Instead{Who: fn, Kind: account.InsteadRuntime}
	case entries[fn]:
		return account.Instead{Who: fn, Kind: account.InsteadRequest}
	}
	return account.Instead{Who: fn, Kind: account.InsteadBackground}
}
