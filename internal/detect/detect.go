package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
)

// The steps of a run:
//
//  1. There is a round for each scope (scopes.go): slow requests, usual ones, the process.
//  2. In each, detectors look one after another, in the order of order.go: the nearer to the root
//     of a chain of causes, the earlier.
//  3. Look claims time of the column's accounts, or CPU of the capacity ledger. Or it says that the
//     cause is not there, or what it lacks to decide.
//  4. arbitrate grants what no earlier detector took. A detector that loses the larger part of its
//     claim becomes a mechanism of the one that took it.
//  5. Tell puts what was granted in words.
//  6. What a detector said in all rounds becomes one finding, or is ruled out, or not checked.
//  7. Roots are ranked, each followed by its mechanisms.

// Trace is the need of detectors that read accounts of slow requests. Those come from no stream:
// they come from an execution trace, or, of a program without one, from the kernel's records.
const Trace = "/go/trace:events"

// Floor is the least loss worth a person's attention. Both parts must be reached: something always
// leads the slowest requests, even in perfect health.
type Floor struct {
	NS    int64   // per slow request, on average
	Share float64 // of the slow requests' wall
}

// Detector finds one cause. The zero Floor finds everything.
type Detector struct {
	Name  string // the cause, in words: "sched-latency"; its file is sched_latency.go
	Title string `prose:"yes"` // one line
	// Doc is the manual page: What happens, Evidence, Not to be taken for, Remedy, Verify, Sources.
	Doc string `prose:"yes"`
	// Needs are streams, Trace or KernelRecords. Any one is enough; without all the cause is "not
	// checked". What Look needs besides it asks for itself, and says Blind. With KernelRecords it
	// asks joined before it reads the kernel's leaves: there may be no request, or no trace.
	Needs []string
	Floor Floor
	// Fast reports whether less than the floor counts where the service is fast (floors.go). Nil:
	// it does.
	Fast func(*Pass) bool
	// Scopes are the rounds in which it looks. Nil: at slow requests, and where there are none at
	// the process. A detector with the scope usual reads [Pass.Column] instead of Ledger.Slow, and
	// one with the scope process asks [Pass.Scope] before it reads either.
	Scopes []finding.Scope
	// Beside reports whether it looks at the process where slow requests are visible too. Nil: if
	// it has that scope.
	Beside func(*account.Result) bool
	// Go is of causes within Go's runtime: they are not listed for a program that has none.
	Go bool
	// Native is of causes that only requests of threads can have: they are listed for no others.
	Native bool
	// Applies reports whether a target can have the cause: it is not listed for others. Nil: any.
	Applies func(*account.Result, Facts) bool

	// Hint gives reasons to look for the cause all the same where Needs are missing: they are
	// printed beside what is missing. It may be nil.
	Hint func(*account.Result) []string
	// Look claims what may be due to the cause. It must not depend on what later detectors claim.
	// If it neither claims nor says anything, the cause is clear.
	Look func(*Pass)
	// Tell writes the summary, the evidence and the remedies of what was granted. It must set the
	// summary and at least one remedy.
	Tell func(*Pass, *finding.Finding)
}

// Facts is what is known of the target beside accounts and streams.
type Facts struct {
	// Again is the command that records and explains the same target once more: "whystall diagnose
	// --pprof URL --for 20s".
	Again string
	CPUs  int // that the target may use; 0: not known
	// SlowOver is what the user calls slow, in ns; 0: not given. Where no request is visible, it is
	// compared with standstills.
	SlowOver int64
	// Shortened: the recorder ended the trace early to spare the service.
	Shortened bool

	evidence.Service
	Memory *account.Memory // of a target without other ledgers; nil where its memory was not read
}

// halted says that the target was stopped as a whole, "" if it was not.
func (f *Facts) halted() string {
	if f.Halted == nil || f.Halted.NS <= 0 {
		return ""
	}
	return fmt.Sprintf("the process was stopped for %s by %s; what it waited for meanwhile cannot be separated from that", finding.Duration(f.Halted.NS), f.Halted.By)
}

var table []*Detector

func register(d *Detector) *Detector {
	table = append(table, d)
	return d
}

// Run lets every detector look at one recording. r is nil where no execution trace was read; set
// may be nil too. Run never fails: a detector that does is listed as not checked, with its error.
func Run(r *account.Result, set *evidence.Set, facts Facts) finding.Result {
	return look(detectors(), r, set, facts).result()
}

// noGo reports whether the program has no Go runtime. Causes within that runtime are then neither
// found nor ruled out.
func noGo(r *account.Result, facts Facts) bool {
	runtime := facts.Runtime
	if runtime == "" && facts.GoVersion != "" {
		runtime = "go"
	}
	return runtime != "go" && (runtime != "" || r != nil && r.Native)
}

// guard runs a detector's function. A panic fails that detector and no other.
func (p *Pass) guard(f func(*Pass)) {
	defer func() {
		if e := recover(); e != nil {
			p.outcome, p.why = failed, fmt.Sprint(e)
		}
	}()
	f(p)
}
