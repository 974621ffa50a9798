package goruntime

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// Floors of a dump, which is one moment: a healthy server has a few goroutines at a lock or in a
// call at any time.
const (
	manyWaiters = 10   // in one queue: more than chance
	fewWaiters  = 3    // at locks, of which nothing follows
	manyLeaked  = 500  // with one stack
	manyRunning = 50   // runnable at once
	mostOfAll   = 0.05 // of all goroutines; less in calls is no news
)

// picture is a dump with what each of its goroutines waits for.
type picture struct {
	*dump
	waits  []wait
	n      int
	kinds  map[waitKind]int
	queues []*queue
	locked int // waiters at locks
	pools  map[string]int
	downs  map[string]int
	alike  *stack // the stack that most goroutines in channels have
	same   int    // how many have it
	oldest int    // minutes
	thread int    // locked to a thread
}

func lookAt(d *dump) *picture {
	p := &picture{dump: d, kinds: map[waitKind]int{}, pools: map[string]int{}, downs: map[string]int{}}
	alike := map[string]int{}
	for _, s := range d.stacks {
		w := classify(s)
		p.waits = append(p.waits, w)
		p.n += s.count
		p.kinds[w.kind] += s.count
		p.oldest = max(p.oldest, s.minutes)
		if s.locked {
			p.thread += s.count
		}
		if w.kind == waitLock {
			p.locked += s.count
		}
		if w.pool != "" {
			p.pools[w.pool] += s.count
		}
		if w.down != "" {
			p.downs[w.down] += s.count
		}
		if w.kind == waitChan && w.pool == "" && w.down == "" && !idle(s) {
			key := s.own().fn + s.own().at
			if alike[key] += s.count; alike[key] > p.same {
				p.same, p.alike = alike[key], s
			}
		}
	}
	p.queues = queues(d.stacks, p.waits)
	findHolders(p.queues, d.stacks)
	return p
}

func readDump(part *attach.Part, d *dump) attach.Reading {
	if n := countInProse(part.Title); len(d.stacks) == 1 && n > 1 {
		d.stacks[0].count = n // one stack, of as many as the text above it says
	}
	p := lookAt(d)
	r := attach.Reading{Glance: true, State: attach.Healthy, Title: p.title(part)}
	if len(d.stacks) == 0 && d.crash == "" {
		r.State, r.Means = attach.CannotTell, "the stacks are cut off: nothing follows"
		return r
	}
	r.Facts = append(r.Facts, attach.Fact{Name: FactGoroutines, Value: float64(max(p.n, d.total))})
	r.Figures = append(r.Figures, p.kindsText())
	if text := p.crowd(); text != "" {
		r.Figures = append(r.Figures, text)
	}
	if p.ended() {
		p.readCrash(&r)
		return r
	}
	p.readLocks(&r)
	p.readPools(&r)
	p.readDownstream(&r)
	p.readRequests(&r)
	p.readCrowds(&r)
	if r.Means == "" {
		r.Means = "nobody waits for a lock; what there is waits to be woken, sleeps or runs"
		if p.locked > 0 {
			r.Means = "a few goroutines at a lock in one moment are usual"
		}
		if p.n == 1 {
			r.State, r.Means = attach.CannotTell, "one goroutine says where it is, and nothing of the others"
			if len(p.stacks) == 1 && p.stacks[0].own().fn != "" {
				r.Figures = append([]string{does(p.stacks[0], p.waits[0])}, r.Figures...)
			}
		}
	}
	if r.Not == "" {
		r.Not = "how long each has waited: minutes are printed only of waits that a GC cycle has seen"
	}
	return r
}

// crowdLeast is how many at one place are worth naming it.
const crowdLeast = 20

// crowd names the place where most of those sleep, or are, that no lock, channel or socket holds.
func (p *picture) crowd() string {
	fn, n, sleep := p.crowded()
	switch {
	case n < crowdLeast:
		return ""
	case sleep:
		return fmt.Sprintf("%d sleep in %s", n, fn)
	}
	return fmt.Sprintf("%d in %s", n, fn)
}

func (p *picture) crowded() (fn string, n int, sleep bool) {
	at := map[string]int{}
	asleep := map[string]bool{}
	for i, s := range p.stacks {
		if k := p.waits[i].kind; (k == waitSleep || k == waitOther) && s.own().fn != "" {
			at[s.own().fn] += s.count
			asleep[s.own().fn] = k == waitSleep
		}
	}
	for _, fn := range byMost(at)[:min(1, len(at))] {
		return fn, at[fn], asleep[fn]
	}
	return "", 0, false
}

