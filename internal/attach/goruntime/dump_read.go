package goruntime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// Floors of a dump, which is one moment: a healthy server has a few goroutines at a lock or in a
// call at any time.
const (
	manyWaiters = 10   // in one queue: more than chance
	fewWaiters  = 3    // at locks, of which nothing follows
	manyLeaked  = 500  // with one stack
	manyRunning = 50   // runnable at once
	manyInC     = 50   // more threads than a program has for its system calls
	lockedPart  = 4    // one of so many at a lock is no chance
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
	likely map[string]bool // of pools: by their names only
	downs  map[string]int
	alike  *stack // the stack that most goroutines in channels have
	same   int    // how many have it
	remote *stack // the same of goroutines that wait for the other side of a connection
	far    int
	oldest int // minutes
	thread int // locked to a thread
}

func lookAt(d *dump) *picture {
	p := &picture{dump: d, kinds: map[waitKind]int{}, pools: map[string]int{}, likely: map[string]bool{}, downs: map[string]int{}}
	alike, remote := map[string]int{}, map[string]int{}
	for _, s := range d.stacks {
		w := classify(s)
		p.waits = append(p.waits, w)
		p.n += s.count
		p.kinds[w.kind] += s.count
		if w.kind != waitRuntime {
			p.oldest = max(p.oldest, s.minutes)
		}
		if s.locked {
			p.thread += s.count
		}
		if w.kind == waitLock {
			p.locked += s.count
		}
		if w.pool != "" {
			p.pools[w.pool] += s.count
			p.likely[w.pool] = w.likely
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
		if w.kind == waitNet && !idle(s) {
			key := s.own().fn + s.own().at
			if remote[key] += s.count; remote[key] > p.far {
				p.far, p.remote = remote[key], s
			}
		}
	}
	p.queues = queues(d.stacks, p.waits)
	findHolders(p.queues, d.stacks)
	return p
}

func readDump(part *attach.Part, d *dump) attach.Reading {
	several := countInProse(part.Title)
	if d.counts { // it has its own
		several = 0
	}
	if len(d.stacks) == 1 && several > 1 {
		d.stacks[0].count = several // one stack, of as many as the text above it says
	}
	p := lookAt(d)
	r := attach.Reading{Glance: true, State: attach.Healthy, Title: p.title(several)}
	if len(d.stacks) == 0 && d.crash == "" {
		r.State, r.Means = attach.CannotTell, "the stacks are cut off: nothing follows"
		if d.total > 0 {
			r.Means = fmt.Sprintf("there are %d goroutines; where they are is cut off", d.total)
			r.Facts = append(r.Facts, attach.Fact{Name: FactGoroutines, Value: float64(d.total)})
		}
		return r
	}
	r.Facts = append(r.Facts, attach.Fact{Name: FactGoroutines, Value: float64(max(p.n, d.total))})
	if len(d.stacks) > 0 {
		r.Figures = append(r.Figures, p.kindsText())
	}
	if text := p.crowd(); text != "" {
		r.Figures = append(r.Figures, text)
	} else if text := p.groupText(); text != "" {
		r.Figures = append([]string{text}, r.Figures...)
	}
	if p.reversed {
		r.Figures = append(r.Figures, "its lines stand in reversed order: they are read from the last one on")
	}
	if p.ended() {
		p.readCrash(&r)
		return r
	}
	p.readLocks(&r)
	p.readPools(&r)
	p.readDownstream(&r)
	p.readRequests(&r)
	p.readStuck(&r)
	p.readCrowds(&r)
	p.readCut(&r, several)
	if r.Means == "" {
		p.readRest(&r)
	}
	if r.Not == "" {
		r.Not = p.untold()
	}
	return r
}

// readCut says what does not follow from a dump of which only a part is there.
func (p *picture) readCut(r *attach.Reading, several int) {
	one := slices.IndexFunc(p.waits, func(w wait) bool { return w.kind != waitRuntime })
	switch {
	case r.Means != "":
	case p.leaked() > 0:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s: the runtime found that nothing can wake them; they cost memory, and are no cause of latency by themselves", count(p.leaked(), "goroutine is leaked", "goroutines are leaked"))
		at := max(0, slices.IndexFunc(p.stacks, func(s *stack) bool { return p.lost || strings.Contains(s.state, "leaked") }))
		r.Figures = append([]string{does(p.stacks[at], p.waits[at])}, r.Figures...)
	case p.leak && len(p.stacks) > 0:
		r.State, r.Means = attach.CannotTell, "a test's own check found these goroutines after the test: they leaked, or were about to end"
		r.Not = "anything about a service under load"
		r.Figures = append([]string{does(p.stacks[0], p.waits[0])}, r.Figures...)
	case p.n-p.kinds[waitRuntime] == 1 && one >= 0, p.n == 1:
		r.State, r.Means = attach.CannotTell, "one goroutine says where it is, and nothing of the others"
		if p.stacks[max(0, one)].own().fn != "" || p.stacks[max(0, one)].state != "" {
			r.Figures = append([]string{does(p.stacks[max(0, one)], p.waits[max(0, one)])}, r.Figures...)
		}
		if p.stacks[max(0, one)].writer() {
			r.Means = "the one goroutine that is shown writes this profile: nothing of the others is in the text"
		}
		p.readOne(r, p.stacks[max(0, one)], p.waits[max(0, one)])
	case len(p.stacks) == 1 && several > 1:
		r.State, r.Means = attach.CannotTell, "one stack of the dump says where these goroutines are, and nothing of the others"
		r.Figures = append([]string{does(p.stacks[0], p.waits[0])}, r.Figures...)
	case len(p.stacks) == 1 && p.counts && p.total == 0:
		r.State, r.Means = attach.CannotTell, "one stack of the profile says where these goroutines are, and nothing of the others"
	case p.total > p.n:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("those that are shown wait to be woken, sleep or run; the other %d are cut off", p.total-p.n)
		if !slices.ContainsFunc(p.stacks, func(s *stack) bool { return !idle(s) }) {
			r.Means = fmt.Sprintf("those that are shown rest: helpers of a library, or what waits for somebody to come; the other %d are cut off", p.total-p.n)
		}
		if p.locked > 0 {
			r.Means = fmt.Sprintf("few of those that are shown wait for a lock; the other %d are cut off", p.total-p.n)
		}
	}
	if p.signal != "" && strings.HasPrefix(p.signal, "SIGQUIT") && r.Not == "" {
		r.Not = "that it crashed: SIGQUIT asks a program for its stacks, and ends it; nor how long each has waited, where no minutes are printed"
	}
}

// left reports whether somebody has found that goroutines are left behind: a test, or the runtime.
func (p *picture) left() bool { return p.leak || p.leaked() > 0 }

// leaked counts those of which the runtime says that nothing can wake them.
func (p *picture) leaked() (n int) {
	for _, s := range p.stacks {
		if p.lost || strings.Contains(s.state, "leaked") {
			n += s.count
		}
	}
	return n
}

// crowdLeast is how many at one place are worth naming it.
const crowdLeast = 20

// crowd names the place where most of those sleep, or are, that no lock, channel or socket holds.
func (p *picture) crowd() string {
	fn, n, sleep := p.crowded()
	beside := ""
	if p.same >= crowdLeast && p.same < manyLeaked {
		beside = fmt.Sprintf("%d at a channel in %s", p.same, p.alike.own().fn)
	}
	switch {
	case n < crowdLeast:
		return beside
	case sleep:
		return fmt.Sprintf("%d sleep in %s", n, fn)
	}
	if second, more := p.secondInC(fn); more >= crowdLeast {
		fn = fmt.Sprintf("%s, %d in %s%s", fn, more, second.own().fn, second.caller())
	}
	if beside != "" {
		fn += ", " + beside
	}
	return fmt.Sprintf("%d in %s", n, fn)
}

// secondInC is the stack with most in C code besides those in one function.
func (p *picture) secondInC(fn string) (best *stack, n int) {
	for i, s := range p.stacks {
		if p.waits[i].kind == waitC && s.own().fn != fn && s.count > n {
			best, n = s, s.count
		}
	}
	return best, n
}

func (p *picture) crowded() (fn string, n int, sleep bool) {
	at := map[string]int{}
	asleep := map[string]bool{}
	for i, s := range p.stacks {
		if k := p.waits[i].kind; (k == waitSleep || k == waitOther || k == waitC) && s.own().fn != "" {
			at[s.own().fn] += s.count
			asleep[s.own().fn] = k == waitSleep
		}
	}
	for _, fn := range byMost(at)[:min(1, len(at))] {
		return fn, at[fn], asleep[fn]
	}
	return "", 0, false
}

func (p *picture) title(several int) string {
	what := "goroutine dump"
	if p.counts {
		what = "goroutine profile as text"
	}
	t := fmt.Sprintf("%s, %s", what, count(p.n, "goroutine", "goroutines"))
	if p.n == 0 && p.crash != "" {
		t = "crash of a Go program"
	}
	if p.n == 0 && p.total > 0 {
		return fmt.Sprintf("%s, its heading alone, %s", what, count(p.total, "goroutine", "goroutines"))
	}
	if several >= p.n && several > len(p.stacks) {
		t = fmt.Sprintf("%s, %s of %d goroutines, as the text above it says", what, count(len(p.stacks), "stack", "stacks"), several)
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

// someOfAll is "142 out of 152 goroutines", "30 of the 41 goroutines": the first number counts.
var someOfAll = pattern.New(`(?i)\b([0-9][0-9,]*) (?:goroutines )?(?:out )?of (?:the |all |our |a total of )*~?[0-9][0-9,]*\b`)

// numberWords are the numbers from two on.
var numberWords = []string{"two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
	"eleven", "twelve"}

// countInProse finds "3200 goroutines", "302 of these" or "40x" in what a person wrote.
func countInProse(s string) (n int) {
	at := someOfAll.FindStringIndex(s)
	if m := someOfAll.FindStringSubmatch(s); m != nil && (at[0] == 0 || strings.Contains(strings.ToLower(s), "goroutine")) {
		if n, ok := whole(strings.ReplaceAll(m[1], ",", "")); ok && n > 1 {
			return n
		}
	}
	f := strings.Fields(s)
	for i, word := range f {
		next := ""
		if i+1 < len(f) {
			next = strings.ToLower(strings.Trim(f[i+1], "():,.`*"))
		}
		if next == "of" && i+2 < len(f) {
			next += " " + strings.ToLower(strings.Trim(f[i+2], "():,.`*"))
		}
		word = strings.ReplaceAll(strings.Trim(word, "():,.~`*"), ",", "")
		number, times := strings.CutSuffix(strings.TrimSuffix(word, "×"), "x")
		v, ok := whole(number)
		if at := slices.Index(numberWords, strings.ToLower(word)); at >= 0 && strings.HasPrefix(next, "of ") {
			v, ok = at+2, true
		}
		if !ok || v < 2 {
			continue
		}
		switch next {
		case "of these", "of those", "of them", "of this", "of such", "times", "copies", "instances", "x", "×", "similar", "stacks":
			n = max(n, v)
		default:
			// "40x" alone counts, "10x slower" does not.
			if times && slices.Contains([]string{"", "this", "that", "same", "such", "stack", "like"}, next) ||
				strings.HasPrefix(next, "goroutine") {
				n = max(n, v)
			}
		}
	}
	return n
}

func (p *picture) kindsText() string {
	var parts []string
	for _, k := range []struct {
		kind waitKind
		text string
	}{{waitLock, "at a lock"}, {waitRun, "running or runnable"}, {waitChan, "at a channel"}, {waitNet, "in IO wait"}, {waitSleep, "asleep"},
		{waitSyscall, "in a system call"}, {waitC, "in C code (cgo)"}, {waitSema, "at a semaphore (a lock or a WaitGroup)"}, {waitCond, "at a condition"}, {waitGroup, "at a WaitGroup"}, {waitAssist, "waiting for GC to mark"}, {waitRuntime, "the runtime's own"}, {waitOther, "elsewhere"}} {
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

// readPools says who waits for a turn of something limited.
func (p *picture) readPools(r *attach.Reading) {
	for i, what := range byMost(p.pools) {
		n := p.pools[what]
		line := fmt.Sprintf("%s for %s", waits(n), what)
		r.Figures = append([]string{line}, r.Figures...)
		site, stuck := p.permit(what)
		if stuck {
			line += site
			r.Figures[0] = line
		}
		if i > 0 || n < manyWaiters && !stuck || len(r.Signs) > 0 {
			continue
		}
		if p.likely[what] {
			r.State = attach.CannotTell
			r.Means = "goroutines wait inside a pool, by its name: for one of few things that others keep, or for what the pool does meanwhile"
			r.Signs = append(r.Signs, attach.Sign{Cause: "pool-exhaustion", Grade: attach.Candidate, Share: ratio(float64(n), float64(p.n)), Proof: []string{line}})
			r.Next = append(r.Next, attach.Next{Command: "whystall diagnose --pid PID",
				Why: "says who ends these waits, and what that one did before"})
			continue
		}
		r.State = attach.Ill
		r.Means = "goroutines queue for a thing of which there are too few, or which others keep too long"
		r.Signs = append(r.Signs, attach.Sign{Cause: "pool-exhaustion", Grade: attach.Found, Sure: finding.Possible, Share: ratio(float64(n), float64(p.n)), Proof: []string{line}})
	}
}
