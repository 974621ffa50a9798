// Package request finds the units of work whose latency matters, activations, in the stream of a trace's events.
// Users are told "request". It decides where they begin and end, and which group they belong to; it
// refuses to say why they were slow: that is the ledger's.
//
// Finding one costs most events nothing but a look at two flat arrays: what a stack means is worked out
// once a stack, what a goroutine is in the middle of is kept once a slot.
package request