func (p *picture) title(part *attach.Part) string {
	what := "goroutine dump"
	if p.counts {
		what = "goroutine profile as text"
	}
	t := fmt.Sprintf("%s, %s", what, count(p.n, "goroutine", "goroutines"))
	if n := countInProse(part.Title); n >= p.n && n > len(p.stacks) {
		t = fmt.Sprintf("%s, %s of %d goroutines, as the text above it says", what, count(len(p.stacks), "stack", "stacks"), n)
	}
	if p.total > p.n {
		t += fmt.Sprintf(" of %d (the rest is cut off)", p.total)
	}
	switch {
	case p.crash != "":
		t += "; " + clip(p.crash)
	case p.signal != "":
		t += "; " + clip(p.signal)
	}
	return t
}

func clip(s string) string {
	if len(s) > 120 {
		return strings.ToValidUTF8(s[:120], "") + "..."
	}
	return s
}

// countInProse finds "3200 goroutines" in what a person wrote.
func countInProse(s string) (n int) {
	for f, rest := range words(s) {
		if v, ok := whole(strings.ReplaceAll(f, ",", "")); ok && strings.HasPrefix(rest, "goroutine") {
			n = max(n, v)
		}
	}
	return n
}

// words yields each word with what follows it.
func words(s string) func(func(string, string) bool) {
	return func(yield func(string, string) bool) {
		f := strings.Fields(s)
		for i := 0; i+1 < len(f); i++ {
			if !yield(f[i], f[i+1]) {
				return
			}
		}
	}
}

func (p *picture) kindsText() string {
	var parts []string
	for _, k := range []struct {
		kind waitKind
		text string
	}{{waitLock, "at a lock"}, {waitRun, "running or runnable"}, {waitChan, "at a channel"}, {waitNet, "in IO wait"}, {waitSleep, "asleep"},
		{waitSyscall, "in a system call"}, {waitCond, "at a condition"}, {waitGroup, "at a WaitGroup"}, {waitRuntime, "the runtime's own"}, {waitOther, "elsewhere"}} {
		if n := p.kinds[k.kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, k.text))
		}
	}
	t := strings.Join(parts, ", ")
	if p.oldest > 0 {
		t += fmt.Sprintf("; the longest wait %s", count(p.oldest, "minute", "minutes"))
	}
	if p.thread > 0 {
		t += fmt.Sprintf("; %d locked to a thread", p.thread)
	}
	return t
}

// ended reports whether the text is of a process that ended by itself.
func (p *picture) ended() bool {
	return p.crash != "" && !strings.Contains(p.crash, "http: panic serving ")
}

func (p *picture) readCrash(r *attach.Reading) {
	r.State = attach.CannotTell
	r.Glance = false
	where := ""
	if len(p.stacks) > 0 {
		s := p.stacks[0]
		where = fmt.Sprintf("goroutine %d [%s] in %s", s.id, s.state, s.own().fn)
		r.Figures = append([]string{where}, r.Figures...)
	}
	if strings.Contains(p.crash, "all goroutines are asleep") {
		r.Means = "a deadlock: every goroutine waited for another one, so the runtime ended the process"
		if len(p.queues) > 0 {
			r.Figures = append(r.Figures, fmt.Sprintf("%d at %s, %s", p.queues[0].n, p.queues[0].what(), p.queues[0].where()))
		}
	} else {
		r.Means = "the process ended by a crash: " + clip(p.crash)
	}
	r.Not = "that it was slow: the process ended"
}

