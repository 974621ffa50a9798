package sched

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// Note is one of the runtime's one-time events that a thread sleeps on until every P has done what it was asked for.
type Note struct {
	Address uint64 // 0 not known
	How     string // how it is known, in words
}

// Notes are the two that matter: who wakes them is who was waited for.
type Notes struct {
	Stop Note // runtime.sched.stopnote: the last P that stops wakes the one who stops the world
	Safe Note // runtime.sched.safePointNote: the same of a ragged barrier, which runs something on every P
}

// Notes are the notes' addresses. A wait's own stack tells them best, since it holds for stripped binaries too; else the recorder may
// know them from the binary. Stacks that contradict each other tell nothing.
func (k *Timeline) Notes() Notes {
	k.notes.once.Do(func() {
		stop, safe := map[uint64]int{}, map[uint64]int{}
		which := map[uint32]map[uint64]int{}
		for i := range k.threads {
			for j := range k.threads[i].offs {
				o := &k.threads[i].offs[j]
				if o.flags&offFutex == 0 || o.user == 0 || o.arg == 0 {
					continue
				}
				votes, seen := which[o.user]
				if !seen {
					switch noteOf(k.Stack(o.user)) {
					case "stop":
						votes = stop
					case "safe":
						votes = safe
					}
					which[o.user] = votes
				}
				if votes != nil && (len(votes) < 1000 || votes[o.arg] > 0) {
					votes[o.arg]++
				}
			}
		}
		k.notes.found = Notes{elect(stop, k.header.StopNote, k.header.NoteFrom), elect(safe, k.header.SafeNote, k.header.NoteFrom)}
	})
	return k.notes.found
}

// noteIndex keeps the notes once they were looked for.
type noteIndex struct {
	once  sync.Once
	found Notes
}

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

// noteOf tells from a stack's functions which note its thread sleeps on.
func noteOf(frames []kernel.Frame) string {
	sleeps := false
	for _, f := range frames {
		switch {
		case strings.HasPrefix(f.Func, "runtime.notetsleep"), strings.HasPrefix(f.Func, "runtime.notesleep"):
			sleeps = true
		case !sleeps:
		case strings.HasPrefix(f.Func, "runtime.stopTheWorldWithSema"):
			return "stop"
		case strings.HasPrefix(f.Func, "runtime.forEachP"):
			return "safe"
		case !strings.HasPrefix(f.Func, "runtime.systemstack"):
			return ""
		}
	}
	return ""
}

// noteWaits are the times that threads slept on a note, in order.
type noteWait struct {
	tid        uint32
	begin, end int64 // asleep
	waker      uint32
	released   bool // woken by a thread of the target, not by a signal or a timer
	futex      bool // in a futex call on the note
}

// noteWaits lists who slept on the note at addr.
func (k *Timeline) noteWaits(addr uint64) []noteWait {
	var l []noteWait
	for i := range k.threads {
		th := &k.threads[i]
		for j := range th.segs {
			s := &th.segs[j]
			if s.doing() != Blocked || s.off == 0 || int(s.off) > len(th.offs) {
				continue
			}
			o := &th.offs[s.off-1]
			if o.flags&offFutex == 0 || o.arg != addr {
				continue
			}
			w := noteWait{tid: th.tid, begin: s.begin, end: k.segEnd(th, j), waker: o.waker.tid}
			w.futex = o.waker.call >= 0 && k.isFutex(int32(o.waker.call)) && o.waker.arg == addr
			w.released = o.waker.seen && o.waker.flags&(wakerInterrupt|wakerSignal|wakerTarget) == wakerTarget && (o.waker.call < 0 || w.futex)
			l = append(l, w)
		}
	}
	slices.SortFunc(l, func(a, b noteWait) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.tid, b.tid), cmp.Compare(a.end, b.end))
	})
	return l
}

func inStack(frames []kernel.Frame, prefix string) bool {
	for _, f := range frames {
		if strings.HasPrefix(f.Func, prefix) {
			return true
		}
	}
	return false
}
