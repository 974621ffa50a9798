// Package oncpu says what CPUs were used for, by samples of the target's threads: by the kernel's
// stack where there is one, else by the program's. It divides time that a ledger knows exactly,
// and refuses to say whose fault it is or how exact a division by few samples would be.
//
// In reading order:
//
//   - works.go: from a sample to the number of its work; start here
//   - threads.go: samples by thread
//   - sum.go: samples that are added up, and the division of an exact time by them
//   - kernel.go: what a kernel stack says; its tables are interrupts.go (softirqs and interrupts) and
//     calls.go (faults, locks, system calls); late.go: code without interrupts, which samples meet
//     too late
//   - program.go: what a user stack says; golang.go: the Go runtime; native.go: libraries,
//     allocators; interpreter.go:
//     interpreters
//   - profile.go: the same by a CPU profile that the program took of itself
//   - named.go: the same for a stack that another tool named
//   - words.go: names of functions in a form that tables know
package oncpu
