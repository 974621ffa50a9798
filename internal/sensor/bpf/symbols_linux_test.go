package bpf

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/need"
)

// What the kernel prints, by lib/vsprintf.c and kernel/kallsyms.c.
func TestParseSymbol(t *testing.T) {
	for text, want := range map[string]Symbol{
		"futex_wait+0x65/0x120":                                       {"futex_wait", "kernel", 0x65},
		"nf_hook_slow+0x2/0x40 [nf_tables]":                           {"nf_hook_slow", "nf_tables", 2},
		"ext4_sync_file+0x1a/0x3b0 [ext4 0123456789abcdef0123456789]": {"ext4_sync_file", "ext4", 0x1a},
		"0xffffc90000a1f2c0":                                          {"", "kernel", 0},
		"a_name_that_was_cut_off":                                     {"", "kernel", 0},
		"":                                                            {"", "kernel", 0},
		"f+0x/0x1":                                                    {"", "kernel", 0},
	} {
		if got := parseSymbol(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

// The kernel's answers are those of its table.
func TestSymbols(t *testing.T) {
	need.Kernel(t, "bpf")
	types, spec, err := readObject()
	if err != nil {
		t.Fatal(err)
	}
	s, err := openSymbols(spec, types)
	if err != nil {
		t.Skip("Linux before 5.16: ", err)
	}
	defer s.close()
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var addrs []uint64
	var names []string
	for l := bufio.NewScanner(f); l.Scan() && len(addrs) < 150; {
		w := strings.Fields(l.Text())
		addr, _ := strconv.ParseUint(w[0], 16, 64)
		if addr != 0 && len(w) == 3 && w[1] == "T" && strings.HasPrefix(w[2], "__x64_sys_") {
			addrs, names = append(addrs, addr+1), append(names, w[2])
		}
	}
	if len(addrs) == 0 {
		t.Skip("addresses are hidden")
	}
	got, err := s.Names(addrs, nil)
	if err != nil || len(got) != len(addrs) {
		t.Fatalf("%d names of %d: %v", len(got), len(addrs), err)
	}
	others := 0
	for i, g := range got {
		if g.Module != "kernel" || g.Offset != 1 {
			t.Errorf("%s: %+v", names[i], g)
		}
		if g.Func != names[i] {
			others++ // calls that are not built in share one address
		}
	}
	if others > len(got)/2 {
		t.Errorf("%d of %d names are others", others, len(got))
	}
	if addr, err := s.address(names[0]); err != nil || addr != addrs[0]-1 {
		t.Errorf("%s is at %x, want %x: %v", names[0], addr, addrs[0]-1, err)
	}
	if addr, err := s.address("no_such_function_here"); err != nil || addr != 0 {
		t.Errorf("found what is not there: %x, %v", addr, err)
	}
}
