// Package bpf hears from the kernel what it does to one process: which threads are on which CPUs,
// who wakes them, what they wait for. Its programs are attached to tracepoints, so that each can be
// missing alone; they and their maps live as long as the recorder's file descriptors, and nothing
// is pinned.
//
// It refuses to interpret: events come as the kernel told them. It knows neither cases nor records;
// package collect turns its events into those.
//
// The C sources are in c/; bpf2go makes the objects from them, for amd64 and arm64, and CI makes
// them again and compares.
package bpf
