// Package goruntime knows what the Go runtime prints of itself: GC and scheduler traces, goroutine
// dumps, profiles as text.
//
// Files in reading order:
//
//	kinds.go  Kinds: the table of this room
package goruntime
