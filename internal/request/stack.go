package request

import (
	"hash/maphash"
	"strings"

	"github.com/whystall/whystall/exectrace"
)

// where says in which part of net/http's connection loop a stack stands: it is told by the frame that (*conn).serve called.
type where uint8

const (
	whereNone      where = iota // no (*conn).serve in it
	whereIdle                   // waits for the first bytes of a request
	whereHandshake              // TLS: the request may come with its last message
	whereFresh                  // starts the background reader: once a request, before its handler
	whereHandler
	whereFinish // finishRequest: flushes, then stops the background reader
	whereClose
	whereHTTP2 // the connection turned out to be HTTP/2: its goroutine is a connection's reader from here on
	whereOther
)

// mark is a property of a stack.
type mark uint32

const (
	markAbort    mark = 1 << iota // net/http stops the background reader
	markHijack                    // ... because the handler takes the connection
	markWrite                     // writes to the request's own connection
	markBody                      // reads the request's own body
	markOurs                      // a handler of net/http/pprof, or runtime/trace
	markIdle                      // where a known loop waits for work
	markAccept                    // waits for a connection
	markRPC                       // a streaming RPC's handler
	markNetWrite                  // writes to some connection
	markNetRead                   // reads from some connection
	markClient                    // waits for an answer to a request of its own: never idle
	markAnswer                    // reads the body of an answer to a request of its own
	markPush                      // the handler asked for what it has written to be sent now
	markSend                      // writes to a socket
	markFlush                     // finishRequest's last flush: once a request
)

// stackInfo is what a stack means, worked out once.
type stackInfo struct {
	entry uint32 // index into Finder.entries; 0: not known
	site  uint32 // index into Finder.sites; 0: none
	call  uint32 // the entry function's call that it stands in, as Finder.calls; 0: in itself
	name  NameID // handler, where it can be seen
	marks mark
	where where
	known bool
}

// maxDepth is how many frames the runtime keeps: a stack that deep may have lost its root.
const maxDepth = 127

// maxStacks bounds the cache against a damaged trace's ids; those beyond mean nothing.
const maxStacks = 1 << 22

var noStack stackInfo

// stack is what id means. The pointer holds until the next call.
func (f *Finder) stack(id exectrace.StackID) *stackInfo {
	if int(id) < len(f.stacks) && f.stacks[id].known {
		return &f.stacks[id]
	}
	if id == 0 || id >= maxStacks {
		return &noStack
	}
	if int(id) >= len(f.stacks) {
		f.stacks = append(f.stacks, make([]stackInfo, int(id)+1-len(f.stacks)+len(f.stacks)/4)...)
	}
	f.frames = f.src.Frames(f.frames[:0], id)
	f.stacks[id] = f.classify(f.frames)
	return &f.stacks[id]
}

