package goruntime

import "github.com/whystall/whystall/internal/attach"

// Facts that this room's kinds write. A rule over several parts reads them.
const (
	FactGCCPU        attach.FactName = "/go/gc/cpu:share"            // of all Ps' time in the text's own span, 0..1
	FactGCMark       attach.FactName = "/go/gc/mark:share"           // of the time, 0..1
	FactGCPause      attach.FactName = "/go/gc/pause:ns"             // the worst stop of the world
	FactGCStretched  attach.FactName = "/go/gc/stretched:cycles"     // long by the clock, short by CPU; Value 1 or more
	FactGOMAXPROCS   attach.FactName = "/go/sched/gomaxprocs"        // threads that may run Go at once
	FactRunnablePerP attach.FactName = "/go/sched/runnable-per-p"    // goroutines in run queues, median of samples
	FactLockWaiters  attach.FactName = "/go/lock/waiters:goroutines" // Of: the lock's address, or the function that takes it
	FactLockSite     attach.FactName = "/go/lock/site:goroutines"    // Of: the function that waiters call Lock in
	FactLockHolder   attach.FactName = "/go/lock/holder:goroutine"   // Of: the function that likely holds it; Value its id
	FactMutexDelay   attach.FactName = "/go/mutex/delay:ns"          // Of: the function that unlocked; of a mutex profile
	FactGoroutines   attach.FactName = "/go/sched/goroutines"
	FactHeap         attach.FactName = "/go/heap/alloc:bytes"   // objects, live and dead ones
	FactCycles       attach.FactName = "/go/gc/cycles:cycles"   // since the start, as the next two
	FactAllocated    attach.FactName = "/go/gc/allocated:bytes" //
	FactStopped      attach.FactName = "/go/gc/stopped:ns"      // all stops of the world
	FactGCOfUsed     attach.FactName = "/go/gc/used:share"      // of the CPU that the process used, 0..1
)
