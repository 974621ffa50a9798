package exectrace

// What the two format families share. The reader of 1.22 and later lives in v2*.go, that of 1.11 to
// 1.21 in v1*.go; each fills blocks of events in order and hands them to yield.
//
// tables interns strings and stacks by content; only the goroutine that hands out blocks may touch it, so ids
// do not depend on how many workers decoded.
type tables struct {
	// filled by the reader's core
}
