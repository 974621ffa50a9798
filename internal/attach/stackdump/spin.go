package stackdump

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// spins reports whether a thread looks again and again for what another one has: its innermost
// frames pause, or they read a variable that threads share.
func spins(frames []frame) bool {
	for _, f := range frames[:min(len(frames), 2)] {
		fn := short(f.fn)
		if primOf(fn) != anything {
			return false
		}
		if spinners.find([]frame{f}, anything) >= 0 || spinLock(fn) {
			return true
		}
	}
	return false
}

// spinLock reports whether a function takes a spin lock, by its name.
func spinLock(fn string) bool {
	low := strings.ToLower(fn)
	return (strings.Contains(low, "spinlock") || strings.Contains(low, "spin_lock") ||
		strings.Contains(low, "spinmutex")) && locks(fn)
}

var spinners = rule{names: []string{"ut_delay", "cpu_relax", "spin_wait", "*spin_loop", "*spinloop",
	"MY_RELAX_CPU", "my_cpu_relax", "pause_cpu", "sched_yield", "SwitchToThread",
	"my_timer_delay", "pg_spin_delay", "perform_spin_delay", "s_lock", "YieldProcessor",
	"*SpinPause", "SpinYield", "cpu_pause", "mm_pause"}}

// spinning says that several threads read a variable that threads share, in one place, or pause
// between two looks at it: they may wait for one another though none sleeps.
func (d *dump) spinning(r *attach.Reading) bool {
	at, n, where := map[string]int{}, 0, ""
	for _, t := range d.threads {
		if t.doing != running {
			continue
		}
		if place := t.looksAt(); place != "" {
			at[place] += t.n
			if at[place] > n {
				n, where = at[place], place
			}
		}
	}
	if n < 2 {
		return n == 1 && d.spinLock(r)
	}
	r.State = attach.CannotTell
	line := fmt.Sprintf("%s are in the same read of a variable that threads share, or pause there: %s", threads(n), where)
	r.Figures = append(r.Figures, line)
	r.Signs = append(r.Signs, attach.Sign{Cause: "spinning", Grade: attach.Candidate,
		Proof: []string{line}, Share: share(n, d.total())})
	r.Means = "Threads that spin wait without a sleep: whether these go on, or stay where they are, a second dump tells."
	r.Next = append(r.Next, attach.Next{Command: "gdb -p PID -batch -ex 'thread apply all bt'",
		Why: "taken three times: whether the same threads stand at the same line"})
	return true
}

// spinLock says that one thread is inside of a spin lock. Its name tells, so that one is enough.
func (d *dump) spinLock(r *attach.Reading) bool {
	for _, t := range d.threads {
		place := t.looksAt()
		if t.doing != running || place == "" || !spinLock(short(t.frames[0].fn)) {
			continue
		}
		line := fmt.Sprintf("one thread is in %s, called by %s", short(t.frames[0].fn), place)
		r.State = attach.CannotTell
		r.Figures = append(r.Figures, line)
		r.Signs = append(r.Signs, attach.Sign{Cause: "spinning", Grade: attach.Candidate, Proof: []string{line},
			Share: share(t.n, d.total())})
		r.Means = "It wants a spin lock, and uses a CPU while another thread has it: which one has it is not in these stacks."
		r.Next = append(r.Next, attach.Next{Command: "gdb -p PID -batch -ex 'thread apply all bt'",
			Why: "taken three times: whether it stays there, and which threads are inside of the lock"})
		return true
	}
	return false
}

// looksAt is the program's function from which a thread reads an atomic variable or spins; "": it
// does neither.
func (t *thread) looksAt() string {
	found := -1
	for i, f := range t.frames[:min(len(t.frames), 5)] {
		fn := short(f.fn)
		if primOf(fn) != anything {
			return ""
		}
		if strings.Contains(fn, "atomic") && (strings.Contains(fn, "load") || strings.Contains(fn, "operator") ||
			strings.Contains(fn, "compare_exchange")) ||
			spinners.find([]frame{f}, anything) >= 0 || spinLock(fn) {
			found = i
		}
	}
	if found < 0 || found+1 >= len(t.frames) {
		return ""
	}
	f := t.frames[found+1]
	return strings.TrimSpace(short(f.fn) + " " + f.file)
}
