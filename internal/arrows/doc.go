// Package arrows is the test of which room may import which. It has no code of its own: the list is text in
// the test, next to what reads it.
package arrows
