package goruntime

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// queue is the goroutines that wait for one lock: of one address, or, where no address is printed,
// at one place.
type queue struct {
	addr    uint64
	n       int
	minutes int // the longest wait
	sites   map[string]int
	places  map[string]string // of a site: "server.go:12"
	kinds   map[string]string // of a site: the receiver of its function
	owners  map[uint64]bool   // objects whose methods take the lock, by address
	stacks  []*stack
	read    bool
	vague   bool // the compiler is not sure of any of the addresses
	either  bool // a Mutex or an RWMutex, of all of them
	logger  bool
	fd      bool
	once    bool
	holders []*stack // who likely holds it
	by      string   // how that is known; "": by its type
	holding string   // the function in which it took the lock
	whose   *queue   // the lock that the holder waits for itself
}

// queues divides waiters by lock, the longest queue first.
func queues(stacks []*stack, waits []wait) []*queue {
	byLock := map[string]*queue{}
	var out []*queue
	for i, s := range stacks {
		w := waits[i]
		if w.kind != waitLock {
			continue
		}
		key := fmt.Sprintf("%x", w.addr)
		if w.addr == 0 {
			key = "at " + w.site.fn
		}
		q := byLock[key]
		if q == nil {
			q = &queue{addr: w.addr, vague: true, either: true, sites: map[string]int{},
				places: map[string]string{}, kinds: map[string]string{}, owners: map[uint64]bool{}}
			byLock[key] = q
			out = append(out, q)
		}
		q.n += s.count
		q.vague, q.either = q.vague && w.vague, q.either && w.either
		q.minutes = max(q.minutes, s.minutes)
		q.sites[w.site.fn] += s.count
		q.kinds[w.site.fn] = receiver(w.site.fn)
		addPlace(q.places, w.site.fn, w.site.at)
		q.stacks = append(q.stacks, s)
		q.read, q.fd, q.once = q.read || w.read, q.fd || w.fd, q.once || w.once
		q.logger = q.logger || w.logger
		// The lock lies within the object whose method takes it, at its start or some way in.
		if len(w.site.args) > 0 && w.addr > 0 && w.site.args[0] <= w.addr && w.addr-w.site.args[0] < 4096 {
			q.owners[w.site.args[0]] = true
		}
	}
	slices.SortStableFunc(out, func(a, b *queue) int { return cmp.Compare(b.n, a.n) })
	return out
}

// maxQueues bounds for how many locks a holder is looked for, the longest queues first.
const maxQueues = 20

// findHolders looks for who likely holds each lock. By address: another goroutine inside a call
// that was given the lock or the object around it. Without one: inside another method of the same
// type.
func findHolders(qs []*queue, stacks []*stack) {
	of := map[*stack]*queue{}
	for _, q := range qs {
		for _, s := range q.stacks {
			of[s] = q
		}
	}
	for _, q := range qs[:min(len(qs), maxQueues)] {
		for _, s := range stacks {
			if of[s] == q || idle(s) && !q.fd {
				continue
			}
			if fn := given(q, s); q.addr != 0 && fn != "" {
				q.holders, q.by, q.holding = append(q.holders, s), "the same address is among its arguments", fn
			}
		}
		if len(q.holders) == 0 {
			for _, s := range stacks {
				fn := sameType(q, s)
				if of[s] != nil || idle(s) || s.count > 3 || fn == "" {
					continue
				}
				q.holders, q.holding = append(q.holders, s), cmp.Or(q.holding, fn)
			}
		}
		if len(q.holders) > 3 {
			q.holders, q.by = nil, "" // readers, or anybody
		}
		for _, h := range q.holders {
			if other := of[h]; other != nil {
				q.whose = other
			}
		}
	}
}

// given returns the function of a stack that was given the lock or the object around it.
func given(q *queue, s *stack) string {
	for _, f := range s.frames {
		if library(f.fn) && !q.fd {
			continue
		}
		for i, a := range f.args {
			if i > 3 || a == 0 {
				continue
			}
			if a == q.addr {
				return f.fn
			}
			if i == 0 && q.owners[a] && receiver(f.fn) != "" && hasValue(q.kinds, receiver(f.fn)) {
				return f.fn
			}
		}
	}
	return ""
}

// reason says how it is known that a stack likely holds the lock.
func (q *queue) reason(s *stack) string {
	if q.by != "" {
		return q.by
	}
	return "it is inside " + sameType(q, s) + ", a method of the same type"
}

