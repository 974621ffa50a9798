package sched

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// Note is one of the Go runtime's one-time events, a futex on which a thread sleeps until every P
// has done what it was asked for.
type Note struct {
	Address uint64 // 0 not known
	How     string `prose:"yes"` // how it is known, in words
}

// Notes are the two that matter: the thread that wakes one of them is the one that was waited for.
type Notes struct {
	Stop Note // runtime.sched.stopnote: the last P to stop wakes the thread that stops the world
	Safe Note // runtime.sched.safePointNote: the same for a ragged barrier, which runs something on every P
}

// Notes are the notes' addresses. The stack of a wait says best which note its futex is, since that
// works for stripped binaries, too. Without any, the recorder may know the addresses from the
// binary. Stacks that contradict each other say nothing.
func (k *Timeline) Notes() Notes {
	k.notes.once.Do(func() {
		stop, safe := map[uint64]int{}, map[uint64]int{}
		votesOf := map[uint32]map[uint64]int{} // by StackID; nil for a stack of something else
		for i := range k.threads {
			for j := range k.threads[i].offs {
				o := &k.threads[i].offs[j]
				if o.flags&offFutex == 0 || o.user == 0 || o.arg == 0 {
					continue
				}
				votes, seen := votesOf[o.user]
				if !seen {
					switch noteOf(k.Stack(o.user)) {
					case stopNote:
						votes = stop
					case safeNote:
						votes = safe
					}
					votesOf[o.user] = votes
				}
				if votes != nil && (len(votes) < 1000 || votes[o.arg] > 0) {
					votes[o.arg]++
				}
			}
		}
		k.notes.found = Notes{elect(stop, k.header.StopNote, k.header.NoteFrom),
			elect(safe, k.header.SafeNote, k.header.NoteFrom)}
	})
	return k.notes.found
}

// noteIndex keeps the notes once they were looked for.
type noteIndex struct {
	once  sync.Once
	found Notes
}

// elect is the note with nine in ten votes, else the address that the recorder knows from
// somewhere.
func elect(votes map[uint64]int, known uint64, from string) Note {
	best, sum := uint64(0), 0
	for a, n := range votes {
		sum += n
		if best == 0 || n > votes[best] || n == votes[best] && a < best {
			best = a
		}
	}
	switch {
	case sum > 0 && votes[best]*10 >= sum*9:
		return Note{best, "the wait's own stack"}
	case sum > 0:
		return Note{}
	case known != 0:
		return Note{known, cmp.Or(from, "the recorder")}
	}
	return Note{}
}

// whichNote is one of the notes.
type whichNote uint8

const (
	noNote whichNote = iota
	stopNote
	safeNote
)

// noteOf is the note on which a thread with this stack sleeps: that of the function which called
// notesleep.
func noteOf(frames []kernel.Frame) whichNote {
	sleeps := false
	for _, f := range frames {
		switch {
		case strings.HasPrefix(f.Func, "runtime.notetsleep"), strings.HasPrefix(f.Func, "runtime.notesleep"):
			sleeps = true
		case !sleeps:
		case strings.HasPrefix(f.Func, "runtime.stopTheWorldWithSema"):
			return stopNote
		case strings.HasPrefix(f.Func, "runtime.forEachP"):
			return safeNote
		case !strings.HasPrefix(f.Func, "runtime.systemstack"):
			return noNote
		}
	}
	return noNote
}

// noteWait is one time that a thread slept on a note.
type noteWait struct {
	tid        uint32
	begin, end int64 // asleep
	waker      uint32
	released   bool // woken by a thread of the target, not by a signal or a timer
	futex      bool // the waker was in a futex call on the note
}

// noteWaits lists the sleeps on the note at addr, in order of time.
func (k *Timeline) noteWaits(addr uint64) []noteWait {
	var l []noteWait
	for i := range k.threads {
		th := &k.threads[i]
		for j := range th.segs {
			s := &th.segs[j]
			o := th.away(s)
			if s.doing() != Blocked || o == nil || o.flags&offFutex == 0 || o.arg != addr {
				continue
			}
			w := noteWait{tid: th.tid, begin: s.begin, end: k.segEnd(th, j), waker: o.waker.tid}
			w.futex = o.waker.call >= 0 && k.isFutex(int32(o.waker.call)) && o.waker.arg == addr
			w.released = o.waker.seen &&
				o.waker.flags&(wakerInterrupt|wakerSignal|wakerTarget) == wakerTarget && (o.waker.call < 0 || w.futex)
			l = append(l, w)
		}
	}
	slices.SortFunc(l, func(a, b noteWait) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.tid, b.tid), cmp.Compare(a.end, b.end))
	})
	return l
}

// inStack reports whether a function with the prefix is on a stack.
func inStack(frames []kernel.Frame, prefix string) bool {
	for _, f := range frames {
		if strings.HasPrefix(f.Func, prefix) {
			return true
		}
	}
	return false
}
