// Package kernelfile knows files of /proc, /sys and cgroups as text, and what the kernel logs.
//
// Files in reading order:
//
//	kinds.go  Kinds: the table of this room
package kernelfile
