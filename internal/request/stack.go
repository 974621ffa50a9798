package request

import (
	"hash/maphash"
	"strings"

	"github.com/whystall/whystall/exectrace"
)

// where says in which part of net/http's connection loop a stack stands. The frame that
// (*conn).serve called decides.
type where uint8

const (
	whereNone      where = iota // no (*conn).serve in it
	whereIdle                   // waits for the first bytes of a request
	whereHandshake              // TLS: the request may come with its last message
	whereFresh                  // starts the background reader: once a request, before its handler
	whereHandler
	whereFinish // finishRequest: flushes, then stops the background reader
	whereClose
	whereHTTP2 // the connection turned out to be HTTP/2: its goroutine only reads from here on
	whereOther
)

// mark is a property of a stack.
type mark uint32

const (
	markAbort    mark = 1 << iota // net/http stops the background reader
	markHijack                    // the same, because the handler takes the connection
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
	markPush                      // the handler asked for its writes to be sent now
	markSend                      // writes to a socket
	markFlush                     // finishRequest's last flush: once a request
	markPoll                      // waits for the events of many descriptors, in a system call
)

// stackInfo is what a stack means, worked out once.
type stackInfo struct {
	entry uint32 // index into program.entries; 0: not known
	site  uint32 // index into program.sites; 0: none
	call  uint32 // the entry function's call it stands in: 1 + index into program.calls; 0: none
	name  NameID // handler, where it can be seen
	marks mark
	where where
	known bool
}

// program is what stacks, entry functions and names mean. It is worked out or learned once, and
// stays when the pass over the trace starts afresh.
type program struct {
	src     Source
	stacks  []stackInfo // by id
	entries []entry
	sites   []site
	calls   []call
	names   []string // by NameID

	entryIDs map[string]uint32
	siteIDs  map[uint64]uint32
	callIDs  map[call]uint32
	nameIDs  map[string]NameID
	seed     maphash.Seed
	frames   []exectrace.Frame // scratch
	learning bool              // in the look ahead
}

// maxDepth is how many frames the runtime keeps: a stack that deep may have lost its root.
const maxDepth = 127

// Bounds against a damaged trace: on the ids of stacks, those beyond mean nothing, and on names.
const (
	maxStacks = 1 << 22
	maxNames  = 1 << 16
)

var noStack stackInfo

func newProgram(src Source) program {
	return program{
		src: src, entries: []entry{newEntry("")}, sites: make([]site, 1), names: make([]string, 1),
		entryIDs: map[string]uint32{}, siteIDs: map[uint64]uint32{}, callIDs: map[call]uint32{},
		nameIDs: map[string]NameID{},
		seed:    maphash.MakeSeed(),
	}
}

func newEntry(name string) entry {
	return entry{name: name, group: NoGroup, relayGroup: NoGroup, lastUser: NoGroup}
}

func (p *program) intern(s string) NameID {
	if s == "" {
		return 0
	}
	if id, ok := p.nameIDs[s]; ok {
		return id
	}
	if len(p.names) >= maxNames {
		return 0
	}
	id := NameID(len(p.names))
	p.names = append(p.names, s)
	p.nameIDs[s] = id
	return id
}

// Name is the text of id. It is from the trace, untrusted.
func (p *program) Name(id NameID) string {
	if int(id) >= len(p.names) {
		return ""
	}
	return p.names[id]
}

// entry gives an entry function an index.
func (p *program) entry(name string) uint32 {
	if id, ok := p.entryIDs[name]; ok {
		return id
	}
	id := uint32(len(p.entries))
	p.entryIDs[name] = id
	e := newEntry(name)
	e.role, e.decideAt, e.launch = roleUnknown, 32, launch{decided: isLauncher(name)}
	for i := range servers {
		if s := &servers[i]; s.match(name) {
			e.role, e.server = s.role, s
			break
		}
	}
	p.entries = append(p.entries, e)
	return id
}

// stack is what id means. The pointer holds until the next call.
func (p *program) stack(id exectrace.StackID) *stackInfo {
	if int(id) < len(p.stacks) && p.stacks[id].known {
		return &p.stacks[id]
	}
	if id == 0 || id >= maxStacks {
		return &noStack
	}
	if int(id) >= len(p.stacks) {
		p.stacks = append(p.stacks, make([]stackInfo, int(id)+1-len(p.stacks)+len(p.stacks)/4)...)
	}
	p.frames = p.src.Frames(p.frames[:0], id)
	p.stacks[id] = p.classify(p.frames)
	return &p.stacks[id]
}

