// Package timeline turns evidence into who was in which state when, on one clock. It refuses to say why: that is the ledger's.
package timeline
