package compare

import (
	"slices"
	"time"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// Run is one recording, explained.
type Run struct {
	Name   string // of its file
	Result *account.Result
	Found  finding.Result

	Begun   time.Time // zero: not known
	Host    string    // of the kernel: release, architecture
	CPUs    int       // of the host; 0: not known
	PID     int       // 0: not known
	Started int64     // CLOCK_MONOTONIC ns of the process' start; 0: not known
	Program string    // "" not known

	// OthersCPUs is how many CPUs other processes and the hypervisor took on average.
	OthersCPUs  float64
	OthersKnown bool
	CPUNS       int64 // of the process meanwhile; 0: not known
	RSS         int64 // bytes; 0: not known
}

// seconds is how long the recording is.
func (r *Run) seconds() float64 {
	switch {
	case r.Result == nil:
		return 0
	case r.Result.End > r.Result.Begin:
		return float64(r.Result.End-r.Result.Begin) / 1e9
	case r.Result.Kernel != nil:
		return float64(r.Result.Kernel.End-r.Result.Kernel.Begin) / 1e9
	}
	return 0
}

// rate is how many requests a second ended; 0: none, or not known.
func (r *Run) rate() float64 {
	s := r.seconds()
	if s <= 0 {
		return 0
	}
	return float64(r.Result.Requests.Count) / s
}

// column is the ledger of a scope's requests.
func (r *Run) column(scope finding.Scope) *account.Column {
	if scope == finding.Usual {
		return &r.Result.Median
	}
	return &r.Result.Slow
}

// start identifies the start of the process that was recorded. Two recordings without what that
// takes are two starts: that widens nothing, but a person who names files names them for a reason.
func (r *Run) start() any {
	if r.PID == 0 || r.Started == 0 {
		return r
	}
	type process struct {
		pid     int
		started int64
		host    string
	}
	return process{r.PID, r.Started, r.Host}
}

// evidence is what of a recording decides which accounts it can have.
type evidence struct{ Trace, Kernel, Joined bool }

func (r *Run) evidence() evidence {
	if r.Result == nil {
		return evidence{}
	}
	k := r.Result.Kernel
	return evidence{
		Trace:  r.Result.Reader.Format > 0,
		Kernel: k != nil,
		Joined: k != nil && k.Joined,
	}
}

// roots lists the findings that are no mechanism of another.
func (r *Run) roots() []finding.Finding {
	return slices.DeleteFunc(slices.Clone(r.Found.Findings), func(f finding.Finding) bool { return f.BecauseOf != "" })
}

func (r *Run) finding(cause string) *finding.Finding {
	for i := range r.Found.Findings {
		if r.Found.Findings[i].Cause == cause {
			return &r.Found.Findings[i]
		}
	}
	return nil
}