// readLocks says who waits for which lock, who likely has it, and what that one does.
func (p *picture) readLocks(r *attach.Reading) {
	if p.locked == 0 {
		return
	}
	var holders []string
	for i, q := range p.queues[:min(len(p.queues), maxQueues)] {
		of := fmt.Sprintf("0x%x", q.addr)
		if q.addr == 0 {
			of = byMost(q.sites)[0]
		}
		r.Facts = append(r.Facts, attach.Fact{Name: FactLockWaiters, Value: float64(q.n), Of: of})
		for _, site := range byMost(q.sites) {
			r.Facts = append(r.Facts, attach.Fact{Name: FactLockSite, Value: float64(q.sites[site]), Of: site})
		}
		for _, h := range q.holders {
			r.Facts = append(r.Facts, attach.Fact{Name: FactLockHolder, Value: float64(h.id), Of: q.holding})
			if i < 2 && len(holders) < 3 {
				holders = append(holders, fmt.Sprintf("likely holder (%s): %s", q.by, does(h, classify(h))))
			}
		}
	}
	q := p.queues[0]
	line := fmt.Sprintf("%d wait for %s %s", q.n, q.what(), q.where())
	if len(q.sites) > 1 {
		line = fmt.Sprintf("%d wait for %s: %s", q.n, q.what(), q.where())
	}
	if q.addr == 0 && len(p.queues) > 1 {
		line = fmt.Sprintf("%d wait in Lock: %s", p.locked, sitesText(p.allSites()))
	}
	if q.minutes > 0 {
		line += fmt.Sprintf(", the longest for %s", count(q.minutes, "minute", "minutes"))
	}
	r.Figures = append([]string{line}, append(holders, r.Figures...)...)
	p.judgeLocks(r, q, append([]string{line}, holders...))
}

func (p *picture) allSites() map[string]int {
	all := map[string]int{}
	for _, q := range p.queues {
		for k, n := range q.sites {
			all[k] += n
		}
	}
	return all
}

func (p *picture) judgeLocks(r *attach.Reading, q *queue, proof []string) {
	waiters := q.n
	if q.addr == 0 {
		waiters = p.locked
	}
	circle := q.circular()
	switch {
	case waiters >= manyWaiters || q.minutes > 0 || circle:
	case waiters >= fewWaiters && len(q.holders) > 0:
	case waiters >= fewWaiters:
		r.State = attach.CannotTell
		r.Means = "some goroutines wait for a lock in this moment; how long they wait is not in it"
		r.Next = append(r.Next, attach.Next{Command: "curl 'http://HOST:PORT/debug/pprof/mutex?debug=1&seconds=10'", Why: "says how long locks are waited for, if the program has set SetMutexProfileFraction"})
		return
	default:
		return
	}
	cause := "lock-contention"
	r.Means = "goroutines queue for one lock"
	if waiters == 1 {
		r.Means = "a goroutine waits for a lock for minutes"
	}
	if q.logger {
		cause = "logger-lock"
		r.Means = "goroutines queue for the lock of a logger: one writes, and the others wait with what they log"
	}
	sure := finding.Possible
	switch {
	case circle:
		r.Means = "goroutines hold locks and wait for each other's: a deadlock, and all others queue behind"
		sure = finding.Supported
	case len(q.holders) > 0:
		h := q.holders[0]
		r.Means += ", which is likely held in " + q.holding
		if w := classify(h); h.has("os.(*File).Write") && (w.kind == waitNet || w.kind == waitSyscall) {
			r.Means += ": it writes to a file or pipe that takes no more, with the lock held"
		} else if w.kind == waitNet || w.down != "" {
			r.Means += ": it waits for the network with the lock held"
		}
		if q.minutes > 0 && q.addr != 0 {
			sure = finding.Supported
		}
	case len(p.singles(q)) > 0:
		r.Means += fmt.Sprintf("; %s wait for a lock elsewhere and likely hold what the others want: locks taken in different order, perhaps a deadlock", strings.Join(p.singles(q), " and "))
	default:
		r.Means += "; who holds it is not in the text"
	}
	r.State = attach.Ill
	r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Found, Sure: sure, Share: ratio(float64(waiters), float64(p.n)), Proof: proof})
	r.Next = append(r.Next, attach.Next{Command: "whystall diagnose --pid PID", Why: "measures how long requests wait for the lock and what its holders do"})
}

// singles are functions of which one or two goroutines wait for a lock, beside a long queue.
func (p *picture) singles(q *queue) (out []string) {
	for _, other := range p.queues {
		if other == q || other.n > 2 || len(out) == 3 || q.n < manyWaiters {
			continue
		}
		for _, site := range byMost(other.sites) {
			if site != "" && q.sites[site] == 0 {
				out = append(out, site)
			}
		}
	}
	return out
}

