package exectrace

// What v1Sums does with each event. No event needs to know what another P did.

// take adds up c's events in the window. It reports whether all of them fit.
func (s *v1Sums) take(c *v1Cursor, p *v1SumP) bool {
	clock := s.m.clock
	for {
		if c.i == len(c.buf) {
			if c.fill(); len(c.buf) == 0 {
				return true
			}
			if s.ids.n > maxPages || len(s.marks) > maxV1Marks {
				return false
			}
		}
		for ; c.i < len(c.buf); c.i++ {
			r := &c.buf[c.i]
			if r.ts >= s.until {
				return true
			}
			if r.ts < p.last {
				return false
			}
			p.last = r.ts
			p.n++
			s.n++
			now := clock.time(r.ts)
			val := uint64(now-s.base) | one
			g := p.g
			switch r.typ {
			case v1GoStart, v1GoStartLabel:
				if g != nil || r.a[0]-1 >= maxGo {
					return false
				}
				g = s.ids.get(r.a[0])
				if !g.count(r) {
					return false
				}
				g.acc[accRunnable] += val
				g.acc[accRunning] -= val
				p.g, p.gid = g, r.a[0]
				if r.typ == v1GoStartLabel {
					s.n++
				}

			case v1GoUnblock:
				if r.a[0]-1 >= maxGo {
					return false
				}
				g = s.ids.get(r.a[0])
				if !g.count(r) {
					return false
				}
				g.acc[accWaiting] += val
				g.acc[accRunnable] -= val

			case v1GoStop, v1GoSleep, v1GoBlock, v1GoBlockSend, v1GoBlockRecv, v1GoBlockSelect,
				v1GoBlockSync, v1GoBlockCond, v1GoBlockNet, v1GoBlockGC:
				if g == nil {
					return false
				}
				g.acc[accRunning] += val
				g.acc[accWaiting] -= val
				p.g, p.gid = nil, 0

			case v1GoSched, v1GoPreempt:
				if g == nil {
					return false
				}
				g.acc[accRunning] += val
				g.acc[accRunnable] -= val
				p.g, p.gid = nil, 0

			case v1GoSysCall:
				if g == nil {
					return false
				}
				p.sys, p.sysAt = now, p.n
				s.n++ // its end, unless it blocks
				if p.state != Running {
					s.proc(c, p, now, Running)
				}

			case v1GoSysBlock:
				if !s.sysBlock(c, p, now) {
					return false
				}

			default:
				if !s.rare(c, p, r, now) {
					return false
				}
			}
		}
	}
}

// sysBlock takes the P from a goroutine in a syscall. The syscall started with the event before, if
// that was a syscall's.
func (s *v1Sums) sysBlock(c *v1Cursor, p *v1SumP, now Time) bool {
	g := p.g
	if g == nil {
		return false
	}
	start := now
	if s.n--; p.sysAt == p.n-1 {
		start = p.sys
		s.n--
	}
	val := s.rel(p.gid, Running, Syscall, start)
	if val == 0 {
		return false
	}
	val |= one
	g.acc[accRunning] += val
	g.acc[accSyscall] -= val
	s.proc(c, p, start, Syscall)
	p.g, p.gid = nil, 0
	return true
}

// rare does the same for the kinds that are rarer.
func (s *v1Sums) rare(c *v1Cursor, p *v1SumP, r *v1Rec, now Time) bool {
	rel := uint64(now - s.base)
	mark := mark{ts: rel, g: NoGoroutine, stack: StackID(r.stk), kind: KindRangeBegin}
	if p.gid != 0 {
		mark.g = GoID(p.gid)
	}
	switch r.typ {
	case v1GoCreate:
		if r.a[0]-1 >= maxGo {
			return false
		}
		s.create(accRunnable, r.a[0], r.a[1], rel)

	case v1GoEnd:
		g := p.g
		if g == nil || g.end != 0 {
			return false
		}
		g.acc[accRunning] += rel | one
		g.end = rel
		p.g, p.gid = nil, 0

	case v1GoSysExit:
		return s.exit(p, r, rel)

	case v1ProcStart:
		s.proc(c, p, now, Running)
	case v1ProcStop:
		s.proc(c, p, now, Idle)
		p.g, p.gid = nil, 0

	case v1HeapAlloc:
		s.counts.HeapLiveMax = max(s.counts.HeapLiveMax, r.a[0])
	case v1SweepStart:
		p.sweep = now
	case v1SweepDone:
		if p.sweep != noSweep {
			s.a.sum.SweepNS += int64(now - p.sweep)
			p.sweep = noSweep
		}
		s.counts.SweptBytes += r.a[0]
		s.counts.ReclaimedBytes += r.a[1]
	case v1TaskCreate:
		s.counts.Tasks++
	case v1Region:
		if r.a[1] > 1 {
			return false
		}
		s.counts.Regions += 1 - int64(r.a[1])
	case v1Log:
		s.counts.Logs++
	case v1Gomaxprocs, v1HeapGoal, v1TaskEnd:
	case v1FutileWakeup:
		s.n--

	case v1AssistDone, v1GCDone, v1STWDone:
		mark.kind = KindRangeEnd
		fallthrough
	case v1AssistStart, v1GCStart, v1STWStart:
		switch r.typ {
		case v1AssistStart, v1AssistDone:
			mark.rng = RangeAssist
		case v1GCStart, v1GCDone:
			mark.rng = RangeGC
		default:
			mark.rng, mark.name = RangeSTW, StringID(v1Builtin|v1STWKind(s.m.version, r.a[0]))
		}
		s.marks = append(s.marks, mark)

	default:
		return false
	}
	return true
}

// exit takes a goroutine out of a syscall that had blocked: at the time at which it came back, if
// the event has that.
func (s *v1Sums) exit(p *v1SumP, r *v1Rec, rel uint64) bool {
	id := r.a[0]
	if id-1 >= maxGo {
		return false
	}
	if p.sysAt == p.n-1 && id != p.gid {
		p.sysAt++ // it stands between a syscall's start and its block
	}
	if real := r.a[2]; real != 0 && real < r.ts {
		if rel = s.rel(id, Syscall, Runnable, s.m.clock.time(real)); rel == 0 {
			return false
		}
	}
	g := s.ids.get(id)
	g.acc[accSyscall] += rel | one
	g.acc[accRunnable] -= rel | one
	return g.count(r)
}

// rel is ts as a time in the window. A transition of goroutine id from one state to another may
// stand in this window and have happened before it. Then it counts at the window's start, and the
// time since is moved from one state to the other. It gives 0 if the goroutine was in no such
// state.
func (s *v1Sums) rel(id uint64, from, to State, ts Time) uint64 {
	if ts > s.base {
		return uint64(ts - s.base)
	}
	k, ok := s.a.ids.get(id)
	if !ok || s.a.lives[k].state != from {
		return 0
	}
	l := &s.a.lives[k]
	l.NS[from] -= int64(s.base + 1 - ts)
	l.NS[to] += int64(s.base + 1 - ts)
	return 1
}

// proc takes c's P into another state.
func (s *v1Sums) proc(c *v1Cursor, p *v1SumP, now Time, to State) {
	if c.pid >= 0 {
		s.a.proc(ProcID(c.pid), now).to(now, to)
		p.state = to
	}
}
