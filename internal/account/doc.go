// Package account is what the ledgers say, as plain data: which requests there were, where their
// time went, what CPUs and memory were used for, and what the kernel's records add. It computes
// nothing. Detectors and reports read it, and need none of the machinery that makes it.
//
// series.go has requests over time, for people's eyes. kinds.go has what code may decide by. A
// field with the tag prose:"yes" holds a sentence for people, which no code reads
// (internal/arrows).
package account
