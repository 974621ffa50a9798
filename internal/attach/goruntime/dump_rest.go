package goruntime

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
)

// readRest says what there is where nothing stands out.
func (p *picture) readRest(r *attach.Reading) {
	of := "what there is waits"
	if p.openEnd() && r.State == attach.Healthy {
		r.State, of = attach.CannotTell, "the text ends within the dump, and what is shown waits"
	}
	r.Means = fmt.Sprintf("nobody waits for a lock; %s to be woken, sleeps or runs", of)
	if p.partial() && r.State == attach.Healthy {
		r.State = attach.CannotTell
	}
	if p.cut > 0 || p.openEnd() || p.partial() {
		r.Means = fmt.Sprintf("nobody that is shown waits for a lock; %s to be woken, sleeps or runs", of)
	}
	// The largest group says it where it has waited as long.
	g := p.group()
	if text, minutes := p.longest(); text != "" && p.n > 1 && (g.n < 2 || g.minutes < minutes) {
		at := len(r.Figures)
		if at < 3 {
			at = 0
		}
		r.Figures = slices.Insert(r.Figures, at, text)
	}
	if r.State == attach.Healthy && p.unexplained() > 0 {
		r.State = attach.CannotTell
		r.Next = append(r.Next, attach.Next{Command: "the same dump a minute later",
			Why: "who is still there, and did not come back meanwhile"})
	}
	if n := p.kinds[waitSema]; n > 0 && r.State != attach.Ill {
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s at a semaphore, that of a lock or of a WaitGroup: which, is in the part of the stack that is cut off", waits(n))
	}
	if p.locked == 0 {
		return
	}
	r.Means = fmt.Sprintf("%s for a lock in this moment, and the others wait to be woken, sleep or run", waits(p.locked))
	if p.locked == p.n {
		r.Means = fmt.Sprintf("%s for a lock in this moment", waits(p.locked))
	}
	if r.State != attach.Ill && lockedPart*p.locked >= p.n-p.kinds[waitRuntime] {
		r.State = attach.CannotTell
		r.Means += ": whether they come on, a second dump says"
	}
}

// unexplained counts those who wait for others of the program: for work, which is their rest, or in
// vain.
func (p *picture) unexplained() (n int) {
	for i, s := range p.stacks {
		switch p.waits[i].kind {
		case waitChan, waitCond, waitGroup, waitOther, waitSema:
			if !idle(s) && !s.writer() {
				n += s.count
			}
		}
	}
	return n
}

// partial reports whether the start of the text is missing: a profile has its heading above the
// largest crowds, and each goroutine of a dump its own.
func (p *picture) partial() bool {
	return p.counts && p.total == 0 && !p.lost || !p.counts && !p.timeless && !p.reversed && len(p.stacks) > 1 &&
		p.stacks[0].id == 0 && p.stacks[0].state == "" &&
		slices.ContainsFunc(p.stacks, func(s *stack) bool { return s.id > 0 })
}

// openEnd reports whether the text ends within a stack, also right below its header, so that
// goroutines may be missing behind it. Where no stack has its end, a person left them out.
func (p *picture) openEnd() bool {
	n := len(p.stacks)
	return p.open || n > 1 && !p.counts && !p.timeless && !p.reversed &&
		!p.stacks[n-1].whole() && slices.ContainsFunc(p.stacks[:n-1], (*stack).whole)
}

// untold is what no dump says, or this one does not.
func (p *picture) untold() string {
	fresh := slices.ContainsFunc(p.stacks, func(s *stack) bool { return s.minutes == 0 })
	switch {
	case p.counts:
		return "how long each has waited: such a profile has no times"
	case p.timeless:
		return "how long each has waited: such a list has no times"
	case p.oldest > 0 && p.locked > 0 && fresh:
		return "how long those have waited that have no minutes: they are printed only of waits that a GC cycle has seen"
	case p.oldest > 0 && p.locked == p.n:
		return ""
	case p.oldest > 0:
		return "that a long wait is a fault: who waits for work or for the other side of an idle connection does so for hours"
	}
	return "how long each has waited: minutes are printed only of waits that a GC cycle has seen"
}
