package goruntime

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// lockReport is what go-deadlock prints, a replacement of sync's mutexes, where somebody waits for
// one too long or takes two in opposite orders.
var lockReport = &attach.Kind{
	Name:   "go-deadlock report",
	Hints:  []string{"POTENTIAL DEADLOCK"},
	Yields: []string{"goroutine dump"},
	Claim: func(lines []paste.Line) int {
		if !strings.HasPrefix(strings.TrimSpace(lines[0].Text), "POTENTIAL DEADLOCK:") {
			return 0
		}
		n := attach.ClaimWhile(lines, func(i int, text string) bool {
			t := strings.TrimSpace(text)
			return i == 0 || reportWords.MatchString(t) || reportPlace.MatchString(t) || t == "..."
		})
		if n < 2 {
			return 0
		}
		return n
	},
	Read: readLockReport,
}

var (
	reportWords = pattern.New(`^(?:POTENTIAL DEADLOCK:|Previous place where the lock was grabbed|Have been trying to lock it again for more than |Here is what goroutine \d+ doing now|Other goroutines holding locks|All current goroutines:|in one goroutine: happened |happene?d (?:before|after)|saw this ordering in one goroutine|in another goroutine: happene?d|current goroutine \d+ lock |goroutine \d+ (?:lock |\[)|previously there was |another goroutine |This usually means |If this is a false positive)`)
	reportPlace = pattern.New(`\.go:\d+\b|^[\w./*()@-]+\(.*\)$|^created by `)
	reportFor   = pattern.New(`^Have been trying to lock it again for more than (\S+)$`)
	reportLock  = pattern.New(`^goroutine (\d+) lock (0x[0-9a-f]+)`)
	reportSite  = pattern.New(`\.go:\d+ (\S+)`)
	reportState = pattern.New(`^goroutine (\d+) \[([^\]]+)\]:`)
)

// tooLong is a wait for a mutex, in s, that no request does not feel.
const tooLong = 1.0

func readLockReport(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "a report of go-deadlock", State: attach.CannotTell}
	waited, lock, holder, site := 0.0, "", "", ""
	var now *stack
	var owners []string
	order := strings.Contains(p.Lines[0].Text, "Inconsistent locking")
	for i, l := range p.Lines {
		t := strings.TrimSpace(l.Text)
		if m := reportFor.FindStringSubmatch(t); m != nil {
			d, _ := time.ParseDuration(m[1])
			waited = d.Seconds()
		}
		if m := reportLock.FindStringSubmatch(t); m != nil {
			owners = append(owners, m[1])
			if holder == "" {
				holder, lock = m[1], m[2]
			}
			if m := reportSite.FindStringSubmatch(strings.TrimSpace(next(p.Lines, i))); m != nil && site == "" {
				site = m[1]
			}
		}
		if m := reportState.FindStringSubmatch(t); m != nil && now == nil {
			if d := parseDump(p.Lines[i:]); len(d.stacks) > 0 {
				now = d.stacks[0]
			}
		}
	}
	if waited > 0 {
		line := fmt.Sprintf("goroutine %s waited for more than %s for lock %s", last(owners), seconds(waited), lock)
		if holder != "" && holder != last(owners) {
			line += ", which goroutine " + holder + " took"
			if site != "" {
				line += " in " + site
			}
		}
		r.Figures = append(r.Figures, line)
	}
	if now != nil {
		r.Figures = append(r.Figures, holderText(now))
	}
	if order {
		r.Figures = append(r.Figures, orders(p.Lines)...)
	}
	switch {
	case order:
		r.Means = "Two locks are taken in opposite orders: goroutines that meet there can wait for ever."
		r.Not = "That it happened: it reports an order that can end so."
	case waited >= tooLong && unlocking(now):
		r.State = attach.Ill
		r.Means = "A goroutine waits very long for a mutex, and who took it is in Unlock already: it waits inside the detector itself, for the detector's own lock."
		r.Not = "A deadlock of the program's own locks: all goroutines that lock or unlock meet in the detector's lock."
		r.Signs = []attach.Sign{{Cause: "lock-contention", Grade: attach.Found,
			Sure: finding.Possible, Proof: slices.Clone(r.Figures)}}
	case waited >= tooLong:
		r.State = attach.Ill
		r.Means = "A goroutine waits very long for a mutex: what its holder does meanwhile decides."
		r.Not = "A deadlock: the tool prints this after a time, and a lock that is held for long looks the same."
		r.Signs = []attach.Sign{{Cause: "lock-contention", Grade: attach.Found,
			Sure: finding.Possible, Proof: slices.Clone(r.Figures)}}
	default:
		r.Means = "It reports a lock that a goroutine takes twice, or an order that can end in a deadlock."
	}
	r.Next = []attach.Next{{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=2'",
		Why: "all who wait for the lock, and the one that has it"}}
	return r
}

// unlocking reports whether a stack is inside of go-deadlock's Unlock: its own bookkeeping, before
// or after the mutex was given back.
func unlocking(s *stack) bool {
	if s == nil || len(s.frames) == 0 {
		return false
	}
	within := 0 // of the detector's own functions
	for _, f := range s.frames {
		_, fn, ok := strings.Cut(f.fn, "go-deadlock.")
		switch {
		case ok && (strings.HasSuffix(fn, ").Unlock") || strings.HasSuffix(fn, ").RUnlock")):
			return within > 0
		case ok:
			within++
		case !library(f.fn):
			return false
		}
	}
	return false
}

// holderText says what the goroutine does that took the lock.
func holderText(s *stack) string {
	if unlocking(s) {
		return fmt.Sprintf("goroutine %d, which took it, gives it back: it is in Unlock, and there [%s] in the detector's own bookkeeping, %s", s.id, s.state, s.own().fn)
	}
	return fmt.Sprintf("goroutine %d, which has it: [%s] in %s", s.id, s.state, s.own().fn)
}

var (
	reportWhen  = pattern.New(`happene?d (before|after)`)
	reportTaken = pattern.New(`([^\s/\\]+\.go:\d+) (\S+)(?: \{ ?(.{0,120}?) ?\})?`)
)

// orders says of each goroutine which lock it took first, and which then. A program's own wrapper
// is named; go-deadlock's methods, which stand on top, are not.
func orders(lines []paste.Line) (out []string) {
	when, first := "", ""
	for _, l := range lines {
		t := strings.TrimSpace(l.Text)
		if m := reportWhen.FindStringSubmatch(t); m != nil {
			when = m[1]
			if when == "before" && first != "" {
				out = append(out, first+"; what it took then is cut off")
				first = ""
			}
			continue
		}
		m := reportTaken.FindStringSubmatch(t)
		if m == nil || when == "" || strings.HasPrefix(m[2], "go-deadlock.") {
			continue
		}
		site := fmt.Sprintf("%s (%s)", m[2], m[1])
		if m[3] != "" {
			site += ": " + m[3]
		}
		if when == "before" {
			first = "first in " + site
		} else if first != "" {
			out = append(out, first+"; then in "+site)
			first = ""
		}
		when = ""
	}
	if first != "" {
		out = append(out, first+"; what it took then is cut off")
	}
	if len(out) == 2 {
		out[1] = "another goroutine: " + out[1]
	}
	return out
}

func next(lines []paste.Line, at int) string {
	if at+1 < len(lines) {
		return lines[at+1].Text
	}
	return ""
}

func last(s []string) string {
	if len(s) == 0 {
		return "?"
	}
	return s[len(s)-1]
}
