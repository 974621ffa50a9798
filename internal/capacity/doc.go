// Package capacity adds up what a machine gave to one process, whoever its requests are: the CPUs, the memory, and what the
// kernel's records say of threads, reclaim, faults, locks and neighbours. Its sums are exact. It refuses to say what a
// request lost by any of it: that is the ledger's.
//
// In reading order: times.go (sets of stretches of time), cpus.go (the ledger of CPUs), memory.go (the ledger of memory),
// sums.go (all that the kernel's records add up to), events.go (of rarer records), samples.go, heldby.go, mmaplock.go and
// standstill.go (one sum each).
package capacity
