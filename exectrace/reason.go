package exectrace

// reasons has the words of the runtime's traceBlockReason and traceGoStopReason
// (runtime/traceruntime.go).
var reasons = map[string]Reason{
	"forever":                      ReasonForever,
	"network":                      ReasonNetwork,
	"select":                       ReasonSelect,
	"sync":                         ReasonSync,
	"sync.(*Cond).Wait":            ReasonCond,
	"sleep":                        ReasonSleep,
	"chan send":                    ReasonChanSend,
	"chan receive":                 ReasonChanRecv,
	"GC mark assist wait for work": ReasonAssistCredit,
	"GC background sweeper wait":   ReasonSweeperIdle,
	"system goroutine wait":        ReasonSystem,
	"preempted":                    ReasonPreempted,
	"wait for debug call":          ReasonDebugCall,
	"wait until GC ends":           ReasonUntilGCEnds,
	"coroutine":                    ReasonCoroutine,
	"GC worker (idle)":             ReasonGCWorkerIdle,
	"synctest":                     ReasonSynctest,
	"runtime.Gosched":              ReasonYield,
	"runtime.GoSched":              ReasonYield,
}
