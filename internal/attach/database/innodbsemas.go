package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

// semaphores reports the engine's own locks, the one with most waiters first.
func (s *innoState) semaphores(r *result) {
	byLock := map[string]*semaphore{}
	for _, w := range s.semas {
		key := cmp.Or(w.lock, w.site)
		if at := byLock[key]; at != nil {
			at.waiters++
			if w.longest > at.longest || w.longest == at.longest && w.site < at.site {
				at.longest, at.site = w.longest, w.site
			}
			if w.writer > at.writer {
				at.writer, at.waits = w.writer, w.waits
			}
			at.made = cmp.Or(at.made, w.made)
			continue
		}
		c := *w
		byLock[key] = &c
	}
	list := make([]*semaphore, 0, len(byLock))
	for _, w := range byLock {
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b *semaphore) int {
		return cmp.Or(cmp.Compare(b.waiters, a.waiters), cmp.Compare(b.longest, a.longest),
			cmp.Compare(a.site, b.site), cmp.Compare(a.lock, b.lock))
	})
	if text := oneHolder(list); text != "" {
		r.figure(text)
	}
	for i, w := range list {
		if i > 1 {
			break
		}
		long := "for up to " + dur(w.longest)
		if w.longest < 0.01 { // two decimals are printed
			long = "for less than " + cmp.Or(w.below, "10 ms")
		}
		line := fmt.Sprintf("%s of %s %s, at %s", waitersText(w.waiters),
			strings.TrimSpace("InnoDB's lock "+w.lock+w.called()), long, w.site)
		if w.made != "" {
			line += " (created at " + w.made + ")"
		}
		switch {
		case w.waits:
			line += "; thread " + w.writer +
				" waits until its readers are gone, and those who come later wait behind it"
		case w.writer != "":
			line += "; thread " + w.writer + " has it" + s.waitsToo(w.writer)
			if active := s.threads[w.writer]; active >= 1 {
				line += fmt.Sprintf(", in a transaction that is active for %.0f s", active)
			}
		}
		r.figure(line)
		r.fact(FactEngineLock, w.longest*1e3, w.site)
		if i > 0 {
			continue
		}
		switch {
		case w.waiters > 2 || w.waiters > 1 && w.longest >= 1:
			r.found("lock-contention", finding.Possible, line, 0)
		default:
			r.candidate("lock-contention", line)
		}
		r.Means = "Threads wait for a lock of the engine itself, not of rows: what its holder does decides."
		r.Not = "The status does not say what the holder does: it may wait for the disk while it has the lock."
		r.next("gdb -p $(pidof mysqld mariadbd) -batch -ex 'thread apply all bt'", "shows what the holder does")
	}
}

// oneHolder says that several locks are all one thread's.
func oneHolder(list []*semaphore) string {
	waiters := 0
	for _, w := range list {
		if w.waits || w.writer == "" || w.writer != list[0].writer {
			return ""
		}
		waiters += w.waiters
	}
	if len(list) < 2 {
		return ""
	}
	return fmt.Sprintf("%d threads wait for %d locks of InnoDB's, and thread %s has all of them",
		waiters, len(list), list[0].writer)
}

// called is the name of a lock, behind its address.
func (w *semaphore) called() string {
	if w.name == "" {
		return ""
	}
	return " (" + w.name + ")"
}

func waitersText(n int) string {
	if n == 1 {
		return "1 waiter"
	}
	return fmt.Sprintf("%d waiters", n)
}
