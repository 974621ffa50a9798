package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
)

// The road of a run:
//
//  1. detectors in the order of their Depth: what is nearer to the root of chains looks first
//  2. Look claims time on accounts of the slow column (or CPU of the capacity ledger), or says clear, or what is missing
//  3. arbitrate grants what nobody deeper took; who loses the larger part becomes a mechanism of who took it
//  4. Tell puts what was granted in words
//  5. roots are ranked, each followed by its mechanisms

// Trace is the need of detectors that read accounts; they come from an execution trace, not from a stream.
const Trace = "/go/trace:events"

// Floor is the least loss worth a person's attention. Both must be reached: something always leads the slowest
// requests, also of a service in perfect health.
type Floor struct {
	NS    int64   // per slow request, on average
	Share float64 // of the slow requests' wall
}

// Detector finds one cause. The zero Floor finds everything.
type Detector struct {
	Name  string // the cause, in words
	Title string `prose:"yes"` // one line
	Doc   string `prose:"yes"` // the manual page: mechanism, evidence, look-alikes, remedy, sources
	Needs []string
	Floor Floor
	Go    bool // of Go's runtime: not listed for a program that has none

	Native bool // of threads that are known by the kernel's records alone: listed for nothing else

	// Hint gives reasons to look for it all the same, where Needs are missing. It may be nil.
	Hint func(*account.Result) []string
	// Look claims what may be due to the cause. It must not depend on what later detectors would claim.
	Look func(*Pass)
	// Tell writes summary, evidence and remedy of what was granted.
	Tell func(*Pass, *finding.Finding)
}

// Facts is what is known of the target beside accounts and streams.
type Facts struct {
	// Again is the command that records and explains the same target once more: "whystall diagnose --pprof URL --for 20s".
	Again string
	CPUs  int // the target may use; 0: not known
	// SlowOver is what the user calls slow, ns; 0: not told. Where no request is visible it is held against standstills.
	SlowOver int64

	evidence.Service
	Memory *account.Memory // of a target without other ledgers; nil where its memory was not read
}

// halted says that the target was held up as a whole, "" if it was not.
func (f *Facts) halted() string {
	if f.Halted == nil || f.Halted.NS <= 0 {
		return ""
	}
	return fmt.Sprintf("the process was stopped for %s by %s, and what it waited for then is not told apart", finding.Duration(f.Halted.NS), f.Halted.By)
}

var table []*Detector

func register(d *Detector) *Detector {
	table = append(table, d)
	return d
}

// Run lets every detector look at one recording. The result is nil where no execution trace was read, the set may
// be nil too. It never fails: a detector that does is listed as not checked, with its error.
func Run(r *account.Result, set *evidence.Set, facts Facts) finding.Result {
	return look(detectors(), r, set, facts).result()
}

// look is steps 1 to 4.
func look(ds []*Detector, r *account.Result, set *evidence.Set, facts Facts) *board {
	if set == nil {
		set = &evidence.Set{}
	}
	b := newBoard(r)
	for _, d := range ds {
		if d.Go && noGo(r, facts) || d.Native && (r == nil || !r.Native) {
			continue
		}
		p := &Pass{Ledger: r, Set: set, Facts: facts, det: d, board: b}
		b.passes = append(b.passes, p)
		if p.missing = p.lacking(); len(p.missing) > 0 {
			if d.Hint != nil && r != nil {
				p.missing = append(p.missing, d.Hint(r)...)
			}
			p.outcome = notChecked
			continue
		}
		p.guard(d.Look)
		if p.outcome == undecided {
			b.arbitrate(p)
		}
		b.sampled(p)
		if why := facts.halted(); why != "" && p.outcome == found {
			// What took a request's time may have been the halt, where that was long.
			if k := kernelOf(p); k != nil && 20*facts.Halted.NS < wall(k) {
				p.Cap("%s", why)
			} else {
				p.Doubt("%s", why)
			}
		}
	}
	for _, p := range b.passes {
		if p.outcome == found {
			p.finding = p.words()
			for _, c := range p.speaks {
				b.left[c.account] -= min(c.ns, b.left[c.account])
			}
		}
	}
	return b
}

// result is step 5: what everybody said, none left out.
func (b *board) result() (out finding.Result) {
	out.Findings, out.RuledOut, out.Left = b.ranked(), []finding.RuledOut{}, b.left
	for _, p := range b.passes {
		switch p.outcome {
		case clear:
			out.RuledOut = append(out.RuledOut, finding.RuledOut{Cause: p.det.Name, Why: p.why})
		case failed:
			// A detector's fault must not cost the report, nor pass for a clean bill.
			p.missing = []string{"the detector failed: " + p.why + "; please report this"}
		}
		if len(p.missing) > 0 && p.outcome != found {
			out.NotChecked = append(out.NotChecked, finding.NotChecked{Cause: p.det.Name, Missing: p.missing})
		}
	}
	return out
}

// noGo tells a program without Go's runtime: causes within that are neither there nor ruled out.
func noGo(r *account.Result, facts Facts) bool {
	runtime := facts.Runtime
	if runtime == "" && facts.GoVersion != "" {
		runtime = "go"
	}
	return runtime != "go" && (runtime != "" || r != nil && r.Native)
}

// guard runs a detector's function; a panic is that detector's failure and nobody else's.
func (p *Pass) guard(f func(*Pass)) {
	defer func() {
		if e := recover(); e != nil {
			p.outcome, p.why = failed, fmt.Sprint(e)
		}
	}()
	f(p)
}
