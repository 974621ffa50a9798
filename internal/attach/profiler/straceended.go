package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// futexWait is a wait for a futex without a limit of time.
type futexWait struct {
	addr  string // "": it is none
	value string // that the kernel was told to find there
	// shared: it was not said that only threads of one process use it.
	shared bool
}

// "futex(0x7f10, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>"
var futexForever = pattern.New(`^futex\((0x[0-9a-f]+), FUTEX_WAIT(?:_BITSET)?(?:_PRIVATE)?(?:\|FUTEX_CLOCK_REALTIME)?, (\d+), NULL\b`)

func futexWaitOf(text string) futexWait {
	if m := futexForever.FindStringSubmatch(text); m != nil {
		return futexWait{m[1], m[2], !strings.Contains(text, "_PRIVATE")}
	}
	return futexWait{}
}

// stoppedCall is a call that had not ended when the text did, as a terminal shows it: without any
// word of strace's.
var stoppedCall = pattern.New(`^[a-z_0-9]+\((?:[^()=]|\([^()]*\))*$`)

// stoppedCallOf reads such a line.
func stoppedCallOf(text string) (c tracedCall, ok bool) {
	if len(text) > 4096 {
		return c, false
	}
	m := callHead.FindStringSubmatch(text)
	if m == nil || !stoppedCall.MatchString(m[8]) {
		return c, false
	}
	c, ok = tracedCallOf(text + " <unfinished ...>")
	c.torn = ok && !(blocks(c.name) && wholeArgs.MatchString(m[8]))
	return c, ok && isSystemCall(c.name)
}

// wholeArgs is the end of arguments that a call is entered with, and not the middle of a word.
var wholeArgs = pattern.New(`(?:[(,{]|\bNULL|\b\d+|\b0x[0-9a-f]+|[\])}"])$`)

// blocks reports whether a thread may wait within a call. Others end at once: a line without their
// end was cut by whoever copied it.
func blocks(name string) bool { return callWaits[name] != waitNothing || blockingCalls[name] }

var blockingCalls = words(`read readv write writev ioctl fcntl splice tee sendfile copy_file_range clone clone3 fork
	execve mount umount2 perf_event_open ptrace`)

// unended says in which calls threads were when the trace ended; "": in none.
func (t *callTrace) unended() string {
	by := map[string]float64{}
	for _, name := range t.open {
		by[name]++
	}
	if len(by) == 0 {
		return ""
	}
	var out []string
	for _, name := range attach.Largest(by)[:min(3, len(by))] {
		out = append(out, fmt.Sprintf("%s (%s)", name, attach.Plural(int(by[name]), "thread")))
	}
	line := "not ended when the trace did: " + strings.Join(out, ", ")
	if len(t.stuck) == 1 && len(t.open) == 1 {
		for _, w := range t.stuck {
			if w.joins() {
				line += fmt.Sprintf("; it waits as pthread_join does, for the end of thread %s", w.value)
			}
		}
	}
	return line
}

// joins reports whether a wait is that for the end of a thread: its number is the value, and the
// futex may be shared.
func (w futexWait) joins() bool { return w.shared && len(w.value) > 1 }

// heldWaited is what glibc's mutexes, and others made like them, hold while a thread has them and
// another waits. Conditions have other values.
const heldWaited = "2"

// waitForOne says what most threads of a trace wait for, where it is one futex, and it came to none
// of them before the trace ended.
func (t *callTrace) waitForOne(r *attach.Reading) bool {
	by := map[futexWait]int{}
	var first futexWait
	for _, w := range t.stuck {
		if by[w]++; by[w] > by[first] || by[w] == by[first] && w.addr < first.addr {
			first = w
		}
	}
	n := by[first]
	if n < 2 || n < len(t.threads)/2 {
		return false
	}
	line := fmt.Sprintf("%d of %d threads wait for one futex, %s, without a limit of time", n,
		len(t.threads), first.addr)
	r.Figures = append([]string{line}, r.Figures...)
	r.Means = upper(line) + ": for a lock, or for a condition that nobody signals."
	r.Not = "How long they wait is not in it; a pool's threads without work wait for one condition in the same way."
	if first.value == heldWaited {
		r.Means = upper(line) +
			". Its value, 2, is that of a mutex which is held: if its holder never gives it back, it is a deadlock."
		r.Not = "Who holds it is not in it, nor how long they wait: the stacks of all threads say that."
		r.Signs = append(r.Signs, attach.Sign{Cause: "lock-contention", Grade: attach.Candidate,
			Proof: []string{line + "; its value is that of a mutex which is held"}})
	}
	r.Next = append(r.Next, ask("gdb -p PID -batch -ex 'thread apply all bt'", t.pid,
		"which lock that is, and what its holder does"))
	return true
}