// classify reads a stack, innermost frame first:
//  1. Find the entry function: the outermost frame, or what a launcher called there.
//  2. Collect what the frames say, each by itself.
//  3. Name the handler: the first function inwards from where the server calls it.
//  4. For an entry function that is not known, name the place and the call for learning.
func (p *program) classify(frames []exectrace.Frame) stackInfo {
	in := stackInfo{known: true}
	truncated := len(frames) >= maxDepth
	for len(frames) > 0 && isRootWrapper(frames[len(frames)-1].Func) {
		frames = frames[:len(frames)-1]
	}
	if len(frames) == 0 {
		return in
	}
	if !truncated {
		in.entry = p.entry(frames[len(frames)-1].Func)
		for p.entries[in.entry].launch.decided && len(frames) > 1 && !isStd(frames[len(frames)-2].Func) {
			frames = frames[:len(frames)-1]
			in.entry = p.entry(frames[len(frames)-1].Func)
		}
	}
	handler := -1 // index of the frame that calls the program's handler
	for i, fr := range frames {
		name := fr.Func
		if strings.HasPrefix(name, "net/http") {
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
		} else {
			in.marks |= netMarks(name)
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
	if in.where == whereFinish &&
		callee(frames, "(*response).finishRequest", is("bufio.(*Writer).Flush")) &&
		callee(frames, "(*Writer).Flush", is("net/http.checkConnErrorWriter.Write")) {
		in.marks |= markFlush
	}
	if polls(frames) {
		in.marks |= markPoll
	}
	if handler > 0 {
		in.name = p.handlerName(frames[:handler])
	}
	if in.entry != 0 {
		if s := p.entries[in.entry].server; s != nil && s.idle != nil && s.idle(frames) {
			in.marks |= markIdle
		}
		if p.entries[in.entry].role == roleUnknown && in.marks&markClient == 0 {
			in.site = p.siteOf(frames, in.entry)
		}
		in.call = p.callOf(frames, in.entry)
	}
	return in
}

// netMarks reads one frame for what is done with connections.
func netMarks(name string) mark {
	switch {
	case strings.HasPrefix(name, "internal/poll.(*FD).Write"),
		strings.HasPrefix(name, "internal/poll.(*FD).WriteTo"), name == "internal/poll.SendFile",
		name == "internal/poll.Splice":
		return markNetWrite
	case strings.HasPrefix(name, "net.(*netFD).Write"),
		strings.HasPrefix(name, "net.(*netFD).write"), name == "net.sendFile":
		return markSend
	case strings.HasPrefix(name, "internal/poll.(*FD).Read"):
		return markNetRead
	case strings.HasPrefix(name, "net.(*") && (strings.HasSuffix(name, "Listener).Accept") ||
		strings.HasSuffix(name, "Listener).AcceptTCP") || strings.HasSuffix(name, ").accept")):
		return markAccept
	case strings.HasPrefix(name, "runtime/trace.Start"), strings.Contains(name, "/pprofhandler."):
		return markOurs
	}
	return 0
}

// polls reports whether a stack stands in a call of epoll_wait: a program that does not leave its
// sockets to the runtime waits there for work.
func polls(frames []exectrace.Frame) bool {
	for i := range frames {
		switch name := frames[i].Func; methodOf(name) {
		case "EpollWait", "epollWait", "epollwait", "EpollPwait", "epollPwait", "EpollPwait2":
			return true
		default:
			if !isStd(name) {
				return false
			}
		}
	}
	return false
}

// httpMarks reads one frame of package net/http.
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
	case "net/http.(*connReader).Read": // clients' connections have no such reader
		return markBody
	}
	if strings.HasPrefix(name, "net/http/pprof.") {
		return markOurs
	}
	return 0
}

