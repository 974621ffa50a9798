// Package collect brings evidence from a running service into a case, and keeps it as it came. It
// refuses to interpret what it brings, to ask anything of a service that would stop or burden it
// for long, and to talk to any address but the one the user named.
//
// A recording asks two kinds of source, each an entry of a table in a file of its own: Collectors
// fetch the service's HTTP pages, Locals record a process of this machine. The runner knows the
// tables, not their entries. In reading order:
//
//	collect.go         the table of Collectors; Options of a recording, its Timing and Progress
//	run.go             the steps of a recording
//	stages.go          its stages: counters alone, with the kernel's records, with all parts
//	load.go            what the same counters say while a person waits
//	toll.go            what is counted of the target in each stage; toll_read.go reads it (_linux, _other)
//	spared.go          what is left out, thinned or shortened to spare the service
//	spared_memory.go   of that, what goes where its memory is short
//	outcome.go         what each collector came to, and the error a person sees
//	local.go           the table of Locals
//	local_run.go       the runner's half for them: start, wait, stop
//	watch.go           the target's end, another program in its place, its CPU time
//	halt.go            the target is stopped as a whole: by a signal, a debugger, a freezer
//	family.go          its child processes, which are not recorded
//	process.go         which process it is, from /proc; also process_linux.go, process_other.go
//	binary.go          its program: runtime, build id, whether it serves profiles
//	spare.go           settings of our own runtime while we record
//	sharing.go         a quota that we share with the target
//	ahead.go           our threads run before others on a crowded machine (_linux, _other)
//	clock.go           clocks, CPU time of our own, the kernel's release (_linux, _other)
//	doctor.go          what a recording could see here, without recording (also _linux, _other)
//
// The service's HTTP pages:
//
//	pprof_fetch.go     one request, its body, its limits
//	pprof_hangup.go    how a trace ends early without losing what its tracer writes last
//	pprof_failure.go   why a request brought nothing, and what to do next
//	pprof_address.go   what people paste as an address; headers
//	pprof_probe.go     looks for a process' pages
//	pprof_listen.go    finds its listeners (also _linux, _other)
//	pprof_trace.go     the execution trace, which sets the recording's time
//	pprof_mutex.go     pprof_block.go, pprof_heap.go, pprof_goroutine.go, pprof_cpu.go: profiles
//	pprof_memstats.go  pprof_metrics.go, pprof_vars.go: what the runtime says in figures
//
// Files of /proc, /sys and cgroups:
//
//	proc_readings.go   writes files of the kernel as they are, one after another
//	proc_process.go    proc_threads.go, proc_cgroup.go, proc_host.go, proc_delay.go, proc_smaps.go
//
// Events of the kernel, all for Linux (_linux):
//
//	kernel.go          the Local that records by eBPF: it reads the rings and flushes
//	kernel_stream.go   events into records
//	kernel_threads.go  which thread is which
//	kernel_stacks.go   which stack is which
//	kernel_naming.go   names the functions of stacks, for perf.go as well
//	kernel_sights.go   what each part of the recorder sees
//	kernel_files.go    names of files that threads wait for
//	kernel_sockets.go  which connections the target made itself
//	kernel_mapped.go   names of files that threads fault in
//	kernel_cgroup.go   names of cgroups
//	kernel_budget.go   what recording may cost, and which detail goes first
//	perf.go            the Local that records by perf_event where eBPF is not permitted
//	perf_stream.go     its records
//	perf_threads.go    its threads
//	perf_budget.go     its cost
//
// The room is flat although it has over fifty files: a table that package variables fill wants one
// package, and the sources share the runner's contract, the readings' format and the naming of
// stacks. As rooms of their own they would have to export those to each other.
package collect
