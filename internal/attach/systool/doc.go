// Package systool knows tools which print figures of the system and its processes: top, vmstat,
// pidstat. It refuses to judge by an average since boot, by a single sample, or by a busy CPU.
//
// Files in reading order:
//
//	kinds.go    Kinds: the table of this room
//	number.go   figures as tools print them, amounts with units, medians
//	fields.go   tables of names and rows; how far a claim reaches
//	facts.go    the facts that several kinds write for rules over several parts
//	verdict.go  a reading in the making
//	cpu.go      what follows from the use of CPUs and the threads that want one
//	vmstat.go   vmstat N
//	sysstat.go  what the tools of sysstat share: banner, times, names, rows
//	pidstat.go  pidstat
//	mpstat.go   mpstat
//	sar.go      sar
//	iostat.go   iostat
//	free.go     free
//	top.go      top: from lines to screens
//	topread.go  top: what screens say
//	ps.go       ps
//	numastat.go numastat
package systool
