package symbol

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/need"
)

const (
	fnKind, noKind, objKind     = 2, 0, 1
	localBind, globalBind, weak = 0, 1, 2
)

func TestFuncs(t *testing.T) {
	syms := []symDef{
		{"outer", 0x401000, 0x100, fnKind, globalBind, false},
		{"inner", 0x401040, 0x10, fnKind, localBind, false},
		{"__read", 0x401100, 0x20, fnKind, globalBind, false},
		{"read", 0x401100, 0x20, fnKind, weak, false},
		{"__GI___read", 0x401100, 0x20, fnKind, localBind, false},
		{"memcpy@@GLIBC_2.14", 0x401140, 0x20, fnKind, globalBind, false},
		{"asm_sized_by_next", 0x401200, 0, fnKind, globalBind, false},
		{"a_label", 0x401220, 0, noKind, localBind, false},
		{"after", 0x401280, 0x10, fnKind, globalBind, false},
		{"asm_last", 0x401400, 0, fnKind, globalBind, false},
		{"data", 0x401300, 0x40, objKind, globalBind, false},
		{"elsewhere", 0x401310, 0x10, fnKind, globalBind, true},
		{"far", 0x909000, 0x10, fnKind, globalBind, false},
		{"_ZN4deep6crunchEl", 0x401500, 0x40, fnKind, globalBind, false},
	}
	im, err := openELF(buildELF(syms, false, nil))
	if err != nil {
		t.Fatal(err)
	}
	if want := "6161616162626262636363636464646465656565"; im.buildID != want {
		t.Errorf("build id %q, want %q", im.buildID, want)
	}
	f, err := readFuncs(im, ".symtab")
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[uint64]string{
		0x400fff: "",
		0x401000: "outer",
		0x40103f: "outer",
		0x401040: "inner",
		0x40104f: "inner",
		0x401050: "outer", // a function within a function has ended
		0x4010ff: "outer",
		0x401100: "read", // of its names the one for people
		0x40111f: "read",
		0x401120: "", // st_size is honoured
		0x40113f: "",
		0x401140: "memcpy",
		0x401200: "asm_sized_by_next",
		0x40121f: "asm_sized_by_next",
		0x401220: "", // what follows a label is not known
		0x401280: "after",
		0x401290: "",
		0x401310: "", // undefined here
		0x401400: "asm_last",
		0x401500: "_ZN4deep6crunchEl",
		0x402000: "",
	} {
		if got := f.find(addr); got != want {
			t.Errorf("%#x is %q, want %q", addr, got, want)
		}
	}

	// Of a table that lacks local functions nobody knows where one without a size ends.
	im, _ = openELF(buildELF(syms[6:9], true, nil))
	f, err = readFuncs(im, ".dynsym")
	if err != nil {
		t.Fatal(err)
	}
	if got := f.find(0x401200); got != "" {
		t.Errorf("a function without a size, local ones stripped: %q, want none", got)
	}
	if got := f.find(0x401280); got != "after" {
		t.Errorf("its neighbour: %q", got)
	}
}

// TestFuncsAgree compares with debug/elf on what libraries are installed.
func TestFuncsAgree(t *testing.T) {
	var files []string
	for _, dir := range []string{"/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib64", "/lib64"} {
		for _, name := range []string{"libc.so.6", "libstdc++.so.6", "libpthread.so.0", "libcrypto.so.3"} {
			if p, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil && !slices.Contains(files, p) {
				files = append(files, p)
			}
		}
	}
	if len(files) == 0 {
		need.Missing(t, "libc", "no C library in the usual folders")
	}
	for _, name := range files {
		ours, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer ours.Close()
		st, _ := ours.Stat()
		im, err := readELF(ours, st.Size())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := readFuncs(im, ".dynsym")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		theirs, err := elf.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer theirs.Close()
		syms, err := theirs.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		at := map[uint64][]elf.Symbol{}
		for _, s := range syms {
			if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF && s.Size > 0 {
				at[s.Value] = append(at[s.Value], s)
			}
		}
		checked := 0
		for addr, all := range at {
			for _, pc := range []uint64{addr, addr + all[0].Size - 1} {
				name := got.find(pc)
				covers := slices.ContainsFunc(syms, func(s elf.Symbol) bool {
					return s.Name == name && elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value <= pc && pc < s.Value+s.Size
				})
				if !covers {
					t.Errorf("%s: %#x is %q, debug/elf has %v", ours.Name(), pc, name, all)
				}
				checked++
			}
			if checked > 400 {
				break
			}
		}
		if checked == 0 {
			t.Errorf("%s: debug/elf has no functions", name)
		}
	}
}

