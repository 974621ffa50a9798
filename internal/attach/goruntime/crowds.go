package goruntime

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// readDownstream says who waits for another process. That is not ours to explain.
func (p *picture) readDownstream(r *attach.Reading) {
	for i, what := range byMost(p.downs) {
		n := p.downs[what]
		if i == 2 {
			break
		}
		line := fmt.Sprintf("%s for %s", waits(n), what)
		if len(r.Signs) > 0 {
			r.Figures = append(r.Figures, line)
			continue
		}
		r.Figures = append([]string{line}, r.Figures...)
		if all := p.n - p.kinds[waitRuntime]; i == 0 && n == all && n > 1 && n < fewWaiters && len(r.Signs) == 0 {
			at := p.first(func(_ *stack, w wait) bool { return w.down == what })
			r.Figures = append(r.Figures, does(p.stacks[at], p.waits[at]))
			r.State = attach.CannotTell
			r.Means = fmt.Sprintf("all that are shown wait for %s in this moment, outside of the program; for how long is not in it", what)
			r.Next = append(r.Next, attach.Next{Command: "the same dump a minute later",
				Why: "who is still there has waited for so long"})
			continue
		}
		if i > 0 || n < manyWaiters && !(float64(n) >= mostOfAll*float64(p.n) && n >= fewWaiters) ||
			len(r.Signs) > 0 || !p.awaited(what, n) {
			continue
		}
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("the time is in %s, outside what whystall can look into here", what)
		r.Signs = append(r.Signs, attach.Sign{Grade: attach.Outside, Where: what,
			Share: ratio(float64(n), float64(p.n))})
		r.Next = append(r.Next,
			attach.Next{Command: "the same dump, or whystall diagnose, on the other side",
				Why: "what it does meanwhile is not in this process"})
	}
}

// aboutMost is the share of the largest crowd from which another one is as large as it.
const aboutMost = 0.5

// awaited reports whether the time of a program is with another side: requests wait for it, or half
// of all that do not rest do, and no larger crowd waits for something else. A few calls that wait
// may be long polls. A goroutine beside each child process is how programs keep
// them.
func (p *picture) awaited(what string, n int) bool {
	requests := 0
	for i, s := range p.stacks {
		if p.waits[i].down == what && s.has(handlers...) {
			requests += s.count
		}
	}
	if requests >= manyWaiters || 2*requests >= n {
		return true
	}
	_, largest, _ := p.crowded()
	rest := p.kinds[waitRuntime]
	for i, s := range p.stacks {
		if p.waits[i].kind != waitRuntime && idle(s) {
			rest += s.count
		}
	}
	return what != childProcess && float64(n) >= aboutMost*float64(max(largest, p.same, p.n-rest))
}

// readRequests says where requests of a server wait at a channel: for a turn, or for an answer.
func (p *picture) readRequests(r *attach.Reading) {
	at, turns := map[string]int{}, map[string]int{}
	for i, s := range p.stacks {
		if w := p.waits[i]; w.kind == waitChan && w.pool == "" && w.down == "" && !idle(s) && s.has(handlers...) && !s.streams() {
			at[s.own().fn] += s.count
			if s.sends() || turnNamed(s.own().fn) {
				turns[s.own().fn] += s.count
			}
		}
	}
	for _, fn := range byMost(at)[:min(1, len(at))] {
		if at[fn] < manyWaiters || len(r.Signs) > 0 {
			break
		}
		line := fmt.Sprintf("%d requests wait at a channel in %s", at[fn], fn)
		r.Figures = append([]string{line}, r.Figures...)
		r.State = attach.CannotTell
		r.Means = "requests wait for a turn or for an answer of other goroutines, or for events that a client follows (a stream, a long poll): which of them is not in the text"
		if 2*turns[fn] >= at[fn] {
			r.Means = "requests wait for a turn, or for others to take what they hand over: which of them is not in the text"
			r.Signs = append(r.Signs, attach.Sign{Cause: "pool-exhaustion", Grade: attach.Candidate, Proof: []string{line}})
		}
		r.Next = append(r.Next, attach.Next{Command: "whystall diagnose --pid PID",
			Why: "says who ends these waits, and what that one did before"})
	}
}

// streams reports whether a handler serves a stream of gRPC: it lasts as long as both sides want.
func (s *stack) streams() bool { return s.has("google.golang.org/grpc.(*Server).processStreamingRPC") }

