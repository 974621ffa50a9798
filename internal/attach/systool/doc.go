// Package systool knows tools which print figures of the system and its processes: top, vmstat,
// pidstat.
//
// Files in reading order:
//
//	kinds.go  Kinds: the table of this room
package systool
