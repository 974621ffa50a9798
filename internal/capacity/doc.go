// Package capacity adds up what a machine gave to one process, whoever its requests are: the CPUs,
// the memory, and what the kernel's records say of threads, reclaim, faults, locks and neighbours.
// Its sums are exact. It refuses to say what a request lost by any of it: that is the ledger's.
//
// In reading order:
//
//   - times.go: sets of times
//   - cpus.go: the ledger of CPUs; quota.go: what the files of the process' group say;
//     steal.go: what the hypervisor took
//   - memory.go: the ledger of memory
//   - sums.go: all that the kernel's records add up to, of which these are the parts: threads.go
//     (what threads did, made and ended), calls.go (system calls by number), mmaplock.go,
//     neighbours.go, others.go, events.go (rarer records), samples.go, standstill.go
//   - series.go: when threads were throttled or in reclaim, and pressure over time
//   - curves.go: threads by state and memory, over time
//   - spans.go: stretches of one kind while they are added up
//   - words.go: names for who had a CPU and what a thread slept in
package capacity
