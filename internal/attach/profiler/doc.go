// Package profiler knows tools which trace and profile: perf, strace, the BPF tools, LinuxKI.
//
// Files in reading order:
//
//	kinds.go        Kinds: the table of this room
//	text.go         numbers and lines as tools print them
//	profile.go      where CPUs were found: samples, and what they add up to
//	inclusive.go    functions with all that they call
//	filtered.go     views that show only functions with a word in their names
//	functions.go    functions of the kernel that say what a CPU did
//	sampledonly.go  profiles of the kernel alone, or of programs alone
//	mechanism.go    what shares of CPU time say of causes
//	conclude.go     what follows from a profile, in a sentence
//	reclaimer.go    who frees memory in a sample: a thread for itself, or the kernel's
//	graph.go        the call graph of perf report
//	graphforms.go   call graphs from perf's screen, and folded ones
//	perfreport.go   perf report and perf top
//	perfrow.go      one row of it
//	perfbranches.go its rows of branches (-b)
//	perfevents.go   events that perf samples, and those that are no CPU time
//	perfthreads.go  its table of threads
//	perfdiff.go     perf diff
//	perfkvm.go      perf kvm stat
//	perfannotate.go perf annotate
//	perfc2c.go      perf c2c: cache lines that CPUs share
//	perfscript.go   perf script: samples with stacks, of whatever event
//	perfswitches.go its events in pairs: off CPU and back, block requests
//	perfstat.go     perf stat
//	perfstatrates.go its threads, rates and cycles
//	perfstatcsv.go  its rows of perf stat -x
//	perfstatold.go  its rows of the first versions
//	schedstat.go    the delays of events sched_stat_*
//	perfsched.go    perf sched latency, timehist and map
//	schedtotal.go   its line of all tasks, where only some are listed
//	schedolder.go   its older tables
//	calls.go        what system calls wait for
//	stracecount.go  strace -c and ltrace -c
//	stracecalls.go  calls of a trace added up
//	stracelines.go  strace and ltrace line by line
//	ltraceended.go  how a program that ltrace watched ended
//	stracelimits.go calls of a trace that ended by their own limits of time
//	stracewaits.go  what the time of their calls was
//	straceended.go  what threads wait for when a trace ends
//	hangup.go       of a trace: a hang-up that is reported and left
//	readyloop.go    of a trace: events that are reported and left
//	perftrace.go    perf trace, and its summary
//	ftracelatency.go perf ftrace latency
//	histogram.go    histograms of the BPF tools
//	histkind.go     their lines, and what they say
//	histmeasure.go  what a histogram measures
//	histkeys.go     keys of its histograms that are stacks
//	histmeaning.go  what waits for CPUs and disks say
//	stackkind.go    stacks as bcc prints them: offcputime, profile, stackcount
//	stackcounts.go  stacks that count an event
//	folded.go       folded stacks, a flame graph's input
//	bpfscript.go    what a bpftrace program's text says of the values of its maps
//	bpfmaps.go      bpftrace's maps
//	bpftools.go     the table of BPF tools that have columns
//	bpftable.go     their tables: from lines to rows
//	bpfrow.go       one row, divided by the names of the columns
//	bpfread.go      what those with latencies say
//	bpfqueue.go     what runqslower says
//	bpfreadmore.go  what the others say
//	bpflocks.go     locks of the kernel (klockstat)
//	bpflisted.go    what those say that list events or count them
//	bpflines.go     BPF tools without columns
//	waits.go        what stacks of threads off CPU waited for
//	linuxki.go      LinuxKI's reports: their lines
//	linuxkiread.go  what these lines say of tasks and the scheduler
//	linuxkitasks.go a task and how it was scheduled, and tables of tasks
//	linuxkicpus.go  the table of CPUs
//	linuxkimore.go  devices, files, traces and counters of a report
//	linuxkicalls.go what they say of system calls, sleep and profiles
//	linuxkilive.go  waits and I/O of one task's report
//	ftrace.go       ftrace and trace-cmd: events, latencies, function_graph
//	perftools.go    iosnoop of perf-tools, pt-ioprofile, rbspy
//	realtime.go     cyclictest
//	btt.go          btt of blktrace
//	blkparse.go     its events: blkparse and btrace
//	schbench.go     schbench
//	perflock.go     perf lock
//	asyncprofiler.go async-profiler's text
//	memleak.go      memleak
//	gprof.go        gprof
//	callgrind.go    callgrind
//	heaptrack.go    heaptrack
//	refused.go      tools that say nothing of waiting, by name
package profiler
