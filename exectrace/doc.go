// Package exectrace reads Go execution traces of every format since Go 1.11, fast and in bounded memory.
//
// It is for two kinds of use. [Trace.Totals] tells how long each goroutine and each P was in which
// state. [Trace.Events] gives the events one by one, in order and with states attached, for questions of one's own.
//
// The package refuses nothing it can decode: of a truncated, damaged or crashed process' trace it gives
// every event that can be read, and says as a [Gap] what was lost and when.
//
// A file is mapped, not read, and no table grows with it: a trace of any length takes some tens of megabytes. What it
// holds is untrusted: sizes are checked before anything is allocated, and names are handed out as they are, so
// quote them when you print.
//
// It decodes what the runtime wrote and draws no conclusion: who held a lock, or what a
// running goroutine did on its CPU, is not in a trace; [Trace.Lacks] says so.
package exectrace
