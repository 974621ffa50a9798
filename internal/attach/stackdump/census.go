package stackdump

import (
	"fmt"
	"slices"
	"strings"
)

// census says how many threads do what.
func (d *dump) census(t tally) string {
	var words []string
	for _, w := range []struct {
		n    int
		text string
	}{{t.lock, "in lock waits"}, {t.disk - d.afterFiles(), "in files' calls"},
		{d.afterFiles(), "waiting for another thread's call on a file"},
		{t.remote, "waiting for another server"}, {t.table, "waiting for tables' locks"},
		{t.pooled, "waiting for a pool"}, {t.room, "waiting for room in a queue"},
		{t.running - d.beheaded() - d.keepers() - d.unnamed(), "running or in calls"},
		{d.unnamed(), "whose functions have no names"},
		{d.keepers(), "asleep or waiting with a lock that others want"}, {d.beheaded(), "without their innermost frames"},
		{d.children(), "waiting for another process"}, {d.joining(), "waiting for another thread to end"},
		{t.idle - d.children() - d.joining() - d.frameless(),
			"idle (waiting for work or events, asleep)"}, {d.frameless(), "without frames"},
		{d.sharing(), "waiting for a permit or a queue"}, {d.reading(), "reading sockets within their work"},
		{t.signal - d.sharing() - d.reading(), "waiting for a signal"}} {
		if w.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", w.n, w.text))
		}
	}
	return fmt.Sprintf("of %s: %s", threads(t.total), strings.Join(words, ", "))
}

// afterFiles is how many threads wait for another one that is in a call on a file.
func (d *dump) afterFiles() int {
	return d.count(func(t *thread) bool { return t.doing == disk && t.after })
}

// streams is how many threads are loops that read a file, or what comes from a pipe or a terminal.
func (d *dump) streams() int {
	return d.count(func(t *thread) bool {
		return t.doing == disk && strings.Contains(t.call, "FileInputStream.read") && !t.deep()
	})
}

// frameless is how many threads have no frames: a JVM lists its own so, at work or not.
func (d *dump) frameless() int {
	return d.count(func(t *thread) bool { return t.doing == idle && len(t.frames) == 0 })
}

// children is how many threads wait for another process: a child to end, or one that is traced to
// stop.
func (d *dump) children() int {
	return d.count(func(t *thread) bool { return t.doing == idle && !t.wanted && t.child })
}

// sharing is how many threads wait within their work for a permit, or for what a queue gives.
func (d *dump) sharing() int {
	return d.count(func(t *thread) bool { return t.doing == signal && t.shared != "" })
}

// reading is how many threads read sockets within their work, of a client or of another server.
func (d *dump) reading() int {
	return d.count(func(t *thread) bool { return t.doing == signal && t.socket != "" })
}

func readThreads(n int) string {
	if n == 1 {
		return "1 thread reads"
	}
	return fmt.Sprintf("%d threads read", n)
}

// joining is how many threads wait for another one to end.
func (d *dump) joining() int {
	return d.count(func(t *thread) bool { return t.doing == idle && !t.wanted && t.joins })
}

// unnamed is how many threads have no function with a name: what they do their stacks do not say.
func (d *dump) unnamed() int {
	return d.count(func(t *thread) bool { return t.doing == running && !t.cropped && t.nameless() })
}

func (t *thread) nameless() bool {
	return len(t.frames) > 0 && t.state == "" && !t.atZero() && !slices.ContainsFunc(t.frames, func(f frame) bool {
		fn := short(f.fn)
		return fn != "" && fn != "??" && !strings.HasPrefix(fn, "0x") && !first(fn)
	})
}

// beheaded is how many threads lack the frames that say what they do.
func (d *dump) beheaded() int {
	return d.count(func(t *thread) bool { return t.doing == running && t.cropped })
}
