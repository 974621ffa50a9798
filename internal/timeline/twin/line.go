package twin

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/exectrace"
)

// reasons are the runtime's words; see traceBlockReasonStrings in runtime/traceruntime.go.
var reasons = map[string]struct {
	reason exectrace.Reason
	frame  string // where such a wait stands unless the line says
}{
	"forever":                      {exectrace.ReasonForever, "runtime.block"},
	"network":                      {exectrace.ReasonNetwork, "internal/poll.(*FD).Read"},
	"select":                       {exectrace.ReasonSelect, "runtime.selectgo"},
	"sync":                         {exectrace.ReasonSync, "sync.(*Mutex).Lock"},
	"sync.(*Cond).Wait":            {exectrace.ReasonCond, "sync.(*Cond).Wait"},
	"sleep":                        {exectrace.ReasonSleep, "time.Sleep"},
	"chan send":                    {exectrace.ReasonChanSend, "runtime.chansend1"},
	"chan receive":                 {exectrace.ReasonChanRecv, "runtime.chanrecv1"},
	"GC mark assist wait for work": {exectrace.ReasonAssistCredit, "runtime.gcAssistAlloc"},
	"GC background sweeper wait":   {exectrace.ReasonSweeperIdle, "runtime.bgsweep"},
	"system goroutine wait":        {exectrace.ReasonSystem, "-"},
	"preempted":                    {exectrace.ReasonPreempted, "runtime.asyncPreempt"},
	"wait for debug call":          {exectrace.ReasonDebugCall, "-"},
	"wait until GC ends":           {exectrace.ReasonUntilGCEnds, "-"},
	"GC worker (idle)":             {exectrace.ReasonGCWorkerIdle, "runtime.gcBgMarkWorker"},
	"coroutine":                    {exectrace.ReasonCoroutine, "-"},
	"synctest":                     {exectrace.ReasonSynctest, "-"},
	"GC weak to strong wait":       {exectrace.ReasonOther, "-"},
	"unknown":                      {exectrace.ReasonNone, "-"},
}

// gline reads one line of a goroutine.
func (p *parser) gline(n int, f []string) error {
	it, err := p.times(n, f[0])
	if err != nil {
		return err
	}
	if len(f) < 2 {
		return fmt.Errorf("%q says nothing", f[0])
	}
	g := p.cur
	it.g, it.verb = g, f[1]

	// clauses: words before the first of them are the verb's own
	var words []string
	var at, in string
	hasAt := false
	for i := 2; i < len(f); i++ {
		next := func() (string, error) {
			if i++; i >= len(f) {
				return "", fmt.Errorf("want a word after %q", f[i-1])
			}
			return f[i], nil
		}
		switch key := f[i]; key {
		case "at", "by", "on", "in", "swept", "reclaimed":
			v, err := next()
			if err != nil {
				return err
			}
			switch key {
			case "at":
				at, hasAt = v, true
			case "by":
				it.byName = v
			case "in":
				in = v
			default:
				u, err := strconv.ParseUint(v, 10, 48)
				if err != nil {
					return fmt.Errorf("want a number after %q, got %q", key, v)
				}
				switch key {
				case "on":
					it.proc = int(min(u, 1<<16))
				case "swept":
					it.arg[0] = u
				case "reclaimed":
					it.arg[1] = u
				}
			}
		default:
			words = append(words, key)
		}
	}
	if it.verb == "log" { // the message is free text
		words = f[2:]
	}
	rest := strings.Join(words, " ")

	isRange := it.end != math.MinInt64
	switch it.verb {
	case "assist", "sweep", "stw", "task", "region":
		if !isRange {
			return fmt.Errorf("%s: want begin..end", it.verb)
		}
		it.stack = p.stack(at, g)
		switch it.verb {
		case "stw":
			it.name = p.string(rest)
		case "task":
			if rest == "" {
				return fmt.Errorf("want task NAME")
			}
			it.name = p.string(rest)
			it.arg[1] = p.tasks[in]
			p.ntasks++
			it.arg[0] = p.ntasks
			p.tasks[rest] = p.ntasks
		case "region":
			if rest == "" {
				return fmt.Errorf("want region NAME")
			}
			it.name = p.string(rest)
			if in != "" && p.tasks[in] == 0 {
				return fmt.Errorf("region %s: no task %s above", rest, in)
			}
			it.arg[0] = p.tasks[in]
		}
		p.addRange(it, rankRangeBegin, rankRangeEnd)
		return nil
	}
	if isRange {
		return fmt.Errorf("%s: want one time, got a range", it.verb)
	}
	switch it.verb {
	case "log":
		if len(words) == 0 {
			return fmt.Errorf("want log CATEGORY MESSAGE")
		}
		it.rank, it.name = rankRangeBegin, p.string(words[0])
		it.arg[0] = p.tasks[in]
		it.arg[1] = uint64(p.string(strings.Join(words[1:], " ")))
		p.items = append(p.items, it)
		return nil
	case "label":
		it.rank, it.name = rankRangeBegin, p.string(rest)
		p.items = append(p.items, it)
		return nil
	case "sample":
		it.rank, it.stack = rankRangeBegin, p.stack(at, g)
		p.items = append(p.items, it)
		return nil
	}
	return p.stateLine(it, rest, at, hasAt)
}

