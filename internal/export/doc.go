// Package export writes what was found for the tools that people have already: Perfetto, pprof, a
// flame graph's folded stacks, and OTLP for a tracing backend. It adds no figure of its own, and
// what a format has no place for it leaves out. Names are somebody else's data: they are bounded,
// put on one line, and made valid UTF-8.
//
// In reading order:
//
//	source.go    what is exported, and names that are safe in every format
//	waits.go     waiting time by cause and stack
//	pprof.go     that as a pprof profile; folded.go: as folded stacks
//	otlp.go      findings and slow requests as OTLP JSON; otlpjson.go: its shapes
//	perfetto.go  findings, requests, pauses and what else goes on tracks
//	lanes.go     the stories of slow requests as tracks of goroutines, Ps, threads and CPUs
//	packets.go   tracks and events become packets of Perfetto's protobuf
package export
