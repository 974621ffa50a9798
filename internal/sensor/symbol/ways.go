package symbol

import (
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// A way through the code that comes back to its first instruction need not be a loop: it may take
// branches that exclude each other, as where an iterator's function returns nothing and its caller
// goes on with what was returned. So a way is walked twice, with what its branches say of each
// value: that it is zero, or is not.

// known is what a way has told of a register's value.
type known struct {
	id       int  // of the value; copies have the same
	constant bool // it is value
	value    int64
}

// told is a value as wide as it was compared.
type told struct{ id, width int }

// walk is the state of one way.
type walk struct {
	regs   [16]known
	pushed []known
	next   int
	zero   map[told]bool
	flags  compared
}

// compared is what the flags tell: how a value compares with another.
type compared struct {
	ok    bool
	of    known
	width int
	with  int64
}

// repeats reports whether the way can be walked twice.
func (l *loop) repeats() bool {
	w := walk{zero: map[told]bool{}}
	for i := range w.regs {
		w.regs[i] = w.fresh()
	}
	for n := range 2 * len(l.path) {
		i := n % len(l.path)
		in := &l.path[i]
		if !conditional(in.Op) {
			w.step(in)
			continue
		}
		to, _ := in.Args[0].(x86asm.Rel)
		next, behind := l.at[(i+1)%len(l.path)].addr, l.at[i].addr+uint64(in.Len)
		if to != 0 && !w.branch(in.Op, next != behind) {
			return false
		}
	}
	return true
}

func (w *walk) fresh() known {
	w.next++
	return known{id: w.next}
}

// branch reports whether the way may go on as it does.
func (w *walk) branch(op x86asm.Op, taken bool) bool {
	f := &w.flags
	if !f.ok || op != x86asm.JE && op != x86asm.JNE {
		return true
	}
	equal := taken == (op == x86asm.JE)
	switch {
	case f.of.constant:
		return equal == (f.of.value == f.with)
	case f.with != 0:
		return true
	}
	key := told{f.of.id, f.width}
	if was, ok := w.zero[key]; ok {
		return was == equal
	}
	w.zero[key] = equal
	return true
}

func (w *walk) step(in *x86asm.Inst) {
	switch {
	case in.Op == x86asm.CMP || in.Op == x86asm.TEST:
		w.compare(in)
	case in.Op == x86asm.PUSH:
		if n := register(in.Args[0]); n >= 0 {
			w.pushed = append(w.pushed, w.regs[n])
		}
	case in.Op == x86asm.POP && len(w.pushed) > 0:
		if n := register(in.Args[0]); n >= 0 {
			w.regs[n] = w.pushed[len(w.pushed)-1]
		}
		w.pushed = w.pushed[:len(w.pushed)-1]
		return
	case !keepsFlags(in.Op):
		w.flags.ok = false
	}
	for _, n := range written(in) {
		w.regs[n] = w.result(in)
	}
}

func keepsFlags(op x86asm.Op) bool {
	switch op {
	case x86asm.NOP, x86asm.PAUSE, x86asm.LFENCE, x86asm.MFENCE, x86asm.JMP, x86asm.CALL,
		x86asm.RET, x86asm.LEAVE, x86asm.POP,
		x86asm.LEA, x86asm.MOV, x86asm.MOVZX, x86asm.MOVSX, x86asm.MOVSXD:
		return true
	}
	return setsByte(op)
}

// result is what an instruction gives its register.
func (w *walk) result(in *x86asm.Inst) known {
	k := w.fresh()
	to, ok := in.Args[0].(x86asm.Reg)
	if !ok || width(to) < 32 {
		return k // the rest of the register stays
	}
	switch in.Op {
	case x86asm.MOV, x86asm.MOVZX:
		from, ok := in.Args[1].(x86asm.Reg)
		if v, is := in.Args[1].(x86asm.Imm); is {
			k.constant, k.value = true, int64(v)
		} else if ok && family(from) >= 0 && (in.Op == x86asm.MOVZX && width(from) > 0 || width(from) == width(to)) {
			return w.regs[family(from)]
		}
	case x86asm.XOR:
		k.constant = in.Args[0] == in.Args[1]
	}
	return k
}

func (w *walk) compare(in *x86asm.Inst) {
	w.flags = compared{}
	reg, ok := in.Args[0].(x86asm.Reg)
	n := register(in.Args[0])
	if !ok || n < 0 {
		return
	}
	f := compared{of: w.regs[n], width: width(reg)}
	v, imm := in.Args[1].(x86asm.Imm)
	switch {
	case in.Op == x86asm.TEST && in.Args[0] == in.Args[1]:
		f.ok = true
	case in.Op == x86asm.CMP && imm:
		f.with, f.ok = int64(v), true
	}
	// Of a constant the whole is known; a part would have to be cut out.
	f.ok = f.ok && (!f.of.constant || f.width >= 32)
	w.flags = f
}

// register is the number of an operand's register, -1 if it is none.
func register(a x86asm.Arg) int {
	if reg, ok := a.(x86asm.Reg); ok {
		return family(reg)
	}
	return -1
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

// width is how many bits of a register an operand has; negative for the second byte.
func width(r x86asm.Reg) int {
	switch {
	case r >= x86asm.RAX && r <= x86asm.R15:
		return 64
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return 32
	case r >= x86asm.AX && r <= x86asm.R15W:
		return 16
	case slices.Contains(second[:], r):
		return -8
	}
	return 8
}

var second = [...]x86asm.Reg{x86asm.AH, x86asm.CH, x86asm.DH, x86asm.BH}
