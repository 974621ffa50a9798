package goruntime

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
)

// readStuck says what goroutines wait for that should not wait for long, or for which nothing of
// the program is to blame.
func (p *picture) readStuck(r *attach.Reading) {
	for _, read := range []func(*attach.Reading){p.readFork, p.readNil, p.readWriters, p.readSleepers, p.readAssists, p.readSelf, p.readHeaders} {
		if len(r.Signs) > 0 || r.Means != "" {
			return
		}
		read(r)
	}
}

// first is the place of the first stack for which ok holds; -1: there is none.
func (p *picture) first(ok func(s *stack, w wait) bool) int {
	for i, s := range p.stacks {
		if ok(s, p.waits[i]) {
			return i
		}
	}
	return -1
}

// readFork says that the start of a child process hangs. The parent reads a pipe which the child
// closes when it has its program.
func (p *picture) readFork(r *attach.Reading) {
	i := p.first(func(s *stack, _ wait) bool {
		return s.minutes > 0 && s.has("syscall.forkExec") && !s.has("sync.(*RWMutex).", "sync.(*Mutex).")
	})
	if i < 0 {
		return
	}
	line := does(p.stacks[i], p.waits[i])
	r.Figures = append([]string{line}, r.Figures...)
	r.State = attach.CannotTell
	r.Means = "the start of a child process hangs: the child was made and has not got its program, nor ended; who starts another process waits for the same lock"
	r.Signs = append(r.Signs, attach.Sign{Cause: "syscall-stall", Grade: attach.Candidate, Proof: []string{line}})
	r.Next = append(r.Next, attach.Next{Command: "ps -o pid,stat,wchan:32,cmd --ppid PID",
		Why: "says where in the kernel the child is"})
}

// readNil says that a goroutine waits at a channel that is nil.
func (p *picture) readNil(r *attach.Reading) {
	i := p.first(func(s *stack, _ wait) bool { return strings.Contains(s.state, "(nil chan)") })
	if i < 0 {
		return
	}
	r.Figures = append([]string{does(p.stacks[i], p.waits[i])}, r.Figures...)
	r.State = attach.CannotTell
	r.Means = "a goroutine waits at a channel that is nil: nothing can ever wake it, which is a bug"
	r.Not = "that a request waits for it"
}

// readWriters says that who should read from a connection does not.
func (p *picture) readWriters(r *attach.Reading) {
	n, most := 0, -1
	for i, s := range p.stacks {
		if p.waits[i].kind == waitNet && s.minutes > 0 && s.has("internal/poll.(*pollDesc).waitWrite", "net.(*pollDesc).WaitWrite") {
			if n += s.count; most < 0 || s.minutes > p.stacks[most].minutes {
				most = i
			}
		}
	}
	if n == 0 {
		return
	}
	s := p.stacks[most]
	r.Figures = append([]string{count(n, "goroutine waits", "goroutines wait") + " to write" + longest(n, s.minutes),
		does(s, p.waits[most])}, r.Figures...)
	r.State = attach.CannotTell
	r.Means = "a write to a connection or a pipe has not come through for minutes: the other side does not read, or nothing gets there"
	r.Not = "who waits for it meanwhile"
	r.Next = append(r.Next, attach.Next{Command: "ss -tnpo state established", Why: "a Send-Q that stays says which connection it is"})
}

// readSleepers compares how long goroutines sleep with what they asked for.
func (p *picture) readSleepers(r *attach.Reading) {
	for _, s := range p.stacks {
		asked := sleepOf(s)
		slept := time.Duration(s.minutes) * time.Minute
		if asked <= 0 || slept < 2*asked+2*time.Minute {
			continue
		}
		line := fmt.Sprintf("goroutine %d sleeps for %s in a time.Sleep of %s, %s", s.id,
			count(s.minutes, "minute", "minutes"), asked, s.own().fn)
		r.Figures = append([]string{line}, r.Figures...)
		r.State = attach.CannotTell
		r.Means = "a sleep lasts far longer than it was to: the timers of the process do not fire, or the process stood still (stopped, frozen, without a CPU)"
		r.Signs = append(r.Signs, attach.Sign{Cause: "timer-late", Grade: attach.Candidate, Proof: []string{line}})
		r.Next = append(r.Next, attach.Next{Command: "whystall diagnose --pid PID",
			Why: "says whether its threads run, and whether timers fire late"})
		return
	}
}

