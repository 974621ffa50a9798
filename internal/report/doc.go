// Package report shows what was found: one [Report], assembled once, printed as text, JSON or markdown. It decides what
// is shown and how, never what is true: every figure in it comes from the ledger or a detector. Names and strings that
// came from the input are untrusted and are printed so that neither a terminal nor a browser acts upon them.
package report
