// Package oldclock puts a trace of Go 1.11 to 1.21 on the kernel's clock, and gives its events the
// threads that made them. Such a trace counts ticks of its own and names no threads, but it does
// say by a number of the runtime's which thread took each P. Whoever makes an event is on a CPU.
// So at the right offset the events of each number fall into the stays on a CPU of one thread, and
// at no other. The room refuses to answer where random offsets do nearly as well. It knows nothing
// of requests and says nothing of causes. docs/join.md, "9. Clocks and controls", has the rules and
// what they were measured on.
//
// In reading order:
//
//	marks.go    the trace's side: when each thread of the runtime was silent, and who held which P
//	stays.go    the kernel's side: when each thread was on a CPU
//	offsets.go  offsets that may be right: where silences end as threads come to a CPU
//	threads.go  at an offset: which thread is which, and how many marks fall off the CPU
//	plateau.go  from the offset to offset, drift and their error
//	match.go    all of it, and the check against random offsets; start here
//	source.go   the trace on its new clock, with threads
package oldclock