// sleepOf is for how long a goroutine wants to sleep, by the argument; 0: it is not known. Programs
// of 32 bits print it as two words, the lower one first.
func sleepOf(s *stack) time.Duration {
	for _, f := range s.frames {
		if f.fn != "time.Sleep" {
			continue
		}
		switch {
		case f.vague, len(f.args) == 0, len(f.args) > 2:
			return 0
		case len(f.args) == 2 && f.args[0] < 1<<32 && f.args[1] < 1<<31:
			return time.Duration(f.args[1]<<32 | f.args[0])
		case len(f.args) == 1 && f.args[0] < 1<<62 && f.args[0]>>32 != heapWord:
			return time.Duration(f.args[0])
		}
		return 0
	}
	return 0
}

// heapWord is the upper half of most addresses of the heap. Go 1.17 prints what lies where the
// argument would be, which may be an address.
const heapWord = 0xc0

// readAssists says that goroutines may not allocate before GC has marked.
func (p *picture) readAssists(r *attach.Reading) {
	n := p.kinds[waitAssist]
	i := p.first(func(s *stack, w wait) bool { return w.kind == waitAssist && (s.minutes > 0 || n >= fewWaiters) })
	if i < 0 {
		return
	}
	line := count(n, "goroutine waits", "goroutines wait") + " until GC has marked what they allocate"
	r.Figures = append([]string{line, does(p.stacks[i], p.waits[i])}, r.Figures...)
	r.State = attach.CannotTell
	r.Means = "goroutines that allocate wait for GC: they allocate faster than it marks, or marking does not get on"
	r.Signs = append(r.Signs, attach.Sign{Cause: "mark-assist", Grade: attach.Candidate, Proof: []string{line}})
	r.Next = append(r.Next, attach.Next{Command: "GODEBUG=gctrace=1",
		Why: "its lines say when cycles ran and what they cost"})
}

// readSelf knows a text of nothing but the stack of the goroutine that wrote it.
func (p *picture) readSelf(r *attach.Reading) {
	if len(p.stacks) != 1 || p.total > p.n {
		return
	}
	s := p.stacks[0]
	switch {
	case s.has("runtime/pprof.writeGoroutineStacks", "runtime/pprof.writeGoroutine",
		"runtime/pprof.writeRuntimeProfile"):
		r.Means = "the goroutine that wrote this dump is all there is of it; the others are cut off"
	case s.has("runtime/debug.Stack", "runtime/debug.PrintStack", "runtime.gopanic") ||
		slices.ContainsFunc(s.frames, func(f frame) bool { return f.fn == "panic" }):
		r.Means = "a goroutine wrote its own stack, as programs do for an error or a panic that they recover from; it says nothing of waiting, nor of the others"
	default:
		return
	}
	switch {
	case s.panicked() == 0:
	case p.crash == "":
		r.Means = fmt.Sprintf("%s panicked, and what called it wrote this stack: a bug, which says nothing of waiting, nor of the others", s.own().fn)
		r.Not = "that the program ended: who reports a panic may go on, or end it"
	default:
		r.Means = fmt.Sprintf("%s panicked, and what called it caught and reported that: a bug, which says nothing of waiting, nor of the others", s.own().fn)
		r.Not = "that the program ended: who reports a panic may go on, or end it"
	}
	r.State = attach.CannotTell
	r.Figures = append([]string{does(s, p.waits[0])}, r.Figures...)
}

// leastAges is how many waits of different length say that goroutines came one after another.
const leastAges = 5

// readHeaders says what follows from headers of which somebody left out the stacks.
func (p *picture) readHeaders(r *attach.Reading) {
	if len(p.stacks) < 2 || slices.ContainsFunc(p.stacks,
		func(s *stack) bool { return len(s.frames) > 0 || s.created != "" }) {
		return
	}
	r.State = attach.CannotTell
	r.Means = "headers without stacks: where these goroutines are is not in the text"
	r.Next = append(r.Next, attach.Next{Command: "kill -QUIT PID, or curl 'http://HOST:PORT/debug/pprof/goroutine?debug=2'", Why: "the whole stacks say what they wait for"})
	ages, n := map[string]map[int]bool{}, map[string]int{}
	for _, s := range p.stacks {
		if s.minutes == 0 {
			continue
		}
		if ages[s.state] == nil {
			ages[s.state] = map[int]bool{}
		}
		ages[s.state][s.minutes] = true
		n[s.state]++
	}
	for _, state := range byMost(n)[:min(1, len(n))] {
		if len(ages[state]) < leastAges {
			return
		}
		least, most := p.oldest, 0
		for age := range ages[state] {
			least, most = min(least, age), max(most, age)
		}
		r.Figures = append([]string{fmt.Sprintf("%d in the state %q for %d to %d minutes, of %d different lengths", n[state], state, least, most, len(ages[state]))}, r.Figures...)
		r.Means = "headers without stacks: goroutines came one after another and still wait, as idle connections do, or as a leak does; where they are is not in the text"
	}
}
