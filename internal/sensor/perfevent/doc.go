// Package perfevent reads software events of Linux's perf_event_open: which thread came to a CPU
// and left it, page faults, samples of the CPU clock, each with its call chain. It is for machines
// where eBPF is not permitted. An unprivileged user may record his own processes, up to
// kernel.perf_event_paranoid 2, without the kernel's part of stacks; with CAP_PERFMON, all
// processes on all CPUs.
//
// It refuses to interpret: which thread belongs to which process, what a state means, and what a
// missing switch hides are for the caller to decide. Times are CLOCK_MONOTONIC ns. Thread numbers
// are those of the caller's pid namespace.
package perfevent