// classify reads a stack, innermost frame first.
func (f *Finder) classify(frames []exectrace.Frame) stackInfo {
	in := stackInfo{known: true}
	truncated := len(frames) >= maxDepth
	for len(frames) > 0 && isRootWrapper(frames[len(frames)-1].Func) {
		frames = frames[:len(frames)-1]
	}
	if len(frames) == 0 {
		return in
	}
	if !truncated {
		in.entry = f.entry(frames[len(frames)-1].Func)
		for f.entries[in.entry].launch.decided && len(frames) > 1 && !isStd(frames[len(frames)-2].Func) {
			frames = frames[:len(frames)-1]
			in.entry = f.entry(frames[len(frames)-1].Func)
		}
	}
	handler := -1 // index of the frame that calls the program's handler
	for i, fr := range frames {
		name := fr.Func
		switch {
		case strings.HasPrefix(name, "net/http"):
			in.marks |= httpMarks(name)
			switch name {
			case "net/http.(*conn).serve":
				if in.where == whereNone && i > 0 {
					in.where = httpWhere(frames[i-1].Func)
				}
			case "net/http.(*conn).close":
				in.where = whereClose // also below a handler's panic
			case "net/http.serverHandler.ServeHTTP":
				handler = i
			}
		case strings.HasPrefix(name, "internal/poll.(*FD).Write"), strings.HasPrefix(name, "internal/poll.(*FD).WriteTo"), name == "internal/poll.SendFile", name == "internal/poll.Splice":
			in.marks |= markNetWrite
		case strings.HasPrefix(name, "net.(*netFD).Write"), strings.HasPrefix(name, "net.(*netFD).write"), name == "net.sendFile":
			in.marks |= markSend
		case strings.HasPrefix(name, "internal/poll.(*FD).Read"):
			in.marks |= markNetRead
		case strings.HasPrefix(name, "net.(*") && (strings.HasSuffix(name, "Listener).Accept") || strings.HasSuffix(name, "Listener).AcceptTCP") || strings.HasSuffix(name, ").accept")):
			in.marks |= markAccept
		case strings.HasPrefix(name, "runtime/trace.Start"), strings.Contains(name, "/pprofhandler."):
			in.marks |= markOurs
		}
		if strings.HasSuffix(name, "erverConn).runHandler") && i > 0 {
			handler = i
		}
		switch pkgBase(name) {
		case "fasthttp":
			if methodOf(name) == "(*Server).serveConn" {
				handler = i
			}
		case "grpc":
			switch methodOf(name) {
			case "(*Server).processUnaryRPC":
				handler = i
			case "(*Server).processStreamingRPC":
				handler = i
				in.marks |= markRPC
			}
		}
		in.marks |= http2Marks(name) | clientMarks(name)
	}
	if truncated && in.where == whereNone {
		in.where = whereHandler // only a handler goes so deep; read on goroutines of net/http alone
	}
	if in.where == whereFinish && callee(frames, "(*response).finishRequest", is("bufio.(*Writer).Flush")) && callee(frames, "(*Writer).Flush", is("net/http.checkConnErrorWriter.Write")) {
		in.marks |= markFlush
	}
	if handler > 0 {
		in.name = f.handlerName(frames[:handler])
	}
	if in.entry != 0 {
		if idle := f.entries[in.entry].idle; idle != nil && idle(frames) {
			in.marks |= markIdle
		}
		if f.entries[in.entry].role == roleUnknown && in.marks&markClient == 0 {
			in.site = f.siteOf(frames, in.entry)
		}
		in.call = f.callOf(frames, in.entry)
	}
	return in
}

func httpMarks(name string) mark {
	switch name {
	case "net/http.(*connReader).abortPendingRead":
		return markAbort
	case "net/http.(*conn).hijackLocked", "net/http.(*response).Hijack":
		return markHijack
	case "net/http.checkConnErrorWriter.Write", "net/http.(*response).ReadFrom":
		return markWrite
	case "net/http.(*response).Flush", "net/http.(*response).FlushError":
		return markPush
	case "net/http.(*connReader).Read": // clients' connections have none
		return markBody
	}
	if strings.HasPrefix(name, "net/http/pprof.") {
		return markOurs
	}
	return 0
}

// http2Marks knows both copies of the HTTP/2 server, the module's and net/http's own, by their methods, and gRPC's transport.
func http2Marks(name string) mark {
	switch methodOf(name) {
	case "(*serverConn).writeDataFromHandler", "(*http2serverConn).writeDataFromHandler",
		"(*serverConn).writeHeaders", "(*http2serverConn).writeHeaders",
		"(*http2Server).Write", "(*http2Server).write", "(*http2Server).writeHeader", "(*http2Server).WriteHeader",
		"(*http2Server).writeStatus", "(*http2Server).WriteStatus":
		return markWrite
	case "(*responseWriter).Flush", "(*responseWriter).FlushError", "(*http2responseWriter).Flush", "(*http2responseWriter).FlushError":
		return markPush
	case "(*requestBody).Read", "(*http2requestBody).Read", "(*recvBufferReader).Read", "(*recvBufferReader).ReadMessageHeader":
		return markBody
	}
	return 0
}

func clientMarks(name string) mark {
	switch {
	case name == "net/http.(*bodyEOFSignal).Read", strings.HasSuffix(name, "ransportResponseBody.Read"):
		return markClient | markAnswer
	case strings.HasPrefix(name, "net/http.(*Client)."), strings.HasPrefix(name, "net/http.(*Transport).roundTrip"),
		strings.HasPrefix(name, "database/sql.(*"), strings.HasPrefix(name, "google.golang.org/grpc.(*ClientConn).Invoke"),
		strings.HasPrefix(name, "net/rpc.(*Client).Call"):
		return markClient
	}
	return 0
}

