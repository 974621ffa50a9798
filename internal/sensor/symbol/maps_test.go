package symbol

import (
	"reflect"
	"strings"
	"testing"
)

const mapsText = `00400000-00401000 r--p 00000000 fe:00 131 /usr/bin/x y
00401000-00405000 r-xp 00001000 fe:00 131 /usr/bin/x y
7f0000000000-7f0000002000 r-xp 00003000 103:02 77 /usr/lib/a.so (deleted)
7f0000003000-7f0000004000 rwxp 00000000 00:00 0
7f0000004000-7f0000005000 r-xp 00000000 00:01 9 /memfd:jit\012cache (deleted)
7fff00000000-7fff00002000 r-xp 00000000 00:00 0                          [vdso]
`

func TestParseMaps(t *testing.T) {
	got, err := parseMaps(strings.NewReader(mapsText))
	if err != nil {
		t.Fatal(err)
	}
	want := []mapping{
		{start: 0x401000, end: 0x405000, offset: 0x1000, dev: 0xfe << 32, inode: 131, path: "/usr/bin/x y"},
		{start: 0x7f0000000000, end: 0x7f0000002000, offset: 0x3000, dev: 0x103<<32 | 2, inode: 77,
			path: "/usr/lib/a.so", deleted: true},
		{start: 0x7f0000003000, end: 0x7f0000004000},
		{start: 0x7f0000004000, end: 0x7f0000005000, dev: 1, inode: 9, path: "/memfd:jit\ncache", deleted: true},
		{start: 0x7fff00000000, end: 0x7fff00002000, path: "[vdso]"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf(" got %+v\nwant %+v", got, want)
	}
	for _, bad := range []string{"x\n", "1-2 r-xp 0 0:0\n", "2-1 r-xp 0 0:0 0\n",
		"1-2 rwx 0 0:0 0\n", strings.Repeat("a", 9000)} {
		if got, err := parseMaps(strings.NewReader(mapsText[:strings.IndexByte(mapsText, '\n')+1] + bad)); err == nil {
			t.Errorf("%.40q: %v, want an error", bad, got)
		}
	}
}

func TestMerge(t *testing.T) {
	old := []mapping{{start: 10, end: 20, path: "a"}, {start: 30, end: 40, path: "b"}, {start: 50, end: 60, path: "c"}}
	now := []mapping{{start: 5, end: 8, path: "n"}, {start: 35, end: 55, path: "m"}}
	var names []string
	for _, m := range merge(now, old) {
		names = append(names, m.path)
	}
	if got := strings.Join(names, " "); got != "n a m" {
		t.Errorf("%q, want what was there and is not overwritten: n a m", got)
	}
}

func FuzzMaps(f *testing.F) {
	f.Add(mapsText)
	f.Fuzz(func(t *testing.T, s string) {
		all, _ := parseMaps(strings.NewReader(s))
		sp := space{maps: merge(all, all)}
		for i, m := range all {
			if m.end <= m.start || i > 0 && m.start < all[i-1].end {
				t.Fatalf("%+v after %+v", m, all[:i])
			}
			if sp.mapped(m.start) == nil || sp.mapped(m.end-1) == nil {
				t.Fatalf("%+v is not found", m)
			}
		}
	})
}

const kallsymsText = `0000000000000000 A fixed_percpu_data
0000000000001000 D per_cpu_thing
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000040 t do_one_thing
ffffffff81000100 t __pfx_schedule
ffffffff81000110 T schedule
ffffffff81000110 T schedule_alias
ffffffff81000200 D some_data
ffffffffc0000000 t nf_hook	[nf_tables]
ffffffffc0000040 t nf_last	[nf_tables]
ffffffffc0008000 t other	[other_mod]
ffffffffc0008040 d other_data	[other_mod]
`

func TestKallsyms(t *testing.T) {
	k, err := parseKallsyms(strings.NewReader(kallsymsText))
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[uint64]Frame{
		0xffffffff80ffffff: {Module: "kernel"},
		0xffffffff81000041: {Func: "do_one_thing", Module: "kernel", Offset: 1},
		0xffffffff8100011f: {Func: "schedule", Module: "kernel", Offset: 0xf},
		0xffffffff81000201: {Module: "kernel"}, // data
		0xffffffffc0000041: {Func: "nf_last", Module: "nf_tables", Offset: 1},
		0xffffffffc0007000: {Module: "kernel"}, // between two modules
		0xffffffffc0008001: {Func: "other", Module: "other_mod", Offset: 1},
		0xffffffffffffffff: {Module: "kernel"},
		0x1000:             {Module: "kernel"},
	} {
		want.Addr = addr
		if got := k.Lookup(addr); got != want {
			t.Errorf("%#x: %+v, want %+v", addr, got, want)
		}
	}
	// The call that returns to a function's first byte was in the one before.
	got := k.Stack([]uint64{0xffffffff81000110, 0xffffffff81000110}, nil)
	if got[0].Func != "schedule" || got[1].Func != "__pfx_schedule" ||
		got[1].Addr != 0xffffffff81000110 || got[1].Offset != 0x10 {
		t.Errorf("%+v", got)
	}
	if _, err := parseKallsyms(strings.NewReader("0000000000000000 T a\n0000000000000000 T b\n")); err != errHidden {
		t.Errorf("all addresses 0: %v, want %v", err, errHidden)
	}
	if fr := (*KernelTable)(nil).Lookup(5); fr.Module != "kernel" || fr.Addr != 5 {
		t.Errorf("no table: %+v", fr)
	}
}

func FuzzKallsyms(f *testing.F) {
	f.Add(kallsymsText, uint64(0xffffffff81000041))
	f.Fuzz(func(t *testing.T, s string, addr uint64) {
		k, err := parseKallsyms(strings.NewReader(s))
		if err != nil {
			return
		}
		fr := k.Lookup(addr)
		if fr.Func != "" && fr.Offset >= maxKernelFunction {
			t.Errorf("%+v", fr)
		}
		k.Stack([]uint64{addr, 0, addr}, nil)
	})
}

func TestSchedOf(t *testing.T) {
	for _, c := range []struct {
		version, arch string
		stop          uint64
	}{
		{"go1.13.15", "amd64", 256}, {"go1.26.8", "amd64", 272}, {"go1.26.8", "arm64", 272},
		{"go1.2", "amd64", 0}, {"go1.130", "amd64", 0},
		{"go1.25.5 X:nodwarf5", "amd64", 256}, {"go1.25.5 X:staticlockranking", "amd64", 0},
		{"go1.24", "amd64", 240}, {"go1.99.1", "amd64", 0},
		{"devel +abc", "amd64", 0}, {"go1.26.8", "386", 0}, {"go1.26rc1", "amd64", 272}, {"", "", 0},
	} {
		o, err := schedOf(c.version, c.arch)
		if o.stop != c.stop || (err == nil) != (c.stop != 0) {
			t.Errorf("%s %s: %+v, %v; want stopnote at %d", c.version, c.arch, o, err, c.stop)
		}
	}
}

func TestReadable(t *testing.T) {
	for in, want := range map[string]string{
		"_ZN4deep6crunchEl": "deep::crunch",
		"_RNvC6_123foo3bar": "123foo::bar",
		"read":              "read",
		"_start":            "_start",
		"_Zbroken":          "_Zbroken",
		"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE": "core::fmt::Write::write_fmt",
		"_Z" + strings.Repeat("N", 3000):                   "_Z" + strings.Repeat("N", 3000),
	} {
		if got := readable(in); got != want {
			t.Errorf("%.60s: %.80q, want %.80q", in, got, want)
		}
	}
}

func FuzzReadable(f *testing.F) {
	f.Add("_ZN4deep6crunchEl")
	f.Add("_RNvC6_123foo3bar")
	f.Fuzz(func(t *testing.T, s string) {
		if out := readable(s); len(out) > max(len(s), 4<<10) {
			t.Errorf("%d bytes become %d", len(s), len(out))
		}
	})
}
