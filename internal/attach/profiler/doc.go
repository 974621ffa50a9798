// Package profiler knows tools which trace and profile: perf, strace, the BPF tools, LinuxKI.
//
// Files in reading order:
//
//	kinds.go  Kinds: the table of this room
package profiler