// httpWhere tells the part of the loop by what (*conn).serve called.
func httpWhere(callee string) where {
	switch callee {
	case "bufio.(*Reader).Peek", "net/http.(*conn).readRequest":
		return whereIdle
	case "net/http.(*connReader).startBackgroundRead":
		return whereFresh
	case "net/http.serverHandler.ServeHTTP":
		return whereHandler
	case "net/http.(*response).finishRequest":
		return whereFinish
	case "net/http.(*conn).close", "net/http.(*conn).serve.func1", "net/http.(*conn).serve.func2":
		return whereClose
	}
	if strings.HasPrefix(callee, "crypto/tls.(*Conn).Handshake") {
		return whereHandshake
	}
	// the handler of Server.TLSNextProto: a closure of the package that brought HTTP/2
	if strings.Contains(callee, "ttp2") || strings.Contains(callee, "HTTP2") || strings.Contains(callee, "onfigureServer") {
		return whereHTTP2
	}
	return whereOther
}

// handlerName is the first function outside the server's own package, going inwards from where the server calls its handler.
func (f *Finder) handlerName(inner []exectrace.Frame) NameID {
	for i := len(inner) - 1; i >= 0; i-- {
		name := inner[i].Func
		switch base := pkgBase(name); {
		case strings.HasPrefix(name, "net/http."), base == "http2", base == "grpc", base == "fasthttp", strings.HasPrefix(name, "runtime."),
			strings.Contains(name, "/grpc/internal/"):
			continue
		case isStd(name) && !strings.HasPrefix(name, "net/http"):
			return 0 // the server's own reading or writing
		}
		return f.intern(inner[i].Func)
	}
	return 0
}

// siteOf names the place a stack stands at: from its innermost frame outside the standard library to its root, so
// that a read over TLS and a plain one are the same place.
func (f *Finder) siteOf(frames []exectrace.Frame, entry uint32) uint32 {
	top := 0
	for top < len(frames)-1 && isStd(frames[top].Func) {
		top++
	}
	var h maphash.Hash
	h.SetSeed(f.seed)
	for _, fr := range frames[top:] {
		h.WriteString(fr.Func)
		h.WriteByte(byte(fr.Line))
		h.WriteByte(byte(fr.Line >> 8))
		h.WriteByte(byte(fr.Line >> 16))
	}
	key := h.Sum64()
	if id, ok := f.siteIDs[key]; ok {
		return id
	}
	id := uint32(len(f.sites))
	f.siteIDs[key] = id
	f.sites = append(f.sites, site{entry: entry, local: uint8(len(f.entries[entry].sites)), depth: int32(len(frames) - top), frame: frames[top].Func})
	f.entries[entry].sites = append(f.entries[entry].sites, id)
	return id
}

// isRootWrapper: frames below a goroutine's function that are not the program's.
func isRootWrapper(name string) bool {
	if name == "runtime.goexit" || name == "" {
		return true
	}
	i := strings.LastIndexByte(name, '.')
	return i >= 0 && strings.HasPrefix(name[i+1:], "gowrap") || strings.Contains(name, "·dwrap·")
}

// pkgPath and methodOf split "a/b.(*T).M" into "a/b" and "(*T).M".
func pkgPath(name string) string {
	slash := strings.LastIndexByte(name, '/')
	// a slash inside type arguments is no part of the path
	if b := strings.IndexByte(name, '['); b >= 0 && slash > b {
		slash = strings.LastIndexByte(name[:b], '/')
	}
	dot := strings.IndexByte(name[slash+1:], '.')
	if dot < 0 {
		return name
	}
	return name[:slash+1+dot]
}

func methodOf(name string) string {
	p := pkgPath(name)
	if len(p) == len(name) {
		return ""
	}
	return name[len(p)+1:]
}

// pkgBase is the last element of the package's path, with a major version taken off.
func pkgBase(name string) string {
	p := pkgPath(name)
	i := strings.LastIndexByte(p, '/')
	base := p[i+1:]
	if i > 0 && len(base) > 1 && base[0] == 'v' && base[1] >= '0' && base[1] <= '9' {
		p = p[:i]
		base = p[strings.LastIndexByte(p, '/')+1:]
	}
	return base
}

// isStd: of the standard library, as far as it waits or reads for others. A program's own package may have a
// path without a dot too, so these are named.
func isStd(name string) bool {
	p := pkgPath(name)
	if i := strings.IndexByte(p, '/'); i >= 0 {
		p = p[:i]
	}
	switch p {
	case "runtime", "internal", "net", "crypto", "bufio", "io", "sync", "os", "time", "syscall", "context", "encoding",
		"reflect", "bytes", "strings", "iter", "fmt", "log", "compress", "database", "errors", "sort", "slices", "maps", "vendor", "mime", "text":
		return true
	}
	return strings.HasPrefix(name, "golang.org/x/sys/") || strings.HasPrefix(name, "golang.org/x/net/")
}
