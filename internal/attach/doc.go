// Package attach says what follows from text that somebody attached to a ticket: the output of a
// tool, a few lines of a log, a thread dump. It refuses to take one kind for another, to call a
// glance a rate, and to name a cause that the text does not show.
//
// The table of kinds is in the rooms below, a file for each kind. A kind knows its own lines
// (Claim) and says what they mean (Read). Nothing here knows a kind by the name of its file.
//
// Patterns are pattern.New: a program that only records compiles none.
//
// Files in reading order:
//
//	kind.go     Kind and Part: how lines are known
//	reading.go  Reading, Fact and Sign: what a part says, as types and in a person's words
//	cut.go      Cut: lines to parts
//	comments.go  and what stands in comments between parts
//	choice.go   which kind claims a line, where several do
//	stream.go   Stream: the parts of a file of any length
//	long.go     Long: those of a file that is too long to be read whole
//	shapes.go   which lines of a log look like many others
//	own.go      a part without the text that it was cut from
//	window.go   the stretch of a long file that is in memory
//	marks.go    the search for marks of scattered lines, at the speed of grep
//	words.go    which of many words stand in a line, in one pass; which kinds to ask about it
//	figures.go  how figures are summed up and written
//	disks.go    what counters of disks say, whoever printed them
//	guess.go    what a range is that no kind knows, and which kind is nearest
//	sorts.go    words, source code, configurations, versions told from outputs
//	claim.go    how many lines a kind claims: while they are its own, or a JSON text
//	command.go  what a command says of the part below it
//	script.go   and what a script does that ran it more than once
//	explain.go  Explain: what all parts together say; start here
//	answer.go   Answer: its shape
//	series.go   which parts of a kind are before and after, which are two places
//	changes.go  what changed between readings of one kind
//	measures.go the facts that they are compared by
//	group.go    which parts are of one process and moment
//	facts.go    the facts that rules read
//	rules.go    what facts of several parts decide
//	queue.go    of them: whether threads queue for CPUs
//	quota.go    of them: whether a quota explains waits for a CPU
//	limits.go   of them: whether a table of the host is full
//	arbitrate.go  signs weighed against each other
//	elsewhere.go  candidates that the words around the parts rule out
//	fill.go     what is known of the process, put into commands
//	asked.go    which commands would print what is there already
//	kinds/      the table of all kinds; the rooms beside it fill it
//	attachtest/ runs a room's samples as tests
package attach
