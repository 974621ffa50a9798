package twin

import "github.com/whystall/whystall/exectrace"

// Ranks order the lines of one instant.
const (
	rankStatus = iota
	rankProcess
	rankWake
	rankRangeEnd
	rankLeave
	rankRun
	rankRangeBegin
	rankLate // woken by one that runs from this instant on
)

// goroutine is one block of the text.
type goroutine struct {
	name   string
	id     exectrace.GoID
	entry  string
	line   int
	states []state // for checks while lines are read, and for who runs when
	last   int64   // time of the last state line
	rank   int
}

type state struct {
	t     int64
	state exectrace.State
}

// item is one thing that happens at one instant.
type item struct {
	t, end    int64
	rank      int
	line      int
	verb      string
	g         *goroutine
	actor     *goroutine // that woke or made g, or ends its task
	actorName string     // resolved after all lines are read
	stack     exectrace.StackID
	name      exectrace.StringID
	reason    exectrace.Reason
	first     bool
	yield     bool
	proc      int // pinned, or -1
	arg       [2]uint64
}

// stateWord is a state in errors.
func stateWord(s exectrace.State) string {
	words := [...]string{"nothing", "not alive", "runnable", "running", "waiting", "syscall", "idle"}
	if int(s) < len(words) {
		return words[s]
	}
	return "?"
}

// running is whether a goroutine runs at an instant.
type running uint8

const (
	runsNot  running = iota
	runsTo           // it ran until then
	runsFrom         // it starts then
)

// runs says whether g runs at t.
func (g *goroutine) runs(t int64) running {
	before := exectrace.Undetermined
	after := exectrace.Undetermined
	for _, s := range g.states {
		if s.t < t {
			before = s.state
		}
		if s.t <= t {
			after = s.state
		}
	}
	switch {
	case before == exectrace.Running:
		return runsTo
	case after == exectrace.Running:
		return runsFrom
	}
	// It may have run for no time at all.
	for _, s := range g.states {
		if s.t == t && s.state == exectrace.Running {
			return runsFrom
		}
	}
	return runsNot
}

// reasons are the runtime's words; see traceBlockReasonStrings in runtime/traceruntime.go.
var reasons = map[string]struct {
	reason exectrace.Reason
	frame  string // where such a wait stands unless the line says
}{
	"forever":                      {exectrace.ReasonForever, "runtime.block"},
	"network":                      {exectrace.ReasonNetwork, "internal/poll.(*FD).Read"},
	"select":                       {exectrace.ReasonSelect, "runtime.selectgo"},
	"sync":                         {exectrace.ReasonSync, "sync.(*Mutex).Lock"},
	"sync.(*Cond).Wait":            {exectrace.ReasonCond, "sync.(*Cond).Wait"},
	"sleep":                        {exectrace.ReasonSleep, "time.Sleep"},
	"chan send":                    {exectrace.ReasonChanSend, "runtime.chansend1"},
	"chan receive":                 {exectrace.ReasonChanRecv, "runtime.chanrecv1"},
	"GC mark assist wait for work": {exectrace.ReasonAssistCredit, "runtime.gcAssistAlloc"},
	"GC background sweeper wait":   {exectrace.ReasonSweeperIdle, "runtime.bgsweep"},
	"system goroutine wait":        {exectrace.ReasonSystem, "-"},
	"preempted":                    {exectrace.ReasonPreempted, "runtime.asyncPreempt"},
	"wait for debug call":          {exectrace.ReasonDebugCall, "-"},
	"wait until GC ends":           {exectrace.ReasonUntilGCEnds, "-"},
	"GC worker (idle)":             {exectrace.ReasonGCWorkerIdle, "runtime.gcBgMarkWorker"},
	"coroutine":                    {exectrace.ReasonCoroutine, "-"},
	"synctest":                     {exectrace.ReasonSynctest, "-"},
	"GC weak to strong wait":       {exectrace.ReasonOther, "-"},
	"unknown":                      {exectrace.ReasonNone, "-"},
}
