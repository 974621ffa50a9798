// Package cli is the command line: one file a command. It is the only room that wires the others together; what it
// prints comes from report, and what it decides is which exit status that means.
package cli