// handlers are the calls below which a server's request runs.
var handlers = []string{"net/http.HandlerFunc.ServeHTTP", "net/http.serverHandler.ServeHTTP",
	"google.golang.org/grpc.(*Server).handleStream", "google.golang.org/grpc.(*Server).processUnaryRPC",
	"github.com/valyala/fasthttp.(*Server).serveConn", "net/rpc.(*service).call"}

// readRemote says what many connections mean that wait alike for their other side.
func (p *picture) readRemote(r *attach.Reading) {
	if p.far < crowdLeast || 2*p.far < p.n || len(r.Signs) > 0 || r.Means != "" {
		return
	}
	r.Figures = append([]string{fmt.Sprintf("%d of %d have one stack: %s", p.far, max(p.n, p.total),
		does(p.remote, classify(p.remote)))}, r.Figures...)
	if p.far < manyLeaked && p.total <= p.n {
		return
	}
	r.State = attach.CannotTell
	r.Means = "so many that wait for the other side are connections which are kept open, or a leak; they cost memory, and are no cause of latency by themselves"
	r.Next = append(r.Next, attach.Next{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=1' a minute later", Why: "a number that only grows, while the load does not, is a leak"})
}

// readClients says how many connections of HTTP clients are kept. Each has two goroutines, which
// look idle also where nobody closed the body of an answer.
func (p *picture) readClients(r *attach.Reading) {
	var reads, writes int
	for _, s := range p.stacks {
		switch {
		case s.has("net/http.(*persistConn).readLoop"):
			reads += s.count
		case s.has("net/http.(*persistConn).writeLoop"):
			writes += s.count
		}
	}
	if reads+writes < fewWaiters {
		return
	}
	line := fmt.Sprintf("%d in net/http.(*persistConn).readLoop and %d in writeLoop: an HTTP client's connections, idle ones (keep-alive), with a request under way, or with an answer that nobody has read to its end", reads, writes)
	r.Figures = append(r.Figures, line)
	if reads+writes < manyLeaked || len(r.Signs) > 0 || r.Means != "" {
		return
	}
	r.Figures = append([]string{line}, r.Figures[:len(r.Figures)-1]...)
	r.State = attach.CannotTell
	r.Means = "so many connections of an HTTP client are a crowd of idle ones, requests under way, or a leak (Response.Body not closed, a Transport for each request); they cost memory, and are no cause of latency by themselves"
	r.Next = append(r.Next, attach.Next{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=1' a minute later", Why: "a number that only grows, while the load does not, is a leak"})
}

// readOne says what the only goroutine of a text does, where its stack tells.
func (p *picture) readOne(r *attach.Reading, s *stack, w wait) {
	again := attach.Next{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=2'",
		Why: "all goroutines; twice, a minute apart: which stay where they are"}
	switch {
	case s.has("net/http.(*persistConn).readLoop") &&
		s.has("bufio.(*Reader).Peek", "bufio.(*Reader).fill") && w.kind == waitNet:
		r.Means = "the reading half of an HTTP client's connection waits for the first byte of an answer: of a connection that is kept idle as well as of a request under way"
	case s.has("net/http.(*persistConn).writeLoop") && w.kind == waitChan:
		r.Means = "the writing half of an HTTP client's connection has nothing to write: that is its rest"
	case s.has("internal/poll.(*FD).Accept", "net.(*netFD).accept") && w.kind == waitNet:
		r.Means = "a listener waits for the next connection to come: that is its rest, however long"
	case s.has("net/http.(*conn).readRequest") && w.kind == waitNet:
		r.Means = "an HTTP server waits for a client's next request, or for the rest of one: IdleTimeout and ReadTimeout of http.Server bound such a wait"
	case w.kind == waitRun && strings.HasPrefix(s.state, "running") &&
		strings.HasPrefix(p.signal, "SIGQUIT") && s.own().fn != "":
		r.Means = fmt.Sprintf("%s was running when the program was asked for its stacks, and waited for nothing: where a second dump shows it there again, it computes or spins", s.own().fn)
		r.Next = append(r.Next, attach.Next{Command: "perf top -g -p PID", Why: "what it computes, while it hangs"})
	case s.state == "syscall" && s.minutes > 0 && s.systemCall() == "syscall.Write":
		r.Means = fmt.Sprintf("a write%s has not come back for %s: who should read a pipe or a terminal does not, or the file takes no more", s.descriptor(), count(s.minutes, "minute", "minutes"))
		r.Not = "who waits for this goroutine meanwhile"
	case s.state == "runnable" && s.systemCall() != "":
		r.Means = fmt.Sprintf("%s has returned, and the goroutine waits for a P: how long the call took, or the wait, is not in it", s.systemCall())
	default:
		return
	}
	if len(r.Next) == 0 {
		r.Next = append(r.Next, again)
	}
}

// descriptor is where a write goes, by the call's arguments: the number of the call comes first.
func (s *stack) descriptor() string {
	for _, f := range s.frames {
		if strings.HasPrefix(f.fn, "syscall.Syscall") && len(f.args) > 1 {
			switch f.args[1] {
			case 1:
				return " to standard output"
			case 2:
				return " to standard error"
			}
		}
	}
	return ""
}

// senders says where goroutines wait to send to a channel: most first, two places at most.
func (p *picture) senders() (out []string) {
	n, one := map[string]int{}, map[string]*stack{}
	for _, s := range p.stacks {
		if key := s.own().fn + s.own().at; s.sends() && s.own().fn != "" {
			n[key] += s.count
			if one[key] == nil || s.minutes > one[key].minutes {
				one[key] = s
			}
		}
	}
	for _, key := range byMost(n)[:min(2, len(n))] {
		s := one[key]
		line := fmt.Sprintf("%d in chan send in %s%s", n[key], s.own().fn, at(s.own().at))
		if s.minutes > 0 {
			line += longest(n[key], s.minutes)
		}
		out = append(out, line)
	}
	return out
}

// sends reports whether a goroutine waits to send.
func (s *stack) sends() bool {
	return strings.HasPrefix(s.state, "chan send") || s.state == "" && s.has("runtime.chansend")
}

// readSenders says what it means that goroutines wait for minutes to send: unlike one that
// receives, nobody waits so for work to come.
func (p *picture) readSenders(r *attach.Reading) {
	if len(p.stacks) < 2 {
		return // readCut says it
	}
	senders := p.senders()
	if len(r.Signs) > 0 || r.Means != "" || p.left() {
		r.Figures = append(r.Figures, senders...)
		return
	}
	r.Figures = append(senders, r.Figures...)
	long, most := map[string]int{}, map[string]int{}
	for _, s := range p.stacks {
		if fn := s.own().fn; strings.HasPrefix(s.state, "chan send") && s.minutes > 0 {
			long[fn] += s.count
			most[fn] = max(most[fn], s.minutes)
		}
	}
	for _, fn := range byMost(long)[:min(1, len(long))] {
		who := "a goroutine that sends"
		if long[fn] > 1 {
			who = fmt.Sprintf("%d goroutines that send", long[fn])
		}
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s in %s: for minutes nobody has received what they send, so who should receive is gone, stuck, or busy with something else for so long", who, fn)
		if long[fn] == 1 {
			r.Means = fmt.Sprintf("%s in %s: for %s nobody has received what it sends, so who should receive is gone, stuck, or busy with something else for so long", who, fn, count(most[fn], "minute", "minutes"))
		}
		r.Not = "that a request waits for it: background work may have time"
		r.Next = append(r.Next,
			attach.Next{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=2' a minute later", Why: "whether the same ones still wait; the receiver's own stack says where it is"})
	}
}

// leastAlike is how many goroutines in one place of a channel may be a pool as well as a leak.
const leastAlike = 5

// readAlike says of goroutines that have waited alike for minutes at a channel that they may be
// workers without work, which is their rest, or left behind. One dump does not tell.
func (p *picture) readAlike(r *attach.Reading) {
	g := p.group()
	if g.n < leastAlike || g.minutes == 0 || g.kind != waitChan || len(r.Signs) > 0 || r.Means != "" ||
		len(p.stacks) < 2 || p.left() {
		return
	}
	r.State = attach.CannotTell
	r.Means = fmt.Sprintf("nobody waits for a lock; the %d that wait alike in %s are workers which nobody gives work, which is their rest, wait for an answer that does not come, or are left behind: this one dump does not tell", g.n, g.at.fn)
	r.Next = append(r.Next, attach.Next{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=1' a minute later", Why: "a number that only grows, while the load does not, is a leak"})
}

// Of crowds that are of one size since each connection has its goroutines: how far apart they are,
// and how many there are at least.
const (
	sameSize   = 0.05
	fewestKept = 3
)

// readPerConnection knows goroutines that go with connections: as many read from them as are in
// each of several other places.
func (p *picture) readPerConnection(r *attach.Reading) {
	readers := map[string]int{}
	at := map[string]int{}
	for i, s := range p.stacks {
		if p.waits[i].kind != waitRuntime {
			at[s.own().fn+s.through()+s.own().at] += s.count
		}
		if p.waits[i].kind == waitNet && s.has("internal/poll.(*FD).Read") && !idle(s) {
			readers[cmp.Or(s.through(), s.own().fn)] += s.count
		}
	}
	if len(readers) == 0 || p.n < manyLeaked || len(r.Signs) > 0 || r.Means != "" {
		return
	}
	reader := byMost(readers)[0]
	size := readers[reader]
	alike, n := 0, 0
	for _, c := range at {
		if math.Abs(float64(c-size)) <= sameSize*float64(size) {
			alike, n = alike+1, n+c
		}
	}
	if size < crowdLeast || alike < fewestKept || 2*n < p.n {
		return
	}
	r.Figures = append([]string{fmt.Sprintf("%d read from connections in %s; %d places have about as many each, %d of %d goroutines together", size, reader, alike, n, max(p.n, p.total))}, r.Figures...)
	r.State = attach.CannotTell
	r.Means = fmt.Sprintf("it looks as if each of %d connections had its own goroutines, about %.0f: their number follows that of the connections, and says nothing of delay", size, math.Round(float64(p.n)/float64(size)))
	r.Next = append(r.Next, attach.Next{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=1' a minute later", Why: "a number that grows while the connections do not is a leak"})
}

// readCrowds says what many goroutines alike mean: a leak, or work that queues for the Ps.
func (p *picture) readCrowds(r *attach.Reading) {
	if p.readPerConnection(r); p.same >= manyLeaked && r.Means == "" {
		s := p.alike
		r.Figures = append([]string{fmt.Sprintf("%d have one stack: %s", p.same, does(s, classify(s)))}, r.Figures...)
		if len(r.Signs) == 0 {
			r.State = attach.CannotTell
			r.Means = "so many goroutines at one channel are workers without work, a leak, or a crowd behind one that serves them: which, one moment does not tell; a leak costs memory and work of GC, and is no cause of latency by itself"
			if s.sends() {
				r.Means = "so many goroutines that send to one channel are a crowd behind who should receive, or are left behind by one that is gone; those that are left cost memory and work of GC, and are no cause of latency by themselves"
			}
			if s.streams() {
				r.Means = "so many handlers of one stream are as many clients that stay, or a leak: streams that nobody ends; a leak costs memory and work of GC, and is no cause of latency by itself"
			}
			r.Next = append(r.Next, attach.Next{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=1' a minute later", Why: "a number that only grows, while the load does not, is a leak"})
		}
	}
	p.readClients(r)
	p.readSenders(r)
	p.readRemote(r)
	p.readAlike(r)
	if n := p.kinds[waitC]; n >= manyInC && len(r.Signs) == 0 && r.Means == "" {
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%d goroutines are in C code (cgo), and each call that blocks there keeps a thread of its own", n)
		if more := p.kinds[waitSyscall]; more >= manyInC {
			r.Means = fmt.Sprintf("%d goroutines are in C code (cgo) and %d in system calls, and each call that blocks there keeps a thread of its own", n, more)
		}
		r.Next = append(r.Next, attach.Next{Command: "gdb -p PID -batch -ex 'thread apply all bt'",
			Why: "shows what the C code waits for"})
	}
	if fn, n, sleep := p.crowded(); n >= manyLeaked && sleep && len(r.Signs) == 0 && r.Means == "" {
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("so many goroutines asleep in %s are work that comes faster than it ends, or a leak; it costs memory and work of GC, and is no cause of latency by itself", fn)
		r.Next = append(r.Next, attach.Next{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=1' a minute later", Why: "a number that only grows, while the load does not, is a leak"})
	}
	if g := p.group(); g.n >= manyLeaked && (g.kind == waitGroup || g.kind == waitCond) &&
		len(r.Signs) == 0 && r.Means == "" {
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("so many goroutines that wait alike in %s for others are work that comes faster than it ends, or a leak; it costs memory and work of GC, and is no cause of latency by itself", g.at.fn)
		r.Next = append(r.Next, attach.Next{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=1' a minute later", Why: "a number that only grows, while the load does not, is a leak"})
	}
	if n := p.kinds[waitRun]; (n >= manyRunning || n >= manyRunning/2 && 2*n >= p.n) && len(r.Signs) == 0 {
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%d goroutines run or could run in this moment: of Ps there may be fewer, and then the others wait for one", n)
		r.Next = append(r.Next, attach.Next{Command: "GODEBUG=schedtrace=1000", Why: "samples say whether it stays so"})
	}
}
