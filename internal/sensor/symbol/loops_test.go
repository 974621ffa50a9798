package symbol

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

// Loops as compilers write them, with where a sample may meet them.
var loopCases = []struct {
	name, code string
	at         []int
	waits      bool
}{
	{"look with PAUSE", "f390 8b07 85c0 75f8", []int{0, 2, 4, 6}, true},
	{"look without PAUSE", "8b07 85c0 75fa", []int{0, 2, 4}, true},
	{"compare with memory", "833f00 74fb", []int{0, 3}, true},
	{"exchange", "b801000000 8707 85c0 75f5", []int{0, 5, 7, 9}, true},
	{"exchange of a byte", "89d0 8607 84c0 75f8", []int{0, 2, 6}, true},
	{"compare and exchange", "31c0 f00fb117 75f8", []int{0, 2, 6}, true},
	{"a pointer that is read each time", "488b4708 8b00 85c0 74f6", []int{0, 4, 6, 8}, true},
	{"a ticket", "8b07 29c8 85c0 75f8", []int{0, 2, 4}, true},
	{"PAUSE so many times", "f390 ffc9 75fa", []int{0, 2, 4}, true},
	{"PAUSE in a block behind the return", "b001 8607 84c0 7503 c39090 f390 ebf1", []int{2, 6, 11, 13}, true},
	{"a call of what is not known", "f390 e800100000 ebf7", []int{0, 2}, false},
	// mov rdi,rbx; call; test al,al; je back; ret. The function: cmpxchg; sete; ret.
	{"a call that tries to set a flag",
		"4889df e805000000 84c0 74f4 c3 31c0 ba01000000 f00fb117 0f94c0 c3", []int{0, 3, 8, 10}, true},
	// The function: push rbp; mov rbp,rsp; sub rsp,16; mov [rbp-8],rdi; two reads; leave; ret
	{"a call with a frame that looks",
		"f30f1efa e805000000 85c0 74f3 c3 55 4889e5 4883ec10 48897df8 488b45f8 8b00 c9 c3", []int{0, 4, 9}, true},
	{"a call that counts in memory", "e805000000 85c0 74f7 c3 8b07 83c001 8907 c3", []int{0, 5}, false},
	// next: mov rax,[rdi]; test rax,rax; je ret; mov rdx,[rax]; mov [rdi],rdx; ret
	{"an iterator whose function stores",
		"4889df e809000000 4885c0 7502 c3 90 ebef 488b07 4885c0 7406 488b10 488917 c3", []int{0, 3, 8}, false},
	{"twice at most: a flag says so", "8b07 83f801 7401 c3 4885c9 7507 b901000000 ebec c3", []int{0, 2, 8}, false},
	{"a counter in the frame", "8b45fc 83c001 8945fc 8b07 85c0 74f1", []int{0, 3, 9}, false},
	{"a call that walks a list", "e805000000 85c0 74f7 c3 488b3f 8b07 c3", []int{0, 5}, false},
	{"add by compare and exchange", "8b07 8d4801 f00fb10f 75f5", []int{0, 5, 9}, false},
	{"atomic counter", "f0ff07 ffc9 75f9", []int{0, 3}, false},
	{"sum of an array", "03048e 48ffc1 4839d1 75f5", []int{0, 3, 6}, false},
	{"length of a string", "803c0700 7405 48ffc0 ebf5", []int{0, 4, 6}, false},
	{"list", "488b00 4885c0 75f8", []int{0, 3}, false},
	{"so many times", "8b07 ffc9 75fa", []int{0, 2}, false},
	{"store", "8907 85c0 75fa", []int{0, 2}, false},
	{"hash in a register", "69c001010101 83f807 75f5", []int{0, 6}, false},
	{"no loop", "8b07 85c0 7500 c3", []int{0, 2, 4}, false},
	{"for ever", "ebfe", []int{0}, false},
}

const codeBase = 1 << 20

// coderOf is code at codeBase.
func coderOf(code []byte) coder {
	return func(linked uint64, b []byte) int {
		if linked < codeBase || linked-codeBase >= uint64(len(code)) {
			return 0
		}
		return copy(b, code[linked-codeBase:])
	}
}

