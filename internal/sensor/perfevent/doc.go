// Package perfevent reads software events of Linux's perf_event_open: who came to a CPU and left
// it, page faults, samples of the CPU clock, each with its call chain. It is what is left where
// eBPF is not permitted: an unprivileged user may record his own processes, up to
// kernel.perf_event_paranoid 2, without the kernel's part of stacks; with CAP_PERFMON all of all
// CPUs.
//
// It refuses to interpret: which thread is whose, what a state means, and what a missing switch
// hides are the reader's business. Times are CLOCK_MONOTONIC ns. Thread numbers are those of the
// caller's pid namespace.
package perfevent
