// Package account is what the ledgers say, as plain data: which requests there were, where their time went, what CPUs and
// memory were used for, and what the kernel's records add. It computes nothing; detectors and reports read it and need no
// machine that makes it.
package account
