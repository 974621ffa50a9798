package profiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var (
	// "prev_comm=shopd prev_pid=67 prev_prio=0 prev_state=S ==> next_comm=swapper/9 next_pid=0"
	switchNamed = pattern.New(`^prev_comm=(.*) prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+)`)
	// "shopd:6439 [120] D ==> swapper/1:0 [120]"
	switchShort = pattern.New(`^(.+):(\d+) \[-?\d+\] (\S+) ==> (.+):(\d+) \[-?\d+\]`)
	// "comm=perf pid=13418 prio=120 orig_cpu=9 dest_cpu=10"
	movedTo = pattern.New(`^comm=(.*) pid=\d+ prio=-?\d+ orig_cpu=(\d+) dest_cpu=(\d+)`)
	// "comm=perf pid=13418 runtime=139748 [ns]"
	ranFor = pattern.New(`^comm=(.*) pid=\d+ runtime=(\d+) \[ns\]`)
	// "259,0 R 4096 () 429974552 + 8 [shopd]", and of the end "259,0 R () 429974552 + 8 [0]"
	blockRequest = pattern.New(`^(\d+,\d+) (\S+) (?:(\d+) )?\(.*?\) (\d+) \+ \d+`)
)

// switches pairs events of a perf script: when threads left their CPU and came back, and when a
// block device got a request and answered.
type switches struct {
	off            map[int]leftCPU
	sums           map[string]*offSum // by thread and state
	ran            map[string]float64 // s, by program
	issued         map[string]blockIO // that have not come back, by device and sector
	took           []float64          // s, of requests that came back
	lines          int
	first, last    float64
	seen           map[string]bool
	issuers        map[int]string // what a thread's last event was, where it issued a request
	moves          int            // of threads to other CPUs
	moved          string         // the last of them
	switchesAtHand bool
	calls          *callTrace // system calls, by pairs of their events
	inside         map[int]tracedCall
}

// leftCPU is a thread that left its CPU and has not come back.
type leftCPU struct {
	at     float64
	name   string
	state  string
	issued string // the block request that it had issued right before
}

// offSum is how long a thread was off CPU in one state.
type offSum struct {
	name, state  string
	n            int
	sum, longest float64 // s
	late         bool    // the end is its next line, so it is at most this long
	issued       string
}

type blockIO struct {
	at   float64
	what string
}

func newSwitches() *switches {
	return &switches{off: map[int]leftCPU{}, sums: map[string]*offSum{}, ran: map[string]float64{},
		issued: map[string]blockIO{}, seen: map[string]bool{}, issuers: map[int]string{},
		inside: map[int]tracedCall{}, calls: newCallTrace()}
}

// event takes an event of a thread, with what stands behind the event's name.
func (s *switches) event(tid int, at float64, event, rest string) {
	if s.lines++; s.lines == 1 {
		s.first = at
	}
	s.last = at
	if len(s.seen) < 256 {
		s.seen[event] = true
	}
	s.back(tid, at, true)
	wasIssued := s.issuers[tid]
	delete(s.issuers, tid)
	if name, ok := strings.CutPrefix(event, "syscalls:sys_enter_"); ok && len(s.inside) < most {
		s.inside[tid] = tracedCall{tid: tid, at: at, name: name}
	} else if name, ok := strings.CutPrefix(event, "syscalls:sys_exit_"); ok {
		if c := s.inside[tid]; c.name == name {
			c.seconds = max(at-c.at, 0)
			s.calls.add(&c)
			delete(s.inside, tid)
		}
	}
	switch event {
	case "sched:sched_switch":
		m := switchNamed.FindStringSubmatch(rest)
		if m == nil {
			m = switchShort.FindStringSubmatch(rest)
		}
		if m == nil {
			return
		}
		s.switchesAtHand = true
		prev, _ := whole(m[2])
		next, _ := whole(m[5])
		s.back(next, at, false)
		if prev > 0 && len(s.off) < most {
			s.off[prev] = leftCPU{at: at, name: strings.TrimSpace(m[1]), state: m[3], issued: wasIssued}
		}
	case "sched:sched_migrate_task":
		if m := movedTo.FindStringSubmatch(rest); m != nil {
			s.moves++
			s.moved = fmt.Sprintf("%s from CPU %s to %s", m[1], m[2], m[3])
		}
	case "sched:sched_stat_runtime":
		if m := ranFor.FindStringSubmatch(rest); m != nil && len(s.ran) < most {
			ns, _ := number(m[2])
			s.ran[m[1]] += ns / 1e9
		}
	case "block:block_rq_issue":
		if m := blockRequest.FindStringSubmatch(rest); m != nil && len(s.issued) < most && len(s.issuers) < most {
			what := m[2] + " on " + m[1]
			if m[3] != "" {
				what = fmt.Sprintf("%s of %s bytes on %s", m[2], m[3], m[1])
			}
			s.issued[m[1]+" "+m[4]] = blockIO{at, what}
			s.issuers[tid] = what
		}
	case "block:block_rq_complete":
		if m := blockRequest.FindStringSubmatch(rest); m != nil {
			key := m[1] + " " + m[4]
			if io, ok := s.issued[key]; ok && len(s.took) < most {
				s.took = append(s.took, at-io.at)
				delete(s.issued, key)
			}
		}
	}
}

