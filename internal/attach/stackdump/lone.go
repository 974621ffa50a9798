package stackdump

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// lone reads a dump of one thread: no convoy can be seen in it.
func (d *dump) lone(r *attach.Reading) {
	th := d.threads[0]
	r.State = attach.CannotTell
	r.Means = "It shows what one thread does at one instant, and nothing of the others."
	r.Not = "One thread is no convoy: its stack does not say who holds what it waits for."
	r.Figures = append(r.Figures, "one thread: "+th.does())
	if n := len(th.holds); n > 0 && th.doing != running {
		r.Figures = append(r.Figures, fmt.Sprintf("it holds %s meanwhile (%s)", attach.Plural(n, "lock"), th.holds[0]))
	}
	why := "shows all threads, and taken three times, which of them stay where they are"
	if th.doing == lock {
		why = "shows all threads, and so who holds what this one waits for"
	} else {
		r.Not = "One stack of one thread does not say whether it always stands there, nor whether anybody waits for it."
	}
	if th.doing == running && th.atZero() {
		r.Means = "A jump to address 0 ends a program: this is the stack of a crash, unless its innermost frame was read wrongly."
	}
	r.Next = append(r.Next, attach.Next{Command: cmp.Or(d.whole,
		"gdb -p PID -batch -ex 'thread apply all bt'"), Why: why})
	switch th.doing {
	case lock:
		c := (&dump{threads: d.threads}).convoys()
		name := "a lock"
		if len(c) > 0 {
			name = c[0].lockName()
		}
		r.Figures[0] = fmt.Sprintf("one thread: it waits for %s, taken in %s", name, th.taker())
		if th.kind == engineLock {
			r.Figures = append(r.Figures, fmt.Sprintf("lock function %s, called from %s", engineCall(th), th.path()))
		}
		if len(c) > 0 && c[0].holder == nil && (d.owners[th.addr] != 0 || th.owner != "") {
			r.Figures = append(r.Figures, d.holderLine(c[0]))
			r.Not = "What the thread that holds the lock does meanwhile is not in it."
		}
		th.interrupted(r)
		r.Signs = append(r.Signs, attach.Sign{Cause: causes[th.kind], Grade: attach.Candidate, Proof: r.Figures[:1]})
	case remote, tableLock, pooled:
		r.Signs = append(r.Signs, d.outside(th.doing, th.call, 1))
	}
	callers := th.names(5)
	if th.kind != engineLock && (len(callers) > 1 || len(callers) == 1 && th.from > 0 && th.doing != lock) {
		r.Figures = append(r.Figures, "its stack, from the inside: "+strings.Join(callers, " <- "))
	}
}

// atZero reports whether the innermost frame is at address 0, where no code is.
func (t *thread) atZero() bool {
	if t.cropped || len(t.frames) == 0 {
		return false
	}
	digits, isAddress := strings.CutPrefix(t.frames[0].fn, "0x")
	return isAddress && strings.Trim(digits, "0") == ""
}

// taker is the function that takes the lock which a thread waits for.
func (t *thread) taker() string {
	if t.site == "" && !slices.ContainsFunc(t.frames,
		func(f frame) bool { return short(f.fn) == "??" || strings.HasPrefix(f.fn, "0x") }) {
		return "a function that is not in the text"
	}
	return orUnknown(t.site)
}

// interrupted says that a thread waits for a lock within a handler of a signal: what the signal
// interrupted may hold that lock, and does not go on before the handler is done.
func (t *thread) interrupted(r *attach.Reading) {
	at := slices.IndexFunc(t.frames, func(f frame) bool { return strings.Contains(f.fn, "signal handler called") })
	if at < 0 || at+1 >= len(t.frames) {
		return
	}
	below := short(t.frames[at+1].fn)
	r.Figures = append(r.Figures, fmt.Sprintf("it waits within a handler of a signal, which interrupted %s", below))
	if t.kind == arenaLock && allocates(t.frames[at+1:min(len(t.frames), at+4)]) {
		r.Means = fmt.Sprintf("A deadlock of one thread with itself: the handler waits for the allocator's lock, which the interrupted %s holds. A handler may not allocate or free memory, and this one does not go on without a restart.", below)
		r.Not = "Whether other threads want the allocator meanwhile is not in it; for this deadlock none is needed."
		return
	}
	r.Not = "Its stack does not say who holds the lock: if it is what the signal interrupted, this is a deadlock of one thread with itself."
}

// allocates reports whether one of these frames is of an allocator.
func allocates(frames []frame) bool {
	return slices.ContainsFunc(frames, func(f frame) bool {
		fn := short(f.fn)
		return strings.Contains(fn, "malloc") || strings.Contains(fn, "free") ||
			strings.Contains(fn, "calloc") || strings.Contains(fn, "realloc") || strings.Contains(fn, "memalign")
	})
}

// engineCall is the engine's function that takes the lock.
func engineCall(t *thread) string {
	for _, f := range t.frames[:min(len(t.frames), 12)] {
		if fn := short(f.fn); strings.HasPrefix(fn, "rw_lock_") || strings.Contains(fn, "mutex") &&
			strings.Contains(fn, "enter") {
			return fn
		}
	}
	return t.call
}
