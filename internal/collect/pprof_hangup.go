package collect

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// A tracer before Go 1.22 writes its stacks and the clock's rate last. A connection that is simply
// cut loses them, and with them all requests. So a trace that is to end early is hung up on: we
// close our half of the connection. net/http's server takes that for a client that is gone, which
// ends the handler's wait, and the handler then writes what is left into the other half.

// hungUpFor is how long the rest may take to come. Tables of a large program are a few MB.
const hungUpFor = 3 * time.Second

// halfClosed is a connection of which the half that we write to can be closed alone.
type halfClosed interface {
	net.Conn
	CloseWrite() error
}

// hangingUp returns a context for one request. When ctx ends, the request's connection is hung up,
// and the context ends if the answer has not ended by then, at once where that cannot be done.
func hangingUp(ctx context.Context) (request context.Context, done func()) {
	var conn atomic.Pointer[halfClosed]
	later, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if c := conn.Load(); c == nil || (*c).CloseWrite() != nil {
			cancel(context.Cause(ctx))
			return
		}
		patience := time.AfterFunc(hungUpFor, func() { cancel(context.Cause(ctx)) })
		context.AfterFunc(later, func() { patience.Stop() })
	})
	traced := httptrace.WithClientTrace(later, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if c, ok := got.Conn.(halfClosed); ok && !multiplexed(got.Conn) {
			conn.Store(&c)
		}
	}})
	return traced, func() { stop(); cancel(nil) }
}

// multiplexed reports whether a connection is of HTTP/2: its half is not the request's alone.
func multiplexed(c net.Conn) bool {
	t, ok := c.(interface{ ConnectionState() tls.ConnectionState })
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}
