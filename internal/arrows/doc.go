// Package arrows is the test of which room may import which, and of whether what comments and pages
// cite is there. It has no code of its own: the list of rooms is text in the test, next to what
// reads it.
package arrows
