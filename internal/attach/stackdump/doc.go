// Package stackdump knows stacks of all threads: gdb, jstack, py-spy, and the convoys in them.
//
// Files in reading order:
//
//	kinds.go  Kinds: the table of this room
package stackdump
