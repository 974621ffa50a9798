package symbol

import (
	"bytes"
	"encoding/binary"
)

// A stack that the kernel takes follows frame pointers. Code that keeps none, as in the C libraries
// of most distributions, uses that register for something else, or leaves its caller's value in it.
// Then what follows on the stack is chance, or lacks a caller. So:
//
//  1. An address with no code mapped there ends the stack. So does an address of a file with no
//     call instruction before it.
//  2. Of two frames in a row in code without frame pointers, the second is not believed.
//  3. The first frame after such code is marked Inferred: it is on the stack, but callers before it
//     may be missing.
//
// Go keeps frame pointers everywhere, and ends its stacks at an address that nothing called.

const (
	machineAMD64 = 62
	machineARM64 = 183
)

// follows reports whether a call instruction ends just before an address, so that a call can return
// there. known is false if the code cannot be read, or the machine's calls are not known.
func (im *image) follows(linked uint64) (follows, known bool) {
	at, ok := im.place(linked)
	if !ok || at < 8 {
		return false, false
	}
	b, err := im.bytes(at-8, 8)
	if err != nil {
		return false, false
	}
	switch im.machine {
	case machineAMD64:
		return callAMD64([8]byte(b)), true
	case machineARM64:
		w := binary.LittleEndian.Uint32(b[4:])
		return w&0xfc000000 == 0x94000000 || w&0xfffffc1f == 0xd63f0000 || w&0xfefff800 == 0xd63f0800, true
	}
	return false, false
}

// callAMD64 reports whether b ends with a near call: e8 with 4 bytes, or ff /2 with any operand.
func callAMD64(b [8]byte) bool {
	if b[3] == 0xe8 {
		return true
	}
	for n := 2; n <= 7; n++ { // the length of an ff /2 without prefixes
		op := b[8-n:]
		if op[0] != 0xff || op[1]>>3&7 != 2 {
			continue
		}
		mod, rm, want := op[1]>>6, op[1]&7, 2
		if mod != 3 && rm == 4 {
			want++ // SIB
		}
		switch {
		case mod == 1:
			want++
		case mod == 2, mod == 0 && rm == 5:
			want += 4
		case mod == 0 && rm == 4 && n > 2 && op[2]&7 == 5:
			want += 4
		}
		if want == n {
			return true
		}
	}
	return false
}

// framePointers reports whether the code of a module keeps frame pointers. It goes by the first
// instructions of its functions; without symbols, by how often those instructions occur.
func (t *Table) framePointers(m *module) bool {
	if m.frames == 0 {
		m.frames = -1
		if m.goTab != nil || m.im != nil && t.keepsFrames(m) {
			m.frames = 1
		}
	}
	return m.frames > 0
}

func (t *Table) keepsFrames(m *module) bool {
	// Compilers for arm64 keep them by default, and the first instructions vary.
	if m.im.machine == machineARM64 {
		return true
	}
	if m.im.machine != machineAMD64 {
		return false
	}
	t.loadFuncs(m)
	const sample, large = 200, 32
	with, of := 0, 0
	for _, f := range m.tabs {
		step := max(1, len(f.all)/(4*sample))
		for i := 0; i < len(f.all) && of < sample; i += step {
			g := f.all[i]
			if g.mark || g.size < large {
				continue
			}
			at, ok := m.im.place(f.base + uint64(g.start))
			if !ok {
				continue
			}
			if b, err := m.im.bytes(at, 24); err == nil {
				of++
				with += bytes.Count(b, enter)
			}
		}
	}
	if of >= 4 {
		return with*10 >= of*7
	}
	// Code with frame pointers has one such start in 100 to 300 bytes.
	sec, ok := m.im.named(".text")
	if !ok || sec.size < 1<<8 {
		return false
	}
	b, err := m.im.bytes(sec.off, min(sec.size, 1<<20))
	return err == nil && bytes.Count(b, enter)*600 >= len(b)
}

// enter is push %rbp; mov %rsp,%rbp.
var enter = []byte{0x55, 0x48, 0x89, 0xe5}
