// Package arrows is the tests of the whole tree, not of one room: which room may import which;
// whether what comments and pages cite is there; how long a function and how wide a comment may be.
// It has no code of its own. Each rule's list stands in the test that reads it.
package arrows
