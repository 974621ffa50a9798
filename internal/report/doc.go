// Package report shows what was found: one [Report], assembled once, printed as text, JSON or
// markdown. It decides what is shown and how, never what is true: every figure in it comes from the
// ledger or a detector. Names and strings from the input are untrusted. They are printed so that
// neither a terminal nor a browser acts upon them.
//
// The files in reading order:
//
//	report.go       Report: what is printed, in the shape of the JSON
//	kernel.go       its part from the kernel's records
//	assemble.go     a Source becomes a Report
//	rest.go         the largest time that no finding explains
//	output.go       the table of outputs
//
// What the outputs for people say, in sentences that they share:
//
//	verdict.go      the first lines: what was looked at, found, ruled out, how much it explains
//	requests.go     which requests were counted, and why one was slow
//	rows.go         the ledger as rows: who gets one, who shares one
//	capacity.go     CPUs and memory, beside their accounts
//	bounds.go       what a cause that was ruled out can cost at most
//	oncpu.go        what CPUs were used for, and the sentence on own computing
//	threads.go      the threads, who ran instead of them, what the kernel did in them
//	pauses.go       long stop-the-worlds and barriers
//	seen.go         what was looked at, and what could not be seen
//	lacks.go        what could not be checked, and what was lost
//	cost.go         what recording and explaining took
//	service.go      what recording cost the service
//	number.go       counts, and shares that add up
//	safe.go         what is safe to print, and breaking lines
//
//	story.go        chains of findings told as one, the verdict, why one stands before another
//	brief.go        what the short outputs say, in a sentence or a list of names
//	latency.go      latency over time as a line of characters
//
// The outputs, a file and a row of the table each:
//
//	screen.go       for a terminal: the one screen; screen_bars.go: its bars; labels.go: labels
//	                that are cut and still differ
//	text.go         for a terminal, everything: the first part
//	text_proof.go   the proof of each finding, the slowest requests, what was not checked
//	text_kernel.go  CPUs, memory, threads, pauses
//	only.go         one part of it
//	markdown.go     for a ticket; markdown_brief.go: for the channel of an incident
//	json.go         for programs; schema.json describes it
//	html.go         for a browser: what internal/report/webpage shows
//	html_ledger.go  its ledger, and which row an account belongs to
//	html_story.go   slow requests in full; html_sketch.go: the others in short
//	html_process.go waits by stack, locks, pauses, CPUs, memory, threads
//	html_time.go    latency over time, and what stopped the process meanwhile
//	html_parts.go   what hung on a ticket, part by part
package report