// http2Marks knows both copies of the HTTP/2 server, the module's and net/http's own, by their
// methods, and gRPC's transport.
func http2Marks(name string) mark {
	switch methodOf(name) {
	case "(*serverConn).writeDataFromHandler", "(*http2serverConn).writeDataFromHandler",
		"(*serverConn).writeHeaders", "(*http2serverConn).writeHeaders",
		"(*http2Server).Write", "(*http2Server).write", "(*http2Server).writeHeader", "(*http2Server).WriteHeader",
		"(*http2Server).writeStatus", "(*http2Server).WriteStatus":
		return markWrite
	case "(*responseWriter).Flush", "(*responseWriter).FlushError", "(*http2responseWriter).Flush",
		"(*http2responseWriter).FlushError":
		return markPush
	case "(*requestBody).Read", "(*http2requestBody).Read", "(*recvBufferReader).Read",
		"(*recvBufferReader).ReadMessageHeader":
		return markBody
	}
	return 0
}

// clientMarks reads one frame for requests that the program itself sends.
func clientMarks(name string) mark {
	switch {
	case name == "net/http.(*bodyEOFSignal).Read", strings.HasSuffix(name, "ransportResponseBody.Read"):
		return markClient | markAnswer
	case strings.HasPrefix(name, "net/http.(*Client)."), strings.HasPrefix(name, "net/http.(*Transport).roundTrip"),
		strings.HasPrefix(name, "database/sql.(*"),
		strings.HasPrefix(name, "google.golang.org/grpc.(*ClientConn).Invoke"),
		strings.HasPrefix(name, "net/rpc.(*Client).Call"):
		return markClient
	}
	return 0
}

// httpWhere is the part of net/http's loop in which (*conn).serve calls callee.
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
	// The handler of Server.TLSNextProto: a closure of the package that brought HTTP/2.
	if strings.Contains(callee, "ttp2") || strings.Contains(callee, "HTTP2") ||
		strings.Contains(callee, "onfigureServer") {
		return whereHTTP2
	}
	return whereOther
}

// handlerName is the first function outside the server's own package, going inwards from where the
// server calls its handler.
func (p *program) handlerName(inner []exectrace.Frame) NameID {
	for i := len(inner) - 1; i >= 0; i-- {
		name := inner[i].Func
		switch base := pkgBase(name); {
		case strings.HasPrefix(name, "net/http."), base == "http2", base == "grpc",
			base == "fasthttp", strings.HasPrefix(name, "runtime."),
			strings.Contains(name, "/grpc/internal/"):
			continue
		case isStd(name) && !strings.HasPrefix(name, "net/http"):
			return 0 // the server's own reading or writing
		}
		return p.intern(inner[i].Func)
	}
	return 0
}

// siteOf names the place a stack stands at. It is from the innermost frame outside the standard
// library to the root, so that a read over TLS and a plain one are the same place.
func (p *program) siteOf(frames []exectrace.Frame, entry uint32) uint32 {
	top := 0
	for top < len(frames)-1 && isStd(frames[top].Func) {
		top++
	}
	var h maphash.Hash
	h.SetSeed(p.seed)
	for _, fr := range frames[top:] {
		h.WriteString(fr.Func)
		h.WriteByte(byte(fr.Line))
		h.WriteByte(byte(fr.Line >> 8))
		h.WriteByte(byte(fr.Line >> 16))
	}
	key := h.Sum64()
	if id, ok := p.siteIDs[key]; ok {
		return id
	}
	id := uint32(len(p.sites))
	p.siteIDs[key] = id
	p.sites = append(p.sites, site{entry: entry, local: uint8(len(p.entries[entry].sites)),
		depth: int32(len(frames) - top), frame: frames[top].Func,
		path: pathOf(frames[top:])})
	p.entries[entry].sites = append(p.entries[entry].sites, id)
	return id
}

// pathOf is the way from the entry function to a place.
func pathOf(frames []exectrace.Frame) []place {
	path := make([]place, 0, min(len(frames), mostPlaces))
	for i := len(frames) - 1; i >= 0 && len(path) < mostPlaces; i-- {
		path = append(path, place{frames[i].Func, frames[i].Line})
	}
	return path
}

// callOf is the call of frames' entry function; 0 if that is the innermost of the program.
func (p *program) callOf(frames []exectrace.Frame, entry uint32) uint32 {
	n := len(frames) - 1
	if e := &p.entries[entry]; n < 1 || e.role != roleUnknown || e.launch.works || isStd(frames[n-1].Func) {
		return 0
	}
	c := call{entry, uint32(frames[n].Line), frames[n-1].Func}
	if id, ok := p.callIDs[c]; ok {
		return id
	}
	p.calls = append(p.calls, c)
	id := uint32(len(p.calls))
	p.callIDs[c] = id
	return id
}
