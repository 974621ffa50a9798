// Package compare says whether a remedy worked: what two sides of recordings, before and after it,
// have in common, what differs, and a verdict for each cause that was found before. It refuses to
// call a difference an effect where neighbours, load or chance may have made it.
//
// Files in reading order:
//
//	run.go      Run: what one recording is asked for
//	entry.go    which entry points both sides have, and how their latency changed
//	amount.go   what a cause cost before, and what it can cost after
//	starts.go   recordings of one start of the process count once; the t test over starts
//	verdict.go  Verdict: confirmed, not confirmed, worse, or cannot tell and why
//	gates.go    what keeps two sides from being compared
//	distribution.go  both sides' requests by how long they took
//	compare.go  Sides: the whole comparison
//
// The rules come from 72 unchanged recordings of five services, and pairs of eight, on a machine
// with neighbours: an interval that is made from inside two recordings calls 20 to 60 % of
// unchanged pairs changed, since what differs between them is not chance. So one recording a side
// has to show a fall that is large, and several count by starts of the process.
package compare
