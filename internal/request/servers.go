package request

import (
	"strings"

	"github.com/whystall/whystall/exectrace"
)

// role is what a goroutine is by its entry function.
type role uint8

const (
	roleNone    role = iota // entry function not seen yet
	roleHTTP1               // net/http's connection loop
	roleLife                // one activation from creation to end
	roleLoop                // a known loop: idle at stacks that its server's row recognises
	roleNever               // never has a request: serves others, or is the runtime's
	roleUnknown             // to be learned
)

// server is one row of what is known about servers: goroutines with an entry function that matches
// have the role.
type server struct {
	kind      string
	role      role
	boundary  string
	match     func(entry string) bool
	idle      func(frames []exectrace.Frame) bool // roleLoop: the stack waits for work
	needWrite bool                                // roleLoop: a round that wrote nothing was no request
}

// servers is searched in order, first match wins.
var servers = []server{
	{kind: "net/http", role: roleHTTP1, match: is("net/http.(*conn).serve"),
		boundary: "from the end of the connection's wait for a request to the end of its answer"},
	{kind: "http2", role: roleLife, match: isHTTP2Stream, boundary: "from the creation of the stream's goroutine to its end"},
	{kind: "grpc", role: roleLife, match: func(e string) bool {
		return pkgBase(e) == "grpc" && strings.HasPrefix(methodOf(e), "(*Server).serveStreams.func")
	}, boundary: "from the creation of the stream's goroutine to its end"},
	{kind: "grpc", role: roleLoop, match: func(e string) bool { return pkgBase(e) == "grpc" && methodOf(e) == "(*Server).serverWorker" },
		idle: func(fr []exectrace.Frame) bool { return callee(fr, "(*Server).serverWorker", isRuntime) }, boundary: "from a stream worker's receive to the next"},
	{kind: "http3", role: roleLife, match: func(e string) bool {
		return pkgBase(e) == "http3" && strings.HasPrefix(methodOf(e), "(*Server).handleConn.func")
	}, boundary: "from the creation of the stream's goroutine to its end"},
	{kind: "net/rpc", role: roleLife, match: is("net/rpc.(*service).call"), boundary: "from the creation of the call's goroutine to its end"},
	{kind: "dns", role: roleLife, match: func(e string) bool { return pkgBase(e) == "dns" && methodOf(e) == "(*Server).serveUDPPacket" },
		boundary: "from the creation of the packet's goroutine to its end"},
	{kind: "fasthttp", role: roleLoop, needWrite: true,
		match: func(e string) bool {
			return pkgBase(e) == "fasthttp" && strings.HasPrefix(methodOf(e), "(*workerPool).")
		},
		idle: func(fr []exectrace.Frame) bool {
			return callee(fr, "(*workerPool).workerFunc", isRuntime) || callee(fr, "(*Server).serveConn", func(c string) bool {
				return strings.HasSuffix(c, ".acquireByteReader") || strings.Contains(c, "(*RequestHeader).") || strings.HasSuffix(c, "(*Reader).Peek")
			})
		}, boundary: "from the end of the wait for a request's header to the next"},

	// What the runtime and clients start, and what reads and writes on behalf of requests. None of
	// these handle a request by themselves.
	{role: roleNever, match: func(e string) bool {
		return strings.HasPrefix(e, "runtime.") && e != "runtime.main" || strings.HasPrefix(e, "runtime/")
	}},
	{role: roleNever, match: func(e string) bool {
		return (strings.HasPrefix(e, "net/http.") || strings.HasPrefix(e, "net.") || strings.HasPrefix(e, "os/") || strings.HasPrefix(e, "database/sql.") ||
			strings.HasPrefix(e, "context.") || strings.HasPrefix(e, "internal/") || strings.HasPrefix(e, "crypto/") || strings.HasPrefix(e, "net/rpc.") ||
			strings.HasPrefix(e, "log/") || strings.HasPrefix(e, "io.") || strings.HasPrefix(e, "time.") || strings.HasPrefix(e, "syscall.")) &&
			!strings.HasPrefix(e, "net/http.ListenAndServe")
	}},
	{role: roleNever, match: func(e string) bool {
		switch p := pkgPath(e); {
		case pkgBase(e) == "http2", pkgBase(e) == "grpc", strings.Contains(p, "google.golang.org/grpc"), pkgBase(e) == "quic-go":
			return true
		}
		return false
	}},
}

// isHTTP2Stream knows the handler's goroutine of net/http's copy and of the module's, wherever that
// was vendored.
func isHTTP2Stream(e string) bool {
	m := methodOf(e)
	return m == "(*serverConn).runHandler" && pkgBase(e) == "http2" || m == "(*http2serverConn).runHandler" && pkgBase(e) == "http"
}

// callee reports whether the outermost frame with method m calls a function that ok accepts.
func callee(frames []exectrace.Frame, m string, ok func(string) bool) bool {
	for i := len(frames) - 1; i > 0; i-- {
		if methodOf(frames[i].Func) == m {
			return ok(frames[i-1].Func)
		}
	}
	return false
}