func TestPclntab(t *testing.T) {
	funcs := []goDef{{"runtime.text", textAt}, {"main.main", textAt + 0x40}, {"main.(*T).method[...]", textAt + 0x80}}
	for _, magic := range []uint32{go12, go116, go118, go120} {
		im, err := openELF(buildELF(nil, false,
			map[string][]byte{".gopclntab": buildPclntab(magic, funcs, textAt+0xc0)}))
		if err != nil {
			t.Fatal(err)
		}
		tab, err := readPclntab(im)
		if err != nil {
			t.Errorf("%#x: %v", magic, err)
			continue
		}
		for addr, want := range map[uint64]string{
			textAt - 1: "", textAt: "runtime.text", textAt + 0x3f: "runtime.text", textAt + 0x40: "main.main",
			textAt + 0x7f: "main.main", textAt + 0xbf: "main.(*T).method[...]", textAt + 0xc0: "",
		} {
			if got := strings.Join(tab.frames(addr, nil), " < "); got != want {
				t.Errorf("%#x: %#x is %q, want %q", magic, addr, got, want)
			}
		}
	}
	if _, err := readPclntab(&image{}); err != errNoTable {
		t.Errorf("no section: %v", err)
	}
}

func TestCallAMD64(t *testing.T) {
	for _, c := range []struct {
		code string
		want bool
	}{
		{"\x90\x90\x90\xe8\x01\x02\x03\x04", true},     // call rel32
		{"\x90\x90\x90\x90\x90\x90\xff\xd0", true},     // call *%rax
		{"\x90\x90\x90\x90\x90\x41\xff\xd4", true},     // call *%r12
		{"\x90\x90\xff\x15\x01\x02\x03\x04", true},     // call *0x(%rip)
		{"\x90\x90\x90\x90\x90\xff\x50\x18", true},     // call *0x18(%rax)
		{"\x90\x90\xff\x90\x00\x01\x00\x00", true},     // call *0x100(%rax)
		{"\x90\x90\x90\x90\x90\xff\x14\xc8", true},     // call *(%rax,%rcx,8)
		{"\x90\x90\x90\x90\xff\x54\x24\x08", true},     // call *8(%rsp)
		{"\x90\xff\x94\x24\x00\x01\x00\x00", true},     // call *0x100(%rsp)
		{"\x90\xff\x14\x25\x00\x01\x00\x00", true},     // call *0x100
		{"\x90\x90\x90\xe9\x01\x02\x03\x04", false},    // jmp
		{"\x90\x90\x90\x90\x90\x90\xff\xe0", false},    // jmp *%rax
		{"\x90\x90\x90\x90\x90\x90\x90\x90", false},    // nothing
		{"\x90\x90\x90\x90\x90\x90\x0f\x05", false},    // syscall
		{"\x00\x00\x00\x00\x00\x00\xff\x15", false},    // cut
		{string(bytes.Repeat([]byte{0xff}, 8)), false}, // no instruction
		{"\x90\x90\x90\x90\x90\x55\x48\x89", false},    //
		{"\x90\x90\x90\x90\xff\x14\x24\x90", false}, {"\xff\xd0\x90\x90\x90\x90\x90\x90", false},
	} {
		if got := callAMD64([8]byte([]byte(c.code))); got != c.want {
			t.Errorf("% x: %v, want %v", c.code, got, c.want)
		}
	}
}

// FuzzELF reads whatever it is given as a program, by every reader of this package.
func FuzzELF(f *testing.F) {
	syms := []symDef{{"f", 0x401000, 0x100, fnKind, globalBind, false},
		{"runtime.sched", 0x402000, 8, objKind, localBind, false}}
	f.Add(buildELF(syms, false, nil), uint64(0x401010))
	f.Add(buildELF(syms, true, nil), uint64(0x401010))
	for _, magic := range []uint32{go12, go116, go118, go120} {
		f.Add(buildELF(syms, false, map[string][]byte{
			".gopclntab": buildPclntab(magic,
				[]goDef{{"main.main", textAt}, {"main.f", textAt + 0x40}}, textAt+0x80),
			".go.module": make([]byte, 512), ".rela.dyn": make([]byte, 480),
		}), uint64(textAt+0x41))
	}
	f.Add(cfiELF(), uint64(textAt+4))
	f.Fuzz(func(t *testing.T, b []byte, addr uint64) {
		im, err := openELF(b)
		if err != nil {
			return
		}
		im.address(addr)
		im.place(addr)
		im.follows(addr)
		im.cfi(addr)
		for _, table := range []string{".symtab", ".dynsym"} {
			if tab, err := readFuncs(im, table); err == nil && tab != nil {
				for i := range uint64(8) {
					readable(tab.find(addr + i*7))
				}
			}
		}
		if tab, err := readPclntab(im); err == nil {
			for i := range uint64(8) {
				tab.frames(addr+i*7, nil)
			}
			tab.frames(tab.first, nil)
		}
		findObject(im, "runtime.sched")
		readBuildInfo(im)
		m := &module{im: im, ready: true, named: true}
		(&Table{}).keepsFrames(m)
	})
}
