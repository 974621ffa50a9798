package symbol

import (
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// A thread that waits for another by a loop of its own, around an atomic flag or a ticket, is on a
// CPU like one that computes. Its code tells the two apart: a round of such a loop changes nothing
// that the next round goes by. It reads memory at addresses that stay the same, may try to set it
// by an atomic exchange of constants, and goes back. Only somebody else can end it.
//
//  1. From the sampled instruction on, all ways through the code are followed that come back to it
//     within loopSteps instructions, into the functions that they call and out of them. A store,
//     or anything else that a wait does not do, ends a way.
//  2. A round is run on what is known of registers: constant while it loops, read from memory in this
//     round, or neither. An address that is neither walks through memory: that computes. A round has
//     no first instruction, so each is tried.
//  3. A register that counts is permitted only beside PAUSE, by which the programmer says that he
//     waits. Without it the loop may do something a number of times.
//
// A way out of the sampled function goes on at its caller, if the stack shows one (calls.go). Calls
// through pointers and of other files are not followed. But a sample at PAUSE needs no loop: the
// instruction is for nothing but waiting, whoever called it. Only the instructions of amd64 are
// read.

const (
	loopSteps = 48  // instructions of a round
	loopTries = 400 // instructions that are followed in all
	loopDepth = 4   // calls within calls
)

// coder reads code at a linked address into b, and returns how many bytes there are.
type coder func(linked uint64, b []byte) int

// waitsAt reports whether the instruction at an address is in a loop that only waits. callers are
// where its function returns to, the innermost first, as far as known. left says that a way out of
// the function went beyond them.
func waitsAt(code coder, at uint64, callers []uint64) (waits, left bool) {
	l := loop{code: code, start: at, callers: callers, tries: loopTries}
	waits = l.follow(at, nil, 0)
	return waits, l.left
}

// loop is the search for a round.
type loop struct {
	code    coder
	start   uint64
	callers []uint64
	tries   int
	left    bool
	path    []x86asm.Inst
	at      []place
}

// place is an instruction on a way, and how many calls deeper than the first it is.
type place struct {
	addr  uint64
	depth int
}

// follow goes on at an address, and reports whether a round that waits was found. back is where the
// calls on this way return to.
func (l *loop) follow(addr uint64, back []uint64, depth int) bool {
	here := place{addr, depth}
	if addr == l.start && depth == 0 && len(l.path) > 0 {
		return l.repeats() && roundWaits(l.path)
	}
	if len(l.path) >= loopSteps || l.tries == 0 || depth > loopDepth || slices.Contains(l.at, here) {
		return false
	}
	l.tries--
	in, ok := l.decode(addr)
	if !ok {
		return false
	}
	next := addr + uint64(in.Len)
	to, jumps := in.Args[0].(x86asm.Rel)
	if !jumps && in.Op != x86asm.RET && !maySpin(&in) {
		return false
	}
	l.path, l.at = append(l.path, in), append(l.at, here)
	defer func() { l.path, l.at = l.path[:len(l.path)-1], l.at[:len(l.at)-1] }()
	target := next + uint64(int64(to))
	switch {
	case in.Op == x86asm.RET:
		return l.leave(back, depth)
	case !jumps:
		return l.follow(next, back, depth)
	case in.Op == x86asm.JMP:
		return l.follow(target, back, depth)
	case in.Op == x86asm.CALL:
		return l.follow(target, append(back[:len(back):len(back)], next), depth+1)
	case conditional(in.Op):
		return l.follow(target, back, depth) || l.follow(next, back, depth)
	}
	return false // a loop instruction
}

// leave goes on where a function returns to.
func (l *loop) leave(back []uint64, depth int) bool {
	if n := len(back); n > 0 {
		return l.follow(back[n-1], back[:n-1], depth-1)
	}
	// Only ways out of the sampled function and of its callers come here: depth is 0 or less.
	if n := -depth; n >= 0 && n < len(l.callers) {
		return l.follow(l.callers[n], nil, depth-1)
	}
	l.left = true
	return false
}

// decode reads an instruction.
func (l *loop) decode(addr uint64) (in x86asm.Inst, ok bool) {
	var b [16]byte
	n := l.code(addr, b[:])
	if n >= len(landing) && [4]byte(b[:4]) == landing {
		return x86asm.Inst{Op: x86asm.NOP, Len: len(landing)}, true
	}
	in, err := x86asm.Decode(b[:n], 64)
	return in, err == nil && in.Len > 0
}

// landing is ENDBR64, with which functions begin that may be called through a pointer.
var landing = [4]byte{0xf3, 0x0f, 0x1e, 0xfa}

func conditional(op x86asm.Op) bool {
	switch op {
	case x86asm.JA, x86asm.JAE, x86asm.JB, x86asm.JBE, x86asm.JE, x86asm.JG, x86asm.JGE, x86asm.JL,
		x86asm.JLE, x86asm.JNE, x86asm.JNO,
		x86asm.JNP, x86asm.JNS, x86asm.JO, x86asm.JP, x86asm.JS:
		return true
	}
	return false
}

// maySpin reports whether an instruction can be part of a loop that waits.
func maySpin(in *x86asm.Inst) bool {
	switch in.Op {
	case x86asm.PAUSE, x86asm.NOP, x86asm.LFENCE, x86asm.MFENCE, x86asm.RDTSC, x86asm.CMP,
		x86asm.TEST, x86asm.BT, x86asm.LEAVE:
		return true
	case x86asm.PUSH, x86asm.POP:
		_, register := in.Args[0].(x86asm.Reg)
		return register
	case x86asm.XCHG, x86asm.CMPXCHG, x86asm.BTS, x86asm.BTR:
		_, memory := in.Args[0].(x86asm.Mem)
		return memory
	case x86asm.MOV, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD, x86asm.XOR, x86asm.AND, x86asm.OR,
		x86asm.SHR, x86asm.SHL, x86asm.SUB, x86asm.ADD,
		x86asm.INC, x86asm.DEC, x86asm.LEA:
		_, register := in.Args[0].(x86asm.Reg)
		return register || in.Op == x86asm.MOV && ofFrame(in.Args[0])
	}
	return setsByte(in.Op)
}

// ofFrame reports whether an operand is a place in the function's own frame.
func ofFrame(a x86asm.Arg) bool {
	m, ok := a.(x86asm.Mem)
	return ok && m.Segment == 0 && m.Index == 0 && (m.Base == x86asm.RSP || m.Base == x86asm.RBP)
}

func setsByte(op x86asm.Op) bool {
	switch op {
	case x86asm.SETA, x86asm.SETAE, x86asm.SETB, x86asm.SETBE, x86asm.SETE, x86asm.SETG,
		x86asm.SETGE, x86asm.SETL, x86asm.SETLE, x86asm.SETNE,
		x86asm.SETNS, x86asm.SETS:
		return true
	}
	return false
}

// holds is what is known of a register in a round.
type holds uint8

const (
	changes  holds = iota // from round to round
	read                  // it was read from memory in this round
	constant              // it is the same in all rounds
)

// round is a loop's state after some of its instructions.
type round struct {
	regs            [16]holds
	pushed          []holds
	pause, counts   bool
	looks, computes bool // it reads memory; it does what no wait does
}

// roundWaits reports whether the instructions, run again and again, only wait.
func roundWaits(path []x86asm.Inst) bool {
	var begin round
	for i := range begin.regs {
		begin.regs[i] = constant
	}
	for i := range path {
		for _, reg := range written(&path[i]) {
			begin.regs[reg] = changes
		}
	}
	for first := range path {
		r := begin
		r.pushed = nil
		for i := range path {
			r.run(&path[(first+i)%len(path)])
		}
		if !r.computes && (r.pause || r.looks && !r.counts) {
			return true
		}
	}
	return false
}

// written lists the registers that an instruction changes.
func written(in *x86asm.Inst) (regs []int) {
	// Within a function the stack pointer is where it was when a round has ended.
	add := func(a x86asm.Arg) {
		if reg, ok := a.(x86asm.Reg); ok {
			if n := family(reg); n >= 0 && reg != x86asm.RSP {
				regs = append(regs, n)
			}
		}
	}
	switch in.Op {
	case x86asm.CMP, x86asm.TEST, x86asm.BT, x86asm.BTS, x86asm.BTR, x86asm.NOP, x86asm.PUSH, x86asm.CALL, x86asm.RET:
	case x86asm.LEAVE:
		add(x86asm.RBP)
	case x86asm.XCHG:
		add(in.Args[1])
	case x86asm.CMPXCHG:
		add(x86asm.RAX)
	case x86asm.RDTSC:
		add(x86asm.RAX)
		add(x86asm.RDX)
	default:
		add(in.Args[0])
	}
	return regs
}

func (r *round) run(in *x86asm.Inst) {
	switch in.Op {
	case x86asm.PAUSE:
		r.pause = true
	case x86asm.NOP, x86asm.LFENCE, x86asm.MFENCE, x86asm.JMP, x86asm.CALL, x86asm.RET:
	case x86asm.PUSH:
		r.pushed = append(r.pushed, r.value(in.Args[0]))
	case x86asm.POP:
		r.pop(in.Args[0])
	case x86asm.LEAVE:
		r.pop(x86asm.RBP)
	case x86asm.RDTSC:
		r.set(x86asm.RAX, read)
		r.set(x86asm.RDX, read)
	case x86asm.CMP, x86asm.TEST, x86asm.BT:
		r.value(in.Args[0])
		r.value(in.Args[1])
	case x86asm.XCHG, x86asm.CMPXCHG, x86asm.BTS, x86asm.BTR:
		r.exchange(in)
	case x86asm.MOV, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD:
		if ofFrame(in.Args[0]) {
			// What was read must not be kept for the next round: it may be a sum.
			r.computes = r.computes || r.value(in.Args[1]) != constant || r.address(in.Args[0]) != constant
			return
		}
		r.set(in.Args[0], r.value(in.Args[1]))
	case x86asm.LEA:
		r.set(in.Args[0], r.address(in.Args[1]))
	default:
		switch {
		case conditional(in.Op):
		case setsByte(in.Op):
			r.set(in.Args[0], read)
		default:
			r.alter(in)
		}
	}
}

// exchange is an atomic attempt to set memory. What it sets must not come from what was read: that
// would be a sum or a list that grows, whose loop ends by itself.
func (r *round) exchange(in *x86asm.Inst) {
	r.value(in.Args[0])
	if r.value(in.Args[1]) != constant {
		r.computes = true
	}
	switch in.Op {
	case x86asm.XCHG:
		r.set(in.Args[1], read)
	case x86asm.CMPXCHG:
		r.set(x86asm.RAX, read)
	}
}

// pop gives a register what was pushed last in this round.
func (r *round) pop(to x86asm.Arg) {
	was := changes
	if n := len(r.pushed); n > 0 {
		was, r.pushed = r.pushed[n-1], r.pushed[:n-1]
	}
	r.set(to, was)
}

// alter is arithmetic on a register.
func (r *round) alter(in *x86asm.Inst) {
	if in.Args[0] == x86asm.RSP {
		return // it makes a frame, or gives it back
	}
	if in.Op == x86asm.XOR && in.Args[0] == in.Args[1] {
		r.set(in.Args[0], constant)
		return
	}
	with := constant
	if in.Args[1] != nil {
		with = r.value(in.Args[1])
	}
	was := r.value(in.Args[0])
	_, step := in.Args[1].(x86asm.Imm)
	switch {
	case was != changes && with != changes:
		r.set(in.Args[0], min(was, with))
	case in.Op == x86asm.INC || in.Op == x86asm.DEC || step && (in.Op == x86asm.ADD || in.Op == x86asm.SUB):
		r.counts = true
	default:
		r.computes = true
	}
}

// value is what is known of an operand.
func (r *round) value(a x86asm.Arg) holds {
	switch a := a.(type) {
	case x86asm.Imm:
		return constant
	case x86asm.Reg:
		if n := family(a); n >= 0 {
			return r.regs[n]
		}
		r.computes = true // of the floating point unit, a segment
	case x86asm.Mem:
		r.looks = true
		if r.address(a) == changes {
			r.computes = true
		}
		return read
	}
	return changes
}

// address is what is known of the address of an operand in memory.
func (r *round) address(a x86asm.Arg) holds {
	m, ok := a.(x86asm.Mem)
	if !ok {
		return changes
	}
	known := constant
	for _, reg := range []x86asm.Reg{m.Base, m.Index} {
		switch n := family(reg); {
		case reg == 0 || reg == x86asm.RIP:
		case n < 0:
			return changes
		default:
			known = min(known, r.regs[n])
		}
	}
	return known
}

func (r *round) set(a x86asm.Arg, h holds) {
	reg, ok := a.(x86asm.Reg)
	n := family(reg)
	if !ok || n < 0 {
		r.computes = true
		return
	}
	r.regs[n] = h
}