// offState says in a person's words what a state of a switch is.
func offState(state string) string {
	switch state[0] {
	case 'D':
		return "in D (a wait that no signal ends, as for a disk)"
	case 'R':
		return "though it was ready to run (R)"
	case 'S', 'I':
		return "asleep (" + state[:1] + ")"
	}
	return "in state " + state
}

// back ends a thread's time off CPU. Late: it is seen to run, and may have come back before.
func (s *switches) back(tid int, at float64, late bool) {
	left, ok := s.off[tid]
	if !ok || tid == 0 {
		return
	}
	delete(s.off, tid)
	took := at - left.at
	if took < 0 {
		return
	}
	key := fmt.Sprint(tid, left.state)
	sum := s.sums[key]
	if sum == nil {
		if len(s.sums) >= most {
			return
		}
		sum = &offSum{name: fmt.Sprintf("%s (%d)", left.name, tid), state: left.state}
		s.sums[key] = sum
	}
	sum.n++
	sum.sum += took
	if took >= sum.longest {
		sum.longest, sum.issued = took, left.issued
	}
	sum.late = sum.late || late
}

// says is a line about a thread.
func (o *offSum) says() string {
	line := fmt.Sprintf("%s was off CPU %s", o.name, offState(o.state))
	if o.n == 1 {
		line += " once, for " + lasts(o.sum)
	} else {
		line += fmt.Sprintf(" %d times, for %s in all and %s at most", o.n, lasts(o.sum), lasts(o.longest))
	}
	if o.late {
		line += ", to the thread's next line"
	}
	return line
}

// reading says what the pairs show; false: there are none.
func (s *switches) reading() (r attach.Reading, ok bool) {
	if s.calls.n > 0 && !s.switchesAtHand {
		s.calls.span = s.last - s.first
		return s.calls.reading(s.calls.title("perf script", "system call"),
			"tracing costs little for each call; only calls whose start and end are both here count"), true
	}
	if !s.switchesAtHand {
		return r, false
	}
	r = attach.Reading{State: attach.CannotTell, Title: fmt.Sprintf("perf script, %s of %s",
		attach.Plural(s.lines, "line"), attach.Plural(len(s.seen), "event"))}
	if d := s.last - s.first; d > 0 {
		r.Title += " in " + lasts(d)
	}
	all := make([]*offSum, 0, len(s.sums))
	for _, key := range slices.Sorted(mapNames(s.sums)) {
		all = append(all, s.sums[key])
	}
	// A wait that no signal ends comes first: sleep is mostly for want of work.
	slices.SortStableFunc(all, func(a, b *offSum) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(b.sum, a.sum))
	})
	for _, o := range all[:min(2, len(all))] {
		r.Figures = append(r.Figures, o.says())
	}
	s.blocks(&r)
	if s := topTimes(s.ran); s != "" {
		r.Figures = append(r.Figures, "on CPUs by sched_stat_runtime: "+s)
	}
	if s.moves > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%s to another CPU, the last: %s",
			attach.Plural(s.moves, "move"), s.moved))
	}
	r.Not = "These are scheduler events and no CPU samples. One wait is no rate, and a thread that leaves its CPU mostly has nothing to do."
	switch {
	case len(all) == 0:
		r.Means = "No thread that left its CPU is seen to come back, so no wait can be told."
	case all[0].sleeps():
		r.Means = "The threads that left their CPU slept, which is mostly for want of work: " + all[0].says() + "."
	default:
		r.Means = "Thread " + all[0].says() + "."
		if all[0].issued != "" {
			r.Means = fmt.Sprintf("Thread %s, right after it had issued a block request (%s).",
				all[0].says(), all[0].issued)
		}
		if all[0].issued != "" && all[0].longest >= 0.010 {
			r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Candidate,
				Proof: []string{all[0].says()}})
		}
	}
	r.Next = []attach.Next{ask("perf sched timehist", 0,
		"it pairs all switches of the recording: how long threads waited, and for a CPU"),
		ask("perf sched latency", 0, "the delay of each task")}
	return r, true
}

// sleeps reports whether the thread had left its CPU to sleep, as for want of work.
func (o *offSum) sleeps() bool { return o.state[0] == 'S' || o.state[0] == 'I' }

// rank orders states by how much a wait in them tells.
func (o *offSum) rank() int {
	switch {
	case o.state[0] == 'D':
		return 0
	case o.state[0] == 'R':
		return 1
	case !o.sleeps():
		return 2
	}
	return 3
}

// blocks adds what block devices took.
func (s *switches) blocks(r *attach.Reading) {
	if n := len(s.took); n > 0 {
		slices.Sort(s.took)
		r.Figures = append(r.Figures, fmt.Sprintf("block I/O: %s, median %s, longest %s",
			attach.Plural(n, "request"), lasts(attach.Median(s.took)), lasts(s.took[n-1])))
	}
	if n := len(s.issued); n > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("block I/O: %s issued whose end is not in it",
			attach.Plural(n, "request")))
	}
}

// topTimes lists the three largest times.
func topTimes(of map[string]float64) string {
	var out []string
	for _, name := range attach.Largest(of)[:min(3, len(of))] {
		out = append(out, name+" "+lasts(of[name]))
	}
	return strings.Join(out, ", ")
}
