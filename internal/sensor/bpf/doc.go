// Package bpf records what the kernel does to one process: which threads are on which CPUs, who
// wakes them, what they wait for. Its programs are attached to tracepoints, so that each of them
// can be missing alone. They and their maps live as long as the recorder's file descriptors, and
// nothing is pinned.
//
// It refuses to interpret: events come as the kernel reported them. It knows neither cases nor
// records; package collect turns its events into those. In reading order:
//
//	event.go           what an event says, and how it is decoded; c/record.h has the other side
//	recorder_linux.go  Open, Read, Losses, Close: what package collect uses
//	features_linux.go  the table of programs; what this kernel and user permit; Probe
//	load_linux.go      maps and programs are loaded one by one, so that a refused one leaves the others
//	perf_linux.go      programs that are called by perf events, and addresses of kernel functions
//	ring_linux.go      the reading side of a CPU's log
//	symbols_linux.go   names of kernel functions, asked of the kernel
//	level_linux.go     giving up detail, and measuring what the programs cost
//	nap_linux.go       a thread of ours waits, and what CPU time it used
//	block_linux.go     it does without waking the runtime's monitor
//	behind_linux.go    all our threads run after those of others while CPUs are idle now and then
//	ahead_linux.go     they run before others in a crowd
//	pace_linux.go      the start takes its time where few CPUs are idle
//
// The C sources are in c/, one file a subject; c/whystall.bpf.c includes them. bpf2go makes the
// objects from them, for amd64 and arm64 (generate.go), and CI makes them again and compares.
//
// The room is flat: the files share one recorder, and the C side is one object.
package bpf
