package oncpu

import (
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
)

// mostProfiled bounds the samples of a stack in a profile, which comes from a file.
const mostProfiled = 1 << 32

// Profile is the division of CPU time by a CPU profile that the program took of itself. Such a
// profile interrupts a thread when it comes back from the kernel, and shows who called it there:
// it cannot say what the kernel did.
type Profile struct {
	works Works // without StackIDs
	sum   Sum
}

// Add adds the samples of a stack, whose functions are the innermost first. They stand for ns.
func (p *Profile) Add(funcs []string, samples, ns int64) {
	if samples <= 0 || ns <= 0 || samples > mostProfiled {
		return
	}
	p.works.once.Do(func() {
		p.works.number = map[Key]uint32{}
		p.works.add(Key{Kind: account.WorkUnknown})
	})
	frames := make([]kernel.Frame, len(funcs))
	for i, f := range funcs {
		// A Go profile marks what it could not attribute: runtime._System, runtime._GC.
		frames[i].Func = strings.Replace(f, "runtime._GC", "runtime.gcDrain", 1)
	}
	us := uint64(min(max(1, ns/samples/1000), 1<<20))
	p.sum.put(p.works.add(workOf(nil, frames, interpreters{})), part{samples, ns, uint64(samples) * us * us})
}

// Write divides the profile's own time; nil without samples.
func (p *Profile) Write() *account.OnCPU { return p.sum.Write(&p.works, p.sum.all.ns) }