// readPools says who waits for a turn of something limited.
func (p *picture) readPools(r *attach.Reading) {
	for i, what := range byMost(p.pools) {
		n := p.pools[what]
		line := fmt.Sprintf("%d wait for %s", n, what)
		r.Figures = append([]string{line}, r.Figures...)
		if i > 0 || n < manyWaiters || len(r.Signs) > 0 {
			continue
		}
		r.State = attach.Ill
		r.Means = "goroutines queue for a thing of which there are too few, or which others keep too long"
		r.Signs = append(r.Signs, attach.Sign{Cause: "pool-exhaustion", Grade: attach.Found, Sure: finding.Possible, Share: ratio(float64(n), float64(p.n)), Proof: []string{line}})
	}
}

// readDownstream says who waits for another process. That is not ours to explain.
func (p *picture) readDownstream(r *attach.Reading) {
	for i, what := range byMost(p.downs) {
		n := p.downs[what]
		if i == 2 {
			break
		}
		r.Figures = append([]string{fmt.Sprintf("%d wait for %s", n, what)}, r.Figures...)
		if i > 0 || n < manyWaiters && !(float64(n) >= mostOfAll*float64(p.n) && n >= fewWaiters) || len(r.Signs) > 0 {
			continue
		}
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("the time is in %s, outside what whystall can look into here", what)
		r.Signs = append(r.Signs, attach.Sign{Grade: attach.Outside, Where: what, Share: ratio(float64(n), float64(p.n))})
		r.Next = append(r.Next, attach.Next{Command: "the same dump, or whystall diagnose, on the other side", Why: "what it does meanwhile is not in this process"})
	}
}

// readRequests says where requests of a server wait at a channel: for a turn, or for an answer.
func (p *picture) readRequests(r *attach.Reading) {
	at := map[string]int{}
	for i, s := range p.stacks {
		if w := p.waits[i]; w.kind == waitChan && w.pool == "" && w.down == "" && !idle(s) && s.has(handlers...) {
			at[s.own().fn] += s.count
		}
	}
	for _, fn := range byMost(at)[:min(1, len(at))] {
		if at[fn] < manyWaiters || len(r.Signs) > 0 {
			break
		}
		line := fmt.Sprintf("%d requests wait at a channel in %s", at[fn], fn)
		r.Figures = append([]string{line}, r.Figures...)
		r.State = attach.CannotTell
		r.Means = "requests wait for a turn or for an answer of other goroutines: which of them is not in the text"
		r.Signs = append(r.Signs, attach.Sign{Cause: "pool-exhaustion", Grade: attach.Candidate, Proof: []string{line}})
		r.Next = append(r.Next, attach.Next{Command: "whystall diagnose --pid PID", Why: "says who ends these waits, and what that one did before"})
	}
}

// handlers are the calls below which a server's request runs.
var handlers = []string{"net/http.HandlerFunc.ServeHTTP", "net/http.serverHandler.ServeHTTP", "google.golang.org/grpc.(*Server).handleStream", "google.golang.org/grpc.(*Server).processUnaryRPC",
	"github.com/valyala/fasthttp.(*Server).serveConn", "net/rpc.(*service).call"}

// readCrowds says what many goroutines alike mean: a leak, or work that queues for the Ps.
func (p *picture) readCrowds(r *attach.Reading) {
	if p.same >= manyLeaked {
		s := p.alike
		r.Figures = append([]string{fmt.Sprintf("%d have one stack: %s", p.same, does(s, classify(s)))}, r.Figures...)
		if len(r.Signs) == 0 {
			r.State = attach.CannotTell
			r.Means = "so many goroutines at one channel are a leak, or a crowd behind one that serves them; a leak costs memory and work of GC, and is no cause of latency by itself"
			r.Next = append(r.Next, attach.Next{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=1' a minute later", Why: "a number that only grows is a leak"})
		}
	}
	if fn, n, sleep := p.crowded(); n >= manyLeaked && sleep && len(r.Signs) == 0 && r.Means == "" {
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("so many goroutines asleep in %s are work that comes faster than it ends, or a leak; it costs memory and work of GC, and is no cause of latency by itself", fn)
		r.Next = append(r.Next, attach.Next{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=1' a minute later", Why: "a number that only grows is a leak"})
	}
	if n := p.kinds[waitRun]; (n >= manyRunning || n >= manyRunning/2 && 2*n >= p.n) && len(r.Signs) == 0 {
		r.State = attach.CannotTell
		r.Means = "many goroutines are runnable at once: they wait for a P, in this moment"
		r.Next = append(r.Next, attach.Next{Command: "GODEBUG=schedtrace=1000", Why: "samples say whether it stays so"})
	}
}
