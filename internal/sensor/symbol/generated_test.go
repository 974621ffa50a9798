//go:build linux && amd64

package symbol

import (
	"os"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/whystall/whystall/internal/need"
)

// TestGenerated reads code that is in memory only, as a runtime makes it.
func TestGenerated(t *testing.T) {
	need.Linux(t)
	code, err := syscall.Mmap(-1, 0, 2*pageSize,
		syscall.PROT_READ|syscall.PROT_WRITE|syscall.PROT_EXEC, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Skip(err)
	}
	defer syscall.Munmap(code)
	// At 64 a loop around a flag, at 128 one that adds up, at 192 PAUSE before a call through a
	// register.
	look, sum := []byte{0x8b, 0x07, 0x85, 0xc0, 0x75, 0xfa}, []byte{0x03, 0x07, 0x48, 0x83, 0xc7, 0x04, 0xeb, 0xf8}
	copy(code[64:], look)
	copy(code[128:], sum)
	copy(code[192:], []byte{0xf3, 0x90, 0xff, 0xd0})
	tab, err := New(os.Getpid(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	now := time.Now()
	tab.now = func() time.Time { return now }
	begin := uint64(uintptr(unsafe.Pointer(&code[0])))
	check := func(at int, want bool) {
		t.Helper()
		fr := tab.Stack([]uint64{begin + uint64(at)}, 0, nil)
		if len(fr) != 1 || fr[0].Module != anonymous || fr[0].Waits != want {
			t.Errorf("at %d: %+v, want one frame that waits: %t", at, fr, want)
		}
	}
	check(64, true)
	check(66, true)
	check(128, false)
	check(192, true)
	check(194, true)
	check(300, false)
	if n := len(tab.generated.loops); n != 6 {
		t.Errorf("%d searches, want 6", n)
	}
	copy(code[64:], sum) // the runtime puts other code there
	now = now.Add(2 * freshCode)
	check(64, false)
}

// TestGeneratedElsewhere has code that jumps to data and back: the data is not read. Of too many
// places those that come late are not looked at.
func TestGeneratedElsewhere(t *testing.T) {
	need.Linux(t)
	all, err := syscall.Mmap(-1, 0, 2*pageSize, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(all)
	// A loop around a flag whose jump back is on the next page: mov eax,[rdi]; jmp; and there test;
	// jz.
	copy(all[pageSize-4:], []byte{0x8b, 0x07, 0xeb, 0x00})
	copy(all[pageSize:], []byte{0x85, 0xc0, 0x74, 0xf8})
	begin := uint64(uintptr(unsafe.Pointer(&all[0])))
	waits := func() (bool, *Table) {
		tab, err := New(os.Getpid(), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tab.Close() })
		now := time.Now()
		tab.now = func() time.Time { return now }
		return tab.generated.waits(tab, begin+pageSize-4), tab
	}
	if err := syscall.Mprotect(all, syscall.PROT_READ|syscall.PROT_EXEC); err != nil {
		t.Skip(err)
	}
	if is, _ := waits(); !is {
		t.Error("a loop on two pages of code is not known")
	}
	if err := syscall.Mprotect(all[pageSize:], syscall.PROT_READ|syscall.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
	is, tab := waits()
	if _, read := tab.generated.code.pages[int64(begin/pageSize)+1]; is || read {
		t.Errorf("data was read: %t, %t", is, read)
	}
	for i := range uint64(2 * mostSearches) {
		tab.generated.waits(tab, begin+i)
	}
	if n := len(tab.generated.loops); n != mostSearches {
		t.Errorf("%d searches, want %d", n, mostSearches)
	}
	tab.Close()
	if tab.generated.waits(tab, begin) || tab.generated.mem != nil {
		t.Error("memory is read after Close")
	}
}
