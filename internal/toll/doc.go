// Package toll says what a recording cost the service, from what was counted of it stage by stage:
// with counters alone, with the kernel's records, and with the trace. The recorder asks it whether
// to give up detail, and the report what to print. It refuses to guess: where the load varied,
// where there was too little work, or where the difference is within the noise, it says so.
//
// Files in reading order:
//
//	bill.go     Bill: the figures of each stage, and what each part added
//	weigh.go    a Toll becomes a Bill
//	ratio.go    a ratio of two sums over slices, with its error
package toll
