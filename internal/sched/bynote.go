package sched

import "fmt"

// Pauses without a trace, from the sleeps on the runtime's notes alone.

// Barriers are the runtime's ragged barriers in which a thread was awaited, oldest first. The trace
// has no event for them.
func (k *Timeline) Barriers() []Pause { return k.byNote(k.Notes().Safe, "sched.safePointNote", true) }

// StopTheWorlds are the stop-the-worlds in which a thread was awaited, oldest first, for a process
// without a trace of the same time. When they started is not known. Whether the initiator was
// delayed after the restart is known only if stacks say so.
func (k *Timeline) StopTheWorlds() []Pause { return k.byNote(k.Notes().Stop, "sched.stopnote", false) }

// byNote joins the sleeps on a note up to each wake of it. The initiator sleeps for 100 us at a
// time, to ask again those that do not stop, so one pause is many sleeps.
//  1. A pause starts with a thread's sleep on the note.
//  2. Further sleeps of that thread belong to it, until another thread wakes the note or it, or
//     until it waits for something else: then the wake is missing.
//  3. The wake, or else the waking, names the thread that was awaited.
func (k *Timeline) byNote(note Note, name string, barrier bool) (l []Pause) {
	if note.Address == 0 {
		return nil
	}
	waits := k.noteWaits(note.Address)
	wakes := k.FutexWakes(note.Address, k.begin, k.end+1, nil)
	for i := 0; i < len(waits); {
		first := waits[i]
		p := Pause{Begin: first.begin, Await: first.begin, Kind: "stop-the-world", Barrier: barrier,
			Initiator: first.tid, NoEnd: true, Stopped: first.end}
		if barrier {
			p.Kind = "safe-point"
		}
		p.hop(first.begin, first.tid, "sleeps on "+name, "futex wait")
		for len(wakes) > 0 && wakes[0].Begin < first.begin {
			wakes = wakes[1:]
		}
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
		k.findEnd(&p)
		l = append(l, p)
	}
	return l
}

// waitsElse reports whether tid blocks in [lo,hi).
func (k *Timeline) waitsElse(tid uint32, lo, hi int64) bool {
	th := k.find(tid)
	for i := th.at(lo); i >= 0 && i < len(th.segs) && th.segs[i].begin < hi; i++ {
		if s := &th.segs[i]; s.begin >= lo && s.doing() == Blocked {
			return true
		}
	}
	return false
}

// findEnd finds how a pause ends of which only the notes are known.
//  1. The initiator comes back to a CPU. A barrier is over with that.
//  2. The first wake that it then does starts another thread: the restart. It must come before the
//     initiator blocks, except within the restart itself; else the world had been started by no
//     wake that was seen.
//  3. While the initiator's stack says that it restarts the world it is not done.
func (k *Timeline) findEnd(p *Pause) {
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
	p.End = min(k.end, back+1e9)
	for j := max(i, 0); j < len(th.segs) && th.segs[j].begin < p.End; j++ {
		s := &th.segs[j]
		if s.begin < back || s.doing() != Blocked && s.doing() != Unknown && s.doing() != Gone {
			continue
		}
		if o := th.away(s); s.doing() == Blocked && o != nil && inStack(k.Stack(o.user), "runtime.startTheWorld") {
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
	for ; i >= 0 && i < len(th.segs); i++ {
		s := &th.segs[i]
		switch s.doing() {
		case OnCPU:
			continue
		case Unknown, Gone:
			return
		}
		if o := th.away(s); o == nil || !inStack(k.Stack(o.user), "runtime.startTheWorld") {
			if s.begin > p.Starting {
				return
			}
			continue
		}
		p.End = max(p.End, k.segEnd(th, i))
	}
}
