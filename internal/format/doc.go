// Package format holds the one parser of each format. It turns bytes into records and knows the
// bytes by their content, whoever brought them. It opens no file, asks no clock and refuses to
// guess: what is missing gives no record, and what is damaged gives an error beside what could be
// read.
//
// # Files in reading order
//
//	table.go        the table of formats: a row for each, filled by the files below
//	kind.go         Identify: which row knows the bytes
//	gather.go       Gather: files to records, what several files say together included
//	unpack.go       gzip, bounded
//	elsewhere.go    rows that are only recognised: others read them, or nobody
//	metrics.go, vars.go, heap_text.go, mutex_text.go, gctrace.go, records.go
//	                a format each, of the Go runtime's own numbers
//	pprof.go, pprof_legacy.go, profiles.go
//	                the decoder of profiles; what the runtime's profiles mean, and their pairs
//	readings.go     the recorder's member of many kernel files
//	kernel_files.go what the kernel's files say together, and which row reads which path
//	host_*.go, process_*.go, cgroup_*.go
//	                the kernel's files of the host, a process and its cgroups, a row or more each
//	env.go          the environment that a case holds: no file, so no row
//
// # To add a format
//
// Write its file: the Kind, its streams, and one row given to register, or to registerFile if it is
// a file of the kernel's. Put samples into testdata/NAME, where NAME is the row's: each sample with
// the golden that -update writes, and not.txtar with look-alikes that the row must refuse.
// Recognition, Gather, Streams and the tests read the table. The path of a file of the kernel's
// goes into the list in FuzzReadings besides. CONTRIBUTING.md has an example of each.
package format