// sameType returns the method of the lock's type that a stack is inside. A closure may run long
// after its method has ended, and a goroutine's first function that waits at a channel is a loop.
func sameType(q *queue, s *stack) string {
	for i, f := range s.frames {
		loop := i == len(s.frames)-1 && f.fn == s.own().fn && stateKind(s) == waitChan
		if loop || strings.Contains(f.fn, ".func") {
			continue
		}
		if t := receiver(f.fn); t != "" && !library(f.fn) && hasValue(q.kinds, t) {
			if len(f.args) > 0 && !f.vague && f.args[0] > 1<<16 && len(q.owners) > 0 && !q.owners[f.args[0]] {
				continue // of another object
			}
			return f.fn
		}
	}
	return ""
}

func hasValue(m map[string]string, value string) bool {
	for _, v := range m {
		if v == value {
			return true
		}
	}
	return false
}

// circular reports whether the holder of a lock waits, by way of others, for that lock itself.
func (q *queue) circular() bool {
	seen := map[*queue]bool{}
	for at := q; at != nil; at = at.whose {
		if seen[at] {
			return true
		}
		seen[at] = true
	}
	return false
}

// what names the lock.
func (q *queue) what() string {
	name := "a mutex"
	switch {
	case q.once:
		name = "a sync.Once"
	case q.fd:
		name = "the lock of a file descriptor"
	case q.read:
		name = "an RWMutex"
	case q.either:
		name = "a lock"
	}
	switch {
	case q.addr != 0 && q.vague: // as the runtime prints it
		name += fmt.Sprintf(" (0x%x?)", q.addr)
	case q.addr != 0:
		name += fmt.Sprintf(" (0x%x)", q.addr)
	}
	return name
}

// where lists the places, the one with most waiters first.
func (q *queue) where() string {
	return sitesText(q.sites, q.places)
}

func sitesText(sites map[string]int, places map[string]string) string {
	keys := byMost(sites)
	var parts []string
	for i, k := range keys {
		if i == 3 {
			parts = append(parts, fmt.Sprintf("%d other places", len(keys)-i))
			break
		}
		name := k
		if name == "" {
			name = "a place that its stack does not show"
		}
		name += at(places[k])
		if len(keys) > 1 {
			name = fmt.Sprintf("%d in %s", sites[k], name)
		}
		parts = append(parts, name)
	}
	if len(keys) == 1 {
		return "in " + parts[0]
	}
	return strings.Join(parts, ", ")
}

// addPlace adds a place in a function to those that are known, three at most.
func addPlace(places map[string]string, fn, at string) {
	known := strings.Split(places[fn], ", ")
	switch {
	case places[fn] == "":
		places[fn] = at
	case at != "" && !slices.Contains(known, at) && len(known) < 3:
		places[fn] += ", " + at
	}
}

// at writes a place behind its function.
func at(place string) string {
	if place == "" {
		return ""
	}
	return " (" + place + ")"
}

// kindWords are for goroutines whose state is not printed.
var kindWords = map[waitKind]string{waitRun: "running", waitLock: "waiting for a lock",
	waitChan: "waiting for a channel", waitNet: "IO wait", waitSleep: "sleep",
	waitSyscall: "in a system call", waitCond: "waiting for a condition",
	waitGroup: "waiting for a WaitGroup", waitC: "in C code",
	waitAssist: "waiting for GC to mark", waitOther: "waiting"}

// does says what a goroutine is doing, in a person's words.
func does(s *stack, w wait) string {
	own := s.own()
	name := own.fn
	what := s.state
	if what == "" {
		what = kindWords[w.kind]
	}
	if s.state == "" && w.kind == waitOther && s.id == 0 && s.pc == "" {
		what = "its state is cut off"
		if s.counted {
			what = "waiting or running"
		}
	}
	if s.minutes > 0 {
		what += ", " + count(s.minutes, "minute", "minutes")
	}
	through := s.through()
	if through != "" {
		through = " below " + through
	}
	id := ""
	if s.id > 0 {
		id = fmt.Sprintf("goroutine %d ", s.id)
	}
	if name == "" {
		return fmt.Sprintf("%s[%s], and its stack is cut off", id, what)
	}
	if call := s.systemCall(); call != "" && strings.HasPrefix(name, "syscall.") {
		name, own.at = call, ""
	} else if call != "" && call != name && (w.kind == waitSyscall || w.kind == waitRun) {
		name = call + ", called by " + name
	}
	return fmt.Sprintf("%s[%s] in %s%s%s", id, what, name, at(own.at), through)
}
