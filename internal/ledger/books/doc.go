// Package books keeps the accounts of one recording. It numbers them, decides which units of work
// are kept as slow or as usual, adds up the columns, and writes them down as plain data. It does
// not know what an actor is, a goroutine or a thread: whoever walks them names what it numbers
// ([Names], [Runtime]). It refuses to explain anything: what a unit's time went to, its owner says.
//
// In reading order:
//
//   - books.go: the books, and what one unit adds; names.go: what the owner must be able to name
//   - code.go: leaves, classes and keys of accounts; table.go: their numbers; facts.go: what is
//     noted of a unit
//   - keep.go: which units are kept; histogram.go: their durations; all.go: the column of all
//   - choose.go: who is slow; noreq.go: why there is nobody
//   - plot.go, grid.go: when units were
//   - columns.go: slow and usual units added up; excess.go: one against the other; separate.go: on
//     how many separate events an account stands; divide.go: what time on CPUs was used for
//   - write.go: columns in words; slowest.go: the slowest requests; sketch.go: every slow one in
//     short; locks.go: what is lost behind a lock
package books
