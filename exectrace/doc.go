// Package exectrace reads Go execution traces of every format since Go 1.11, fast and in bounded
// memory.
//
// There are two kinds of use. [Trace.Totals] says how long each goroutine and each P was in which
// state. [Trace.Events] gives the events one by one, in order and with states attached, for
// questions of one's own; [Trace.Batches] gives them in a third of the bytes.
//
// The package refuses nothing that it can decode. Of a trace that is truncated, damaged, or of a
// crashed process, it gives every event that can be read, and says as a [Gap] what was lost and
// when.
//
// A file is mapped, not read, and no table grows with it: a trace of any length takes some tens of
// megabytes. What a trace holds is untrusted. Sizes are checked before anything is allocated. Names
// are handed out as they are, so quote them when you print.
//
// The package decodes what the runtime wrote, and draws no conclusion. Who held a lock, or what a
// running goroutine did on its CPU, is not in a trace; [Trace.Lacks] says so.
package exectrace

// # The files, in reading order
//
// What a user of the package sees:
//
//	event.go      Event and the types of its fields
//	record.go     Record: the common events in 32 bytes, and Batch
//	roster.go     Roster: which goroutine a Record's slot stands for
//	totals.go     Totals, and the summer that adds up states
//	trace.go      Trace: its methods choose the reader of the format
//	open.go       Open, New, OpenSection: the mapping, and faults in it as errors
//
// What both families of formats use:
//
//	internal.go   what both readers promise; gaps and errors of a read
//	header.go     the first 16 bytes, which have the version
//	tables.go     strings, frames and stacks by content
//	slots.go      small dense numbers for living goroutines; a hash table
//	heap.go       a binary heap by time
//	reason.go     the runtime's words for why a goroutine stopped
//	map_*.go      the file in memory
//	totalsadd.go  the summer's input: events in order, and goroutines that were summed without
//	sums.go       sums without order: the method, and what both families share of it
//	sumspages.go  goroutines by number, for sums
//
// Formats 1.22 and later. Generations stand one after another, each with its tables and the states
// of all that does something in it:
//
//	v2.go         the pipeline: an indexer, workers, the consumer
//	v2format.go   types of events, their shapes, headers of batches
//	v2varint.go   variable-length numbers, one by one and eight bytes at once
//	v2index.go    where each generation's batches are
//	v2stray.go    batches whose time is damaged
//	v2merge.go    the worker: puts the threads' events of a generation in order
//	v2run.go      decodes, checks and applies each common event
//	v2other.go    the same for rare events
//	v2sprint.go   the fast path of v2run.go that makes Events
//	v2sprintrecords.go  the fast path that makes Records
//	v2damage.go   gaps: what a worker does where something was lost
//	v2tables.go   the consumer: a generation's strings and stacks
//	v2block.go    the consumer: ids of the trace instead of the generation's, in Events
//	v2records.go  the same in Records; batches
//	v2sums.go     sums of a generation without order: the hot loop
//	v2sumsrare.go the same for rare events, and the check of the sums
//	v2sumsadd.go  totals: generations that were summed, or else read in order
//
// Formats 1.11 to 1.21. Each P's batches lie scattered, the clock's rate and the stacks at the end:
//
//	v1.go         the two passes, and how blocks and batches are handed over
//	v1format.go   types of events, shapes of records
//	v1index.go    the first pass: where batches, strings and stacks are
//	v1damage.go   the first pass where the file is damaged
//	v1cursor.go   decodes one P's batches
//	v1merge.go    puts the Ps' events in order
//	v1state.go    what the merge knows of goroutines
//	v1apply.go    what the merge does with each event
//	v1other.go    the same for events that need no order but that of time
//	v1samples.go  CPU profile samples, which stand elsewhere
//	v1records.go  the merge makes Records
//	v1tables.go   strings and stacks, read when an event first refers to them
//	v1sums.go     sums without order, in windows of time
//	v1sumsevents.go  what they do with each event
//
// Three words are easily confused. Totals are what a user gets: states added up over the whole
// trace, by whichever way. Sums are the way without order. A roster only says whose slot is whose.
//
// # Why there are no rooms inside
//
// The prefixes v1 and v2 look like two packages. But each reader takes about a hundred names of the
// shared files (events, tables, slots, gaps, sums), and those would all have to be exported, in a
// public package, for the sake of a folder. Neither uses a name of the other.
//
// # When Go adds an event
//
// This was tried with an event that is made up, of a format 1.27. Edit in this order; the tests in
// brackets fail until it is done.
//
//  1. testdata: add a trace that has the event. Every test over fixtures reads it. [TestBatches,
//     TestTotals, TestWorkers: "format 1.27 is not known"]
//  2. header.go: add the format to versions, and trace.go: to the comment of Version. A new header
//     of a batch, or another end of a generation, is v2index.go's (it compares versions) and
//     parseHeader's. [TestReference, until go.mod has an x/exp/trace that reads the format, and
//     compare_test.go what that makes of the event]
//  3. v2format.go: add the constant, before evCount, and the row of v2Shapes with the number of its
//     arguments. Without the row an event is damage. [TestTotals, and whichever test wants no gap]
//  4. v2text_test.go: add the name to textNames. [TestEveryEvent; TestGoTests, where a Go is
//     installed whose own tests have the event]
//  5. v2other.go: handle it in place, or in stateless if it changes the state of no goroutine and
//     no P. Without a case it is counted as an experiment's and left out. A number of a goroutine
//     or a P is checked against maxGo or maxProc. [TestEveryEvent]
//  6. v2sumsrare.go: handle it in rare. Without a case the generation is read in order: right, but
//     four times as slow. [TestV2TotalsWithoutOrder]
//  7. event.go, if it says something new: a Kind, Reason, Range or Metric. A new word for why a
//     goroutine stops is a row of reason.go; without it the event has ReasonOther and the word as
//     Name. Then totalsadd.go, and the users: internal/timeline (Apply, and the text twin),
//     internal/request (Telling).
//  8. trace.go: Lacks, if a format from now on says what those before did not.
//
// That is enough to be right. Only if a profile shows the event among the commonest is it worth a
// case in v2run.go, in the fast paths v2sprint.go, v2sprintrecords.go and v2sums.go, and an Op:
// record.go (the list, opEvents, Event), opStates in v2records.go, and Record in internal/request
// and internal/timeline. TestBatches holds batches to blocks, TestTotals sums to events.
