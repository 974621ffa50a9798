// Package database knows what databases say of themselves: slow logs, plans, status pages.
//
// Files in reading order:
//
//	kinds.go  Kinds: the table of this room
package database
