package symbol

import "golang.org/x/arch/x86/x86asm"

// pauses reports whether the instruction at an address is PAUSE, or the one behind it, where a
// sample finds a CPU that pauses.
func pauses(code coder, at uint64) bool {
	var b [4]byte
	if at < pauseStarts || code(at-2, b[:]) < len(b) {
		return false
	}
	pause := [2]byte{0xf3, 0x90}
	return [2]byte(b[2:]) == pause || [2]byte(b[:2]) == pause && inStep(code, at-2)
}

// pauseStarts is from how many bytes before an address on it is read what comes before it.
const pauseStarts = 24

// inStep reports whether an instruction starts at an address: f3 90 may be the end of one and a
// NOP, as ADD EBX,ESI and the padding before a loop. Instructions are not read backwards. But read
// from anywhere before, most ways fall in step with the program soon.
func inStep(code coder, at uint64) bool {
	l := loop{code: code}
	in, out := 0, 0
	for from := at - min(at, pauseStarts); from < at; from++ {
		a, ok := from, true
		for a < at && ok {
			var x x86asm.Inst
			x, ok = l.decode(a)
			a += uint64(x.Len)
		}
		switch {
		case a == at:
			in++
		case ok:
			out++
		}
	}
	return in >= out
}
