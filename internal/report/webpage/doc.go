// Package webpage is a report as one HTML file that opens from disk without a network. The data are
// prepared by internal/report. The script that shows them is TypeScript under web/, and its bundle
// is committed here (page.js, page.css). This room decides nothing, and refuses to let data become
// markup: they lie in the file as JSON without a "<", and the policy in the file permits no script
// but ours.
//
// The files in reading order:
//
//	model.go   what the page shows, in the shape of its JSON
//	marked.go  names with their escapes marked
//	page.go    the file around it
package webpage
