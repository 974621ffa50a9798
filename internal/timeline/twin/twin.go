package twin

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Parse makes a trace from a text that a person writes and checks by eye. A line that begins in the
// first column is about the whole process or opens a goroutine. An indented line says what that
// goroutine does:
//
//	# the caller waits for the batcher
//	unit 1ms
//	procs 2
//	3..7 gc
//	goroutine A main.caller
//		0 running
//		1 waiting chan receive at runtime.chanrecv1<main.get
//		10 runnable by B at runtime.closechan
//		12 running
//		13 end
//	goroutine B main.batcher
//		0 running
//		2 waiting network at internal/poll.(*FD).Read
//		4 runnable by P
//		9 running
//		14 waiting forever
//
// Process lines:
//
//	unit 1us               the unit of a bare time, 1ns unless said; times may have a fraction
//	version 26             exectrace.Version
//	procs 2                GOMAXPROCS; else as many as are needed
//	wall 1700000000000000  the wall clock at time 0, ns: the trace has a wall clock then
//	end 20                 the trace's end; else its last time
//	damaged                do not check that wakers were running, nor that Ps suffice
//	8 procs 4              GOMAXPROCS changes
//	6 start 1              a thread starts P 1; stops it at once unless a goroutine runs on it
//	3..7 gc                the mark phase
//	5..6 gap REASON        events are missing; lines that fall inside are not handed out
//	7 sync                 a generation begins: the running states are repeated as statuses
//	5 heap live 4096       or: heap goal 4096
//
// A goroutine is a name (or its number) and its entry function. Its lines, in order of time:
//
//	0 running [on 1]              on P 1; unless said the P it had last, or the first free one
//	1 waiting REASON [at STACK]   REASON is the runtime's word: chan receive, chan send, select,
//	                              sync, sync.(*Cond).Wait, network, sleep, preempted, …
//	10 runnable by B [at STACK]   after a wait: woken by goroutine B, which did it at STACK;
//	                              "by P": a P without goroutine; "by nobody": a thread without P
//	10 runnable [yield]           after running: preempted, or gave way
//	10 runnable                   after a syscall: came back without its P
//	2 syscall [at STACK]
//	3 retaken                     lost its P in the syscall; else it keeps it until it comes back
//	4 created [blocked] by B [at STACK]   "by nobody": made by a timer or unseen
//	13 end
//	2..4 assist [at STACK]
//	2..4 sweep [swept N] [reclaimed N] [at STACK]
//	2..4 stw GC mark termination [at STACK]
//	2..9 task NAME [in PARENT] [by B]     by B: it is B that ends it
//	2..9 region NAME [in TASK]
//	5 log CATEGORY MESSAGE…
//	5 label NAME
//	5 sample at STACK
//
// Where a time is missing (2.. or ..4) the range is open at that end of the trace. A first line
// other than created is the goroutine's status there. STACK is "inner<outer<…", and a frame may
// have a line number (main.f:12). The entry function is added at its end unless it is there; "-" is
// no stack. Without "at" the stack is the frame that the reason implies.
//
// Within one instant wake-ups come first, then the goroutines that leave a P, then those that get
// one. The lines of one goroutine never change order.
func Parse(r io.Reader) (*Trace, error) {
	p := newParser()
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for n := 1; sc.Scan(); n++ {
		if err := p.line(n, sc.Text()); err != nil {
			return nil, fmt.Errorf("parse text timeline: line %d: %w", n, err)
		}
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("parse text timeline: %w", err)
	}
	if err := p.generate(); err != nil {
		return nil, fmt.Errorf("parse text timeline: %w", err)
	}
	return p.Trace, nil
}

// Must is Parse of a string, for tests.
func Must(s string) *Trace {
	src, err := Parse(strings.NewReader(s))
	if err != nil {
		panic(err)
	}
	return src
}

// line reads one line: a setting, the start of a goroutine, one of its lines, or one of the
// process.
func (p *parser) line(n int, s string) error {
	body := strings.TrimSpace(s)
	if body == "" || body[0] == '#' {
		return nil
	}
	f := strings.Fields(body)
	switch {
	case s[0] != ' ' && s[0] != '\t':
	case p.current == nil:
		return fmt.Errorf("%q is indented but no goroutine was opened", body)
	default:
		return p.goroutineLine(n, f)
	}
	if f[0] == "goroutine" {
		return p.open(n, f)
	}
	if done, err := p.setting(f, body); done {
		return err
	}
	return p.processLine(n, f, body)
}
