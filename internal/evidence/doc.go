// Package evidence holds what was recorded and the case that keeps it: raw bytes in standard
// formats, a manifest, and records on one clock. It refuses to interpret: a missing value is a gap
// and never zero.
//
// Files in reading order:
//
//	record.go     Record, its shapes, and a Set of them by stream
//	text.go       the text twin of a record, one line each
//	manifest.go   Manifest: how a case came to be
//	toll.go       Toll: what was counted of the target, stage by stage
//	doubt.go      what a manifest may not claim
//	case.go       Case: open a file or folder, within bounds
//	writer.go     Writer: make one
//	goversion.go  N of a version go1.N
//	kernel/       the kernel's records, a room of its own
package evidence
