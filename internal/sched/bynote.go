package sched

import "fmt"

// Barriers are the ragged barriers of the runtime that somebody waited for, by the notes alone, oldest first.
func (k *Timeline) Barriers() []Pause { return k.byNote(k.Notes().Safe, "sched.safePointNote", true) }

// StopTheWorlds are the stop-the-worlds in which somebody had to be awaited, by the notes alone: for a process without a trace that could be joined. When they began, and
// whether the initiator was delayed after the restart, is known only as far as stacks tell.
func (k *Timeline) StopTheWorlds() []Pause { return k.byNote(k.Notes().Stop, "sched.stopnote", false) }

// byNote joins the sleeps on a note up to each wake of it.
func (k *Timeline) byNote(note Note, name string, barrier bool) (l []Pause) {
	if note.Address == 0 {
		return nil
	}
	waits := k.noteWaits(note.Address)
	wakes := k.FutexWakes(note.Address, k.begin, k.end+1, nil)
	for i := 0; i < len(waits); {
		first := waits[i]
		p := Pause{Begin: first.begin, Await: first.begin, Kind: "stop-the-world", Barrier: barrier, Initiator: first.tid, NoEnd: true, Stopped: first.end}
		if barrier {
			p.Kind = "safe-point"
		}
		p.hop(first.begin, first.tid, "sleeps on "+name, "futex wait")
		for len(wakes) > 0 && wakes[0].Begin < first.begin {
			wakes = wakes[1:]
		}
		// Its sleeps of 100 us each, until somebody else wakes the note. Another wait between two of them is what comes after: the wake is missing.
		until := int64(maxTimeNS)
		if len(wakes) > 0 {
			until = wakes[0].Begin
		}
		last, whole := first, true
		for i++; i < len(waits) && waits[i].begin <= until && !last.released; i++ {
			if waits[i].tid != first.tid || k.waitsElse(first.tid, last.end, waits[i].begin) {
				whole = false
				break
			}
			last = waits[i]
		}
		p.Stopped = last.end
		switch {
		case whole && len(wakes) > 0 && wakes[0].TID != first.tid:
			p.Known, p.Awaited, p.Stopped = KnownWake, wakes[0].TID, until
			p.How = fmt.Sprintf("futex wake on %s (address: %s)", name, note.How)
			p.hop(until, p.Awaited, "wakes "+name, "futex wake")
			wakes = wakes[1:]
		case last.released:
			p.wokenBy(last.end, last.waker, last.futex, name, note)
		default:
			p.How = "the wake is not recorded"
		}
		k.finish(&p)
		l = append(l, p)
	}
	return l
}

// waitsElse tells whether tid blocks in [lo,hi).
func (k *Timeline) waitsElse(tid uint32, lo, hi int64) bool {
	th := k.find(tid)
	for i := th.at(lo); i >= 0 && i < len(th.segs) && th.segs[i].begin < hi; i++ {
		if s := &th.segs[i]; s.begin >= lo && s.doing() == Blocked {
			return true
		}
	}
	return false
}

// finish finds how a pause that only the notes tell of ends.
func (k *Timeline) finish(p *Pause) {
	th := k.find(p.Initiator)
	back := p.Stopped
	i := th.at(p.Stopped)
	for ; i >= 0 && i < len(th.segs) && th.segs[i].doing() != OnCPU && th.segs[i].doing() != Unknown; i++ {
		back = max(back, k.segEnd(th, i))
	}
	p.Starting, p.End = p.Stopped, back
	if p.Barrier {
		return
	}
	// The first wake that the initiator then does starts another thread. Where it sleeps first, elsewhere than in the restart, the world had been
	// started before, by no wake that was seen.
	p.End = min(k.end, back+1e9)
	for j := max(i, 0); j < len(th.segs) && th.segs[j].begin < p.End; j++ {
		s := &th.segs[j]
		if s.begin < back || s.doing() != Blocked && s.doing() != Unknown && s.doing() != Gone {
			continue
		}
		if s.doing() == Blocked && s.off != 0 && int(s.off) <= len(th.offs) && inStack(k.Stack(th.offs[s.off-1].user), "runtime.startTheWorld") {
			continue
		}
		p.End = s.begin
	}
	p.restart(k, p.End)
	if p.Starting >= p.End {
		p.Starting, p.End = back, back
		return
	}
	p.End = max(p.Starting, back)
	// While its stack says that it restarts the world it is not done.
	for ; i >= 0 && i < len(th.segs); i++ {
		s := &th.segs[i]
		switch s.doing() {
		case OnCPU:
			continue
		case Unknown, Gone:
			return
		}
		if s.off == 0 || int(s.off) > len(th.offs) || !inStack(k.Stack(th.offs[s.off-1].user), "runtime.startTheWorld") {
			if s.begin > p.Starting {
				return
			}
			continue
		}
		p.End = max(p.End, k.segEnd(th, i))
	}
}
