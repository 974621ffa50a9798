package symbol

import (
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
	{"sched_yield is called", "f390 e800000000 ebf7", []int{0, 2}, false},
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
			if got := waitsAt(around, 3+at); got != c.waits {
				t.Errorf("%s, at %d: waits is %t, want %t", c.name, at, got, c.waits)
			}
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
			waitsAt(code[:min(len(code), 2*loopReach)], int(at)%len(code))
		}
	})
}