// A sample in a function that only looks: the loop is in its caller.
func TestWaitsInCallee(t *testing.T) {
	// mov rdi,rbx; call; test al; je back; ret; then at 13: mov eax,[rdi]; test; sete al; ret.
	// At 21 somebody calls all that.
	code, err := hex.DecodeString("4889dfe80500000084c074f4c38b0785c00f94c0c3e8e6ffffff")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at          uint64
		callers     []uint64
		waits, left bool
	}{
		{13, nil, false, true},
		{15, []uint64{codeBase + 8}, true, false},
		{17, []uint64{codeBase + 12}, false, true}, // it returns to the caller's end, and out of it
	} {
		waits, left := waitsAt(coderOf(code), codeBase+c.at, c.callers)
		if waits != c.waits || !waits && left != c.left {
			t.Errorf("at %d, callers %#x: waits %t, left %t", c.at, c.callers, waits, left)
		}
	}
	im := &image{r: bytes.NewReader(code), size: int64(len(code)), machine: machineAMD64,
		segments: []segment{{kind: segLoad, flags: segExec, vaddr: codeBase, in: uint64(len(code)),
			mem: uint64(len(code))}}}
	// With all searches used up, the caller's caller on the stack says in which function to look.
	full := *im
	full.called = make([]called, maxSearches)
	if full.waits(codeBase+13, nil) {
		t.Error("the file was searched without limit")
	}
	if !full.waits(codeBase+13, []uint64{codeBase + uint64(len(code))}) {
		t.Error("the function that the stack shows next was not searched")
	}
	for at, want := range map[uint64]bool{3: true, 13: true, 17: true, 12: false} {
		if got := im.waits(codeBase+at, nil); got != want {
			t.Errorf("at %d by the file alone: %t, want %t", at, got, want)
		}
	}
	if got := im.waits(codeBase+15, []uint64{codeBase + 8}); !got {
		t.Error("a caller on the stack is not believed")
	}
}

func TestWaits(t *testing.T) {
	for _, c := range loopCases {
		code, err := hex.DecodeString(strings.ReplaceAll(c.code, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range c.at {
			// What stands around it must not matter.
			around := append([]byte{0x0f, 0x05, 0xc3}, code...)
			around = append(around, 0xc3, 0x90, 0x90)
			if got, _ := waitsAt(coderOf(around), uint64(codeBase+3+at), nil); got != c.waits {
				t.Errorf("%s, at %d: waits is %t, want %t", c.name, at, got, c.waits)
			}
		}
	}
}

// A function that only pauses is called through a pointer, so that its loop is not known.
func TestPauses(t *testing.T) {
	// push rbp; mov rbp,rsp; PAUSE; pop rbp; ret. Then: mov eax,0x90f3; add; ret.
	code, err := hex.DecodeString("554889e5f3905dc3b8f390000001c8c3")
	if err != nil {
		t.Fatal(err)
	}
	im := &image{r: bytes.NewReader(code), size: int64(len(code)), machine: machineAMD64,
		segments: []segment{{kind: segLoad, flags: segExec, vaddr: codeBase, in: uint64(len(code)),
			mem: uint64(len(code))}}}
	for at, want := range map[int]bool{0: false, 4: true, 6: true, 7: false, 8: false, 13: false, 15: false} {
		if got := im.waits(codeBase+uint64(at), nil); got != want {
			t.Errorf("at %d: %t, want %t", at, got, want)
		}
	}
}

// The end of an instruction and a NOP, which pads a loop, have the bytes of PAUSE.
func TestPausesNot(t *testing.T) {
	for _, c := range []struct {
		name, code string
		want       bool
	}{
		// mov rax,[rdi+8]; xor ecx,ecx; mov edx,0x10; add ebx,esi; NOP; here add rax,[rdi]...
		{"add and a NOP", "488b470831c9ba10000000" + "01f3" + "90" + "480307", false},
		// test rsi,rsi; jle; lea rcx,[rdi+rsi*8]; xor eax,eax; and ebx,esi; NOP; here...
		{"and and a NOP", "4885f67e12488d0cf731c0" + "21f3" + "90" + "480307", false},
		// mov rax,[rdi+8]; xor ecx,ecx; mov edx,0x10; test eax,eax; PAUSE; here mov eax,[rdi]
		{"PAUSE", "488b470831c9ba1000000085c0" + "f390" + "8b07", true},
		// cmp eax,edx; je; nop dword [rax]; PAUSE; here jmp
		{"PAUSE after padding", "4889c839d07410" + "0f1f00" + "f390" + "ebf9", true},
	} {
		code, err := hex.DecodeString(c.code)
		if err != nil {
			t.Fatal(err)
		}
		at := strings.Index(string(code), "\xf3\x90") + 2
		read := func(addr uint64, b []byte) int {
			if addr < codeBase || addr-codeBase >= uint64(len(code)) {
				return 0
			}
			return copy(b, code[addr-codeBase:])
		}
		if got := pauses(read, codeBase+uint64(at)); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

func FuzzWaits(f *testing.F) {
	for _, c := range loopCases {
		code, _ := hex.DecodeString(strings.ReplaceAll(c.code, " ", ""))
		f.Add(code, uint16(0))
	}
	f.Fuzz(func(t *testing.T, code []byte, at uint16) {
		if len(code) > 0 {
			waitsAt(coderOf(code), codeBase+uint64(int(at)%len(code)), []uint64{codeBase, codeBase + uint64(at)})
		}
	})
}
