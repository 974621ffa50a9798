// Package request finds the units of work whose latency matters, activations, in the stream of a trace's events.
// Users are told "request". It decides where they begin and end, and which group they belong to; it
// refuses to say why they were slow: that is the ledger's.
//
//  1. A stack is read once and becomes a few bits: which server's loop it stands in, and where (stack.go, servers.go).
//  2. A goroutine is what its entry function says: a known server's loop or stream, one of the runtime's or of a
//     client's, or unknown. What it is in the middle of is kept once a slot (finder.go).
//  3. net/http's loop has a state machine of its own, for its next request often is there before it waits (http.go).
//     Streams' goroutines live as long as their request does. User tasks and regions say so themselves (user.go).
//  4. Of unknown entry functions it is learned where their goroutines wait for work (loop.go), and at the end decided which
//     of them are requests beside what is known (group.go).
//  5. What one goroutine reads and others work on and answer is followed by who woke whom from a wait for work (relay.go).
//
// Where it can be wrong: the idle wait of an unknown loop is learned, and a group whose queue is never empty shows none;
// pipelined commands that one read brought are one activation with several Writes; a program of which only client
// loops are seen may have those listed. Group.Why says which boundaries were learned. What waits in a channel's buffer or a
// socket is not seen, nor who takes it out: Group.Doubt says where that was met.
package request
