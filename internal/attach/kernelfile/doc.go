// Package kernelfile knows files of /proc, /sys and cgroups as text, and what the kernel logs. It
// refuses to read a counter since boot as a rate, and a state as more than a glance.
//
// Files in reading order:
//
//	kinds.go  Kinds: the table of this room
//	lines.go  runs of lines, and several samples in one part
//	pairs.go  lines "name value", and how much they grew
//	words.go  figures with units
//
// Of the host:
//
//	vmstat.go, buddyinfo.go, meminfo.go, meminfo24.go, pressure.go, pressure_words.go
//	settings.go      sysctl, huge pages
//	host.go          /proc/stat, load
//	hostsched.go     waits for CPUs
//	androidcpu.go    shares of the CPUs, as Android logs them
//	host_tables.go   interrupts, softirqs, slabs
//	host_zones.go    zones of memory, types of pages
//	softnet.go       packets that CPUs took and dropped
//	counters.go      files with several counters in a line: diskstats.go, netcounters.go
//	netsnmp.go       counters of network protocols; sockets
//	conntrack.go     the table of connections, and limits of the host's sockets
//	nettcp.go        sockets of TCP and UDP, line by line
//	hostlists.go     swaps, controllers of cgroups, locks of files, sched_debug
//	context.go       what the machine is: no verdict
//
// Of a process:
//
//	status.go        status
//	process.go       stat, sched, schedstat
//	process_more.go  limits, io, cgroups, mounts
//	smaps.go         smaps, smaps_rollup, maps
//	numa_maps.go     memory by NUMA node
//	stack.go         kernel stacks and wait channels
//	waits_names.go   functions that say how a thread waits
//	waits.go         what a kernel stack waits for, and which causes that fits
//
// Of cgroups, and files that only their names tell:
//
//	files.go         paths before, above or in front of values
//	session.go       the output of prompts that name files
//	files_read.go    what such files say together
//	cgroup_cpu.go    quota, periods and throttled time
//	cgroup_memory.go limit, use, and what the memory is
//	cgroup_events.go  how often a limit was hit
//	cgroup_io.go     what a group read and wrote, and how much it may
//	cgroup_acct.go   CPU time of groups of v1
//
// Of the kernel's log:
//
//	klog.go          its lines, with the kernel's stamp or without
//	klog_events.go   the table of events that are known
//	klog_read.go     from lines to events
//	klog_counts.go   how many events there were
//	klog_quote.go    a message that a sentence quotes
//	klog_tasks.go    tasks that hang
//	klog_lockup.go   CPUs that are stuck, RCU
//	klog_memory.go   allocations, dumps of memory
//	klog_oom.go      what was killed for lack of memory, and where
//	klog_disk.go     disks and file systems
//	klog_failures.go lines of one failed command; lines that a person shows twice
//	klog_nic.go      network devices that did not send
//	klog_hardware.go errors of memory and buses; heat
//	klog_limits.go   limits that were reached
//	klog_net.go      servers, tables of connections, clocks; faults that no table knows
//	killers.go       programs that kill before the kernel has to: earlyoom.go with nohang, oomd.go
package kernelfile