// stateLine checks a state against the one before and ranks it within its instant.
func (p *parser) stateLine(it item, rest, at string, hasAt bool) error {
	g := it.g
	prev := exectrace.Undetermined
	if len(g.states) > 0 {
		l := g.states[len(g.states)-1]
		prev = l.state
		if it.t < l.t {
			return fmt.Errorf("time goes back from %d ns to %d ns", l.t, it.t)
		}
	}
	it.first = prev == exectrace.Undetermined
	var to exectrace.State
	bad := func() error { return fmt.Errorf("goroutine %s: %s cannot follow %s", g.name, it.verb, stateWord(prev)) }
	switch it.verb {
	case "running":
		to, it.rank = exectrace.Running, rankRun
		if !it.first && prev != exectrace.Runnable && prev != exectrace.Syscall {
			return bad()
		}
		if prev == exectrace.Syscall {
			it.rank = rankLeave
		}
	case "waiting":
		to, it.rank = exectrace.Waiting, rankLeave
		if !it.first && prev != exectrace.Running {
			return bad()
		}
		r, ok := reasons[rest]
		if !ok {
			if rest == "" {
				r.frame, r.reason = "-", exectrace.ReasonNone
			} else {
				r.frame, r.reason = "-", exectrace.ReasonOther
			}
		}
		if r.reason == exectrace.ReasonOther {
			it.name = p.string(rest)
		}
		it.reason = r.reason
		if !hasAt {
			at = r.frame
		}
		it.stack = p.stack(at, g)
	case "syscall":
		to, it.rank = exectrace.Syscall, rankLeave
		if !it.first && prev != exectrace.Running {
			return bad()
		}
		if !hasAt {
			at = "syscall.Syscall"
		}
		it.stack = p.stack(at, g)
	case "retaken":
		to, it.rank = exectrace.Syscall, rankLeave
		if prev != exectrace.Syscall {
			return bad()
		}
	case "runnable":
		to = exectrace.Runnable
		it.yield = rest == "yield"
		switch prev {
		case exectrace.Waiting:
			it.rank = rankWake
			if it.byName == "" {
				return fmt.Errorf("goroutine %s: who woke it? (runnable by NAME, by P or by nobody)", g.name)
			}
		case exectrace.Running, exectrace.Syscall:
			it.rank = rankLeave
			if hasAt {
				it.stack = p.stack(at, g)
			}
		case exectrace.Undetermined:
		default:
			return bad()
		}
	case "created":
		to, it.rank = exectrace.Runnable, rankWake
		if rest == "blocked" {
			to = exectrace.Waiting
		} else if rest != "" {
			return fmt.Errorf("created: unknown %q", rest)
		}
		if !it.first {
			return bad()
		}
		if it.byName == "" {
			return fmt.Errorf("goroutine %s: who created it? (created by NAME or by nobody)", g.name)
		}
	case "end":
		to, it.rank = exectrace.NotExist, rankLeave
		if prev != exectrace.Running && prev != exectrace.Syscall {
			return bad()
		}
	default:
		return fmt.Errorf("unknown %q", it.verb)
	}
	if it.first && it.verb != "created" {
		it.rank = rankStatus
		if to == exectrace.Running {
			it.rank = rankRun // it needs a P that somebody may be leaving
		}
	}
	if (it.verb == "runnable" || it.verb == "created") && it.byName != "" {
		// the stack is the waker's, whose entry is known when all is read
		if !hasAt {
			at = ""
		}
		it.name = p.string(at)
	}
	// the order of one goroutine's lines at one instant stays
	if len(g.states) > 0 && it.t == g.last {
		it.rank = max(it.rank, g.rank)
	}
	g.last, g.rank = it.t, it.rank
	g.states = append(g.states, state{it.t, to})
	p.items = append(p.items, it)
	return nil
}

