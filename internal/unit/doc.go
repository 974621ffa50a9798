// Package unit finds the units of work of native threads, of which nothing is known but what the kernel recorded. It
// refuses to say where their time went: that is the ledger's.
//
// In reading order: unit.go (the steps), site.go (what a thread waits in), role.go (which of its waits is the wait for
// work), lead.go and make.go (pools whose threads take turns; threads made for one job), cut.go (lives into units), herd.go
// (woken for nothing), list.go (which groups are requests), names.go (names of functions that mean something).
package unit
