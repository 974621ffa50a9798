// Package request finds the units of work whose latency matters, activations, in the stream of a
// trace's events. Users read "request". It decides where they begin and end, and which group they
// belong to. It refuses to say why they were slow: that is the ledger's.
//
//  1. A stack is read once and becomes a few bits: which server's loop it stands in, and where.
//  2. A goroutine is what its entry function says: a known server's loop or stream, one of the
//     runtime's or of a client's, or unknown. What it is in the middle of is kept once a slot.
//  3. net/http's loop has a state machine of its own, for its next request often is there before
//     the goroutine waits. A stream's goroutine lives as long as its request does. User tasks and
//     regions say themselves where they begin and end.
//  4. For an unknown entry function it is learned where its goroutines wait for work.
//  5. A request that one goroutine reads and others answer is followed by who woke whom from a wait
//     for work.
//  6. At the end it is decided which of the unknown groups are requests, beside what is known.
//
// Where it can be wrong: the idle wait of an unknown loop is learned, and a group whose queue is
// never empty shows none. Pipelined commands that one read brought are one activation with several
// Writes. A program of which only client loops are seen may have those listed. Group.Why says which
// boundaries were learned. What waits in a channel's buffer or a socket is not seen, nor who takes
// it out: Group.Doubt says where that was met.
//
// In reading order, each file standing on those before it:
//
//   - request.go: activations, groups and why some are left out;
//   - funcname.go, servers.go: what the name of a function says; the table of known servers;
//   - entry.go, stack.go: what is counted about an entry function; what a stack means;
//   - idle.go: the wait for work of an unknown entry function;
//   - state.go: what is kept while events come;
//   - group.go, activation.go: which group; an activation opens, is proven, and is closed;
//   - launch.go: entry functions that only call what they were given;
//   - relay.go: requests that are handed on;
//   - http.go: net/http's connection loop;
//   - slot.go: what every event asks first;
//   - loop.go, user.go: loops, known or not; user tasks and regions;
//   - goroutine.go: a goroutine blocks, wakes, calls, begins, ends;
//   - list.go: which groups are shown;
//   - finder.go: the look ahead, and each event in turn.
//
// The hot path is [Finder.Record], then block, wake and call in goroutine.go. Once all stacks are
// known it allocates nothing but activations.
package request
