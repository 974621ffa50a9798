// Package collect brings evidence from a running service into a case, and keeps it as it came. It
// refuses to interpret what it brings, to ask anything of a service that would stop or burden it
// for long, and to talk to any address but the one the user named.
//
// A recording asks two kinds of source, each an entry of a table in a file of its own: Collectors
// fetch the service's HTTP pages, Locals record a process of this machine. The runner knows the
// tables, not their entries. In reading order:
//
//	collect.go       the table of Collectors; Options of a recording, its Timing and Progress
//	run.go           the steps of a recording
//	outcome.go       what each collector came to, and the error a person sees
//	local.go         the table of Locals
//	local_run.go     the runner's half for them: start, wait, stop
//	watch.go         the target's end, another program in its place, its CPU time
//	halt.go          the target is stopped as a whole: by a signal, a debugger, a freezer
//	family.go        its child processes, which are not recorded
//	process.go       who the process is, from /proc
//	binary.go        its program: runtime, build id, whether it serves profiles
//	spare.go         settings of our own runtime while we record
//	sharing.go       a quota that we share with the target
//	ahead.go         our threads run before others on a crowded machine
//	clock.go         clocks, CPU time of our own, the kernel's release
//	doctor.go        what a recording could see here, without recording
//
//	pprof_fetch.go   one request, its body, its limits
//	pprof_failure.go why a request brought nothing, and what to do next
//	pprof_address.go what people paste as an address; headers
//	pprof_probe.go   looks for a process' pages; pprof_listen.go finds its listeners
//	pprof_*.go       a Collector each: trace, mutex, block, heap, goroutine, cpu, memstats, ...
//
//	proc_readings.go files of the kernel's, written one after another as they are
//	proc_*.go        a Local each: process, threads, cgroup, host, delays, smaps
//
//	kernel.go        the Local that records by eBPF; kernel_stream.go turns its events into records
//	kernel_threads.go kernel_stacks.go  who is who, and which stack is which, in that stream
//	kernel_naming.go names the functions of stacks, for both recorders of kernel events
//	kernel_files.go kernel_mapped.go kernel_cgroup.go  names of files and cgroups
//	kernel_budget.go what recording may cost, and which detail goes first
//	perf.go          the Local that records by perf_event where eBPF is not permitted
//	perf_stream.go perf_threads.go perf_budget.go  likewise
//
// (Many exist as _linux and _other.)
//
// The room is flat although it has over fifty files: a table that package variables fill wants one
// package, and the sources share the runner's contract, the readings' format and the naming of
// stacks. As rooms of their own they would have to export those to each other.
package collect
