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
// Of the host's memory and pressure:
//
//	vmstat.go, buddyinfo.go, meminfo.go, pressure.go
//	settings.go      sysctl, huge pages
//
// Of cgroups, and files that only their names tell:
//
//	files.go         paths before, above or in front of values
//	session.go       the output of prompts that name files
//	files_read.go    what such files say together
//	cgroup_cpu.go    quota, periods and throttled time
//	cgroup_memory.go limit, use, and how often the limit was hit
package kernelfile
