// Package cli is the command line, one file for each command. It is the only room that wires the
// others together. The report decides what is printed; this room decides which exit status that
// means.
//
// The files in reading order:
//
//	cli.go          Main, the table of commands, exit statuses, errors on standard error
//	help.go         how --help is printed
//
//	explain.go      the command explain, and the end that diagnose shares with it
//	report.go       the command report: the same as one page for a browser
//	inputs.go       opens what a file name stands for: a trace, a case, a profile, a stream
//	load.go         puts all inputs together: one trace, one kernel stream, one set of records
//	account.go      makes the ledgers of them: from the trace, the kernel's records, or both
//
//	compare.go      the command compare: did the remedy work?
//
//	aim.go          finds the process that an argument names
//	values.go       flags' values: what to type instead of what was
//	record.go       the command record, its flags, and what it shows while it runs
//	progress.go     the line that ticks while it records
//	diagnose.go     the command diagnose: record, then explain
//	keep.go         which cases it keeps though nobody asked for them
//	trigger.go      record --slow-over: watches, and saves only the slow segments
//	judge.go        the hidden command that judges one segment, in a process of its own
//	interrupt.go    what Ctrl-C does while recording
//
//	fleet.go        the command fleet: a fleet's history, from Prometheus
//	fleet_files.go  its rules and dashboard
//	fleet_explain.go explain of what it recorded, and of samples of a Prometheus in files
//	doctor.go       the command doctor: what can be seen here
//	causes.go       the command causes: the manual
//	completions.go  the command completions, from the table of commands
//	version.go      the command version
//
//	columns_*.go, cpu_*.go, lowest_*.go    what depends on the operating system
package cli
