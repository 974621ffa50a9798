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
//     within loopSteps instructions. A call, a store, or anything else that a wait does not do ends
//     a way.
//  2. A round is run on what is known of registers: constant while it loops, read from memory in this
//     round, or neither. An address that is neither walks through memory: that computes. A round has
//     no first instruction, so each is tried.
//  3. A register that counts is permitted only beside PAUSE, by which the programmer says that he
//     waits. Without it the loop may do something a number of times.
//
// What calls a function in each round is not known as a wait, nor is code that a runtime generated.
// Only the instructions of amd64 are read.

const (
	loopSteps = 24  // instructions of a round
	loopReach = 256 // bytes before and behind the sampled instruction
	loopTries = 400 // instructions that are followed in all
)

// waits reports whether the instruction at a linked address is in a loop that only waits.
func (im *image) waits(linked uint64) bool {
	if im.machine != machineAMD64 {
		return false
	}
	before := uint64(loopReach)
	at, ok := im.place(linked)
	if !ok {
		return false
	}
	before = min(before, at)
	code, err := im.bytes(at-before, before+loopReach)
	if err != nil {
		if code, err = im.bytes(at-before, before+16); err != nil {
			return false
		}
	}
	return waitsAt(code, int(before))
}

// waitsAt is waits for code whose byte at start is the sampled instruction's first.
func waitsAt(code []byte, start int) bool {
	l := loop{code: code, start: start, tries: loopTries}
	return l.follow(start)
}

// loop is the search for a round.
type loop struct {
	code  []byte
	start int
	tries int
	path  []x86asm.Inst
	at    []int // where they are
}

// follow goes on at an offset, and reports whether a round that waits was found.
func (l *loop) follow(at int) bool {
	if at == l.start && len(l.path) > 0 {
		return roundWaits(l.path)
	}
	if at < 0 || at >= len(l.code) || len(l.path) >= loopSteps || l.tries == 0 || slices.Contains(l.at, at) {
		return false
	}
	l.tries--
	in, err := x86asm.Decode(l.code[at:], 64)
	if err != nil || in.Len <= 0 {
		return false
	}
	next := at + in.Len
	to, jumps := in.Args[0].(x86asm.Rel)
	if !jumps && !maySpin(&in) {
		return false
	}
	l.path, l.at = append(l.path, in), append(l.at, at)
	defer func() { l.path, l.at = l.path[:len(l.path)-1], l.at[:len(l.at)-1] }()
	switch {
	case !jumps:
		return l.follow(next)
	case in.Op == x86asm.JMP:
		return l.follow(next + int(to))
	case conditional(in.Op):
		return l.follow(next+int(to)) || l.follow(next)
	}
	return false // a call, a loop instruction
}

func conditional(op x86asm.Op) bool {
	switch op {
	case x86asm.JA, x86asm.JAE, x86asm.JB, x86asm.JBE, x86asm.JE, x86asm.JG, x86asm.JGE, x86asm.JL, x86asm.JLE, x86asm.JNE, x86asm.JNO,
		x86asm.JNP, x86asm.JNS, x86asm.JO, x86asm.JP, x86asm.JS:
		return true
	}
	return false
}

// maySpin reports whether an instruction can be part of a loop that waits.
func maySpin(in *x86asm.Inst) bool {
	switch in.Op {
	case x86asm.PAUSE, x86asm.NOP, x86asm.LFENCE, x86asm.MFENCE, x86asm.RDTSC, x86asm.CMP, x86asm.TEST, x86asm.BT:
		return true
	case x86asm.XCHG, x86asm.CMPXCHG, x86asm.BTS, x86asm.BTR:
		_, memory := in.Args[0].(x86asm.Mem)
		return memory
	case x86asm.MOV, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD, x86asm.XOR, x86asm.AND, x86asm.OR, x86asm.SHR, x86asm.SHL, x86asm.SUB, x86asm.ADD,
		x86asm.INC, x86asm.DEC, x86asm.LEA:
		_, register := in.Args[0].(x86asm.Reg)
		return register
	}
	return setsByte(in.Op)
}

func setsByte(op x86asm.Op) bool {
	switch op {
	case x86asm.SETA, x86asm.SETAE, x86asm.SETB, x86asm.SETBE, x86asm.SETE, x86asm.SETG, x86asm.SETGE, x86asm.SETL, x86asm.SETLE, x86asm.SETNE,
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
	add := func(a x86asm.Arg) {
		if reg, ok := a.(x86asm.Reg); ok {
			if n := family(reg); n >= 0 {
				regs = append(regs, n)
			}
		}
	}
	switch in.Op {
	case x86asm.CMP, x86asm.TEST, x86asm.BT, x86asm.BTS, x86asm.BTR, x86asm.NOP:
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
	case x86asm.NOP, x86asm.LFENCE, x86asm.MFENCE, x86asm.JMP:
	case x86asm.RDTSC:
		r.set(x86asm.RAX, read)
		r.set(x86asm.RDX, read)
	case x86asm.CMP, x86asm.TEST, x86asm.BT:
		r.value(in.Args[0])
		r.value(in.Args[1])
	case x86asm.XCHG, x86asm.CMPXCHG, x86asm.BTS, x86asm.BTR:
		r.exchange(in)
	case x86asm.MOV, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD:
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

// alter is arithmetic on a register.
func (r *round) alter(in *x86asm.Inst) {
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

// family is the number of the whole register of which r is all or a part; -1 for other registers.
func family(r x86asm.Reg) int {
	switch {
	case r >= x86asm.RAX && r <= x86asm.R15:
		return int(r - x86asm.RAX)
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return int(r - x86asm.EAX)
	case r >= x86asm.AX && r <= x86asm.R15W:
		return int(r - x86asm.AX)
	case r >= x86asm.AL && r <= x86asm.BL:
		return int(r - x86asm.AL)
	case r >= x86asm.AH && r <= x86asm.BH:
		return int(r - x86asm.AH)
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return int(r-x86asm.SPB) + 4
	}
	return -1
}