// runs tells whether g runs up to t (1), from t on (2) or not (0).
func (g *goroutine) runs(t int64) int {
	before := exectrace.Undetermined
	after := exectrace.Undetermined
	for _, s := range g.states {
		if s.t < t {
			before = s.state
		}
		if s.t <= t {
			after = s.state
		}
	}
	switch {
	case before == exectrace.Running:
		return 1
	case after == exectrace.Running:
		return 2
	}
	// ran for no time at all, at t
	for _, s := range g.states {
		if s.t == t && s.state == exectrace.Running {
			return 2
		}
	}
	return 0
}

// resolve finds wakers and orders everything.
func (p *parser) resolve() error {
	next := exectrace.GoID(1)
	used := map[exectrace.GoID]bool{}
	for _, g := range p.gs {
		if g.id != 0 {
			if used[g.id] {
				return fmt.Errorf("line %d: goroutine %d is there twice", g.line, g.id)
			}
			used[g.id] = true
		}
		if len(g.states) == 0 {
			return fmt.Errorf("line %d: goroutine %s has no state", g.line, g.name)
		}
	}
	for _, g := range p.gs {
		if g.id == 0 {
			for used[next] {
				next++
			}
			g.id = next
			used[next] = true
		}
	}
	for i := range p.items {
		it := &p.items[i]
		if it.t == math.MinInt64 {
			it.t = p.begin
		}
		if it.byName == "" {
			continue
		}
		if it.byName != "P" && it.byName != "nobody" {
			it.by = p.byName[it.byName]
			if it.by == nil {
				return fmt.Errorf("line %d: no goroutine %s", it.line, it.byName)
			}
		}
		switch it.verb {
		case "runnable", "created":
			at := p.strings[it.name]
			it.name = 0
			if it.by == nil {
				continue
			}
			it.stack = p.stack(at, it.by)
			switch r := it.by.runs(it.t); {
			case r == 2:
				it.rank = max(it.rank, rankLate)
			case r == 0 && !p.damaged:
				return fmt.Errorf("line %d: goroutine %s cannot have done this: it does not run at %d ns", it.line, it.by.name, it.t)
			}
		}
	}
	// A wake-up that had to come late takes what follows it in the same instant along.
	late := map[*goroutine]item{}
	for i := range p.items {
		it := &p.items[i]
		if it.g == nil {
			continue
		}
		if l, ok := late[it.g]; ok && l.t == it.t && l.line < it.line {
			it.rank = max(it.rank, l.rank)
		}
		if it.rank == rankLate {
			late[it.g] = *it
		}
	}
	slices.SortStableFunc(p.items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(a.rank, b.rank), cmp.Compare(a.line, b.line))
	})
	return nil
}
