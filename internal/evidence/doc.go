// Package evidence is what was recorded and the case that keeps it: raw bytes in standard formats,
// a manifest, and records on one clock. It refuses to interpret: a missing value is a gap and never
// zero.
package evidence
