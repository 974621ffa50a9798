package symbol

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxKernelSymbols = 1 << 20
	maxKernelNames   = 64 << 20

	// kallsyms has no sizes: a function lasts until the next symbol. The last of a module, or of
	// the kernel's text, is followed by a gap.
	maxKernelFunction = 64 << 10
)

// KernelTable has the kernel's functions by address.
type KernelTable struct {
	all     []kernelSymbol
	names   []byte
	modules []string
}

type kernelSymbol struct {
	addr   uint64
	name   uint32
	length uint16
	module uint16 // 0 the kernel itself
	code   bool
}

// Kernel reads /proc/kallsyms below root; "" is this machine's. If the addresses are hidden, the
// error says what would show them.
func Kernel(root string) (*KernelTable, error) {
	name := filepath.Join(root, "/proc/kallsyms")
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	k, err := parseKallsyms(f)
	if errors.Is(err, errHidden) {
		restrict := ""
		if b, err := os.ReadFile(filepath.Join(root, "/proc/sys/kernel/kptr_restrict")); err == nil {
			restrict = " (kernel.kptr_restrict is " + strings.TrimSpace(string(b)) + ")"
		}
		return nil, fmt.Errorf("read %s: not permitted: addresses are hidden%s: needs CAP_SYSLOG and kernel.kptr_restrict at most 1, or kernel.kptr_restrict 0 with kernel.perf_event_paranoid at most 1", name, restrict)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return k, nil
}

var errHidden = errors.New("addresses are hidden")

// parseKallsyms reads lines "ffffffff81000000 T _stext" and, of modules, "... t
// nf_hook\t[nf_tables]".
func parseKallsyms(r io.Reader) (*KernelTable, error) {
	k := &KernelTable{modules: []string{"kernel"}}
	module := map[string]uint16{}
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), 64<<10)
	lines, shown := 0, false
	for s.Scan() {
		lines++
		f, ok := kallsymsFields(s.Bytes())
		if !ok {
			return nil, fmt.Errorf("line %d: want an address, a kind and a name", lines)
		}
		addr, err := parseHex(f[0])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", lines, err)
		}
		if addr == 0 {
			continue
		}
		shown = true
		kind := f[1][0] | 0x20
		// Per-CPU offsets and absolute numbers lie below the kernel's half.
		if addr>>63 == 0 || kind == 'a' || kind == 'u' {
			continue
		}
		if len(k.all) == maxKernelSymbols || len(k.names) > maxKernelNames {
			return nil, fmt.Errorf("line %d: over %d symbols", lines, maxKernelSymbols)
		}
		sym := kernelSymbol{addr: addr, code: kind == 't' || kind == 'w'}
		if len(f[3]) > 0 {
			name := strings.Trim(string(f[3]), "[]")
			id, ok := module[name]
			if !ok && len(k.modules) < 1<<16-1 {
				id = uint16(len(k.modules))
				module[name] = id
				k.modules = append(k.modules, name)
			}
			sym.module = id
		}
		// Of a data symbol only the address matters: it ends a function.
		if sym.code {
			name := f[2][:min(len(f[2]), maxName)]
			sym.name, sym.length = uint32(len(k.names)), uint16(len(name))
			k.names = append(k.names, name...)
		}
		k.all = append(k.all, sym)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", lines+1, err)
	}
	if lines > 0 && !shown {
		return nil, errHidden
	}
	// The kernel's own symbols come in order, those of modules do not.
	slices.SortStableFunc(k.all, func(a, b kernelSymbol) int {
		switch {
		case a.addr < b.addr:
			return -1
		case a.addr > b.addr:
			return 1
		}
		return 0
	})
	k.all, k.names = slices.Clip(k.all), slices.Clip(k.names)
	return k, nil
}

// kallsymsFields splits a line at spaces and tabs; the fourth field is empty if the symbol is the
// kernel's own. There are some 200 000 lines, read while a recording starts.
func kallsymsFields(line []byte) (f [4][]byte, ok bool) {
	for i := range f {
		for len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
			line = line[1:]
		}
		n := 0
		for n < len(line) && line[n] != ' ' && line[n] != '\t' {
			n++
		}
		f[i], line = line[:n], line[n:]
	}
	return f, len(f[1]) == 1 && len(f[2]) > 0
}

func parseHex(b []byte) (v uint64, err error) {
	if len(b) == 0 || len(b) > 16 {
		return 0, fmt.Errorf("%.20q is not an address", b)
	}
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, fmt.Errorf("%.20q is not an address", b)
		}
		v = v<<4 | uint64(c)
	}
	return v, nil
}

// Lookup finds the kernel's function that has the address. A nil table gives the address alone.
func (k *KernelTable) Lookup(addr uint64) Frame {
	if k == nil {
		return Frame{Addr: addr, Module: "kernel"}
	}
	i, _ := slices.BinarySearchFunc(k.all, addr, func(s kernelSymbol, addr uint64) int {
		if s.addr <= addr {
			return -1
		}
		return 1
	})
	if i == 0 || i == len(k.all) {
		return Frame{Addr: addr, Module: "kernel"}
	}
	last := k.all[i-1]
	fr := Frame{Addr: addr, Module: k.modules[last.module]}
	if addr-last.addr >= maxKernelFunction || last.module != k.all[i].module && addr-last.addr >= maxAsm {
		return Frame{Addr: addr, Module: "kernel"}
	}
	// Of the names at one address the first function's is taken: the table lists aliases after it.
	for ; i > 0 && k.all[i-1].addr == last.addr; i-- {
		if s := k.all[i-1]; s.code {
			fr.Func = string(k.names[s.name : s.name+uint32(s.length)])
			fr.Module = k.modules[s.module]
		}
	}
	fr.Offset = addr - last.addr
	if fr.Func == "" {
		return Frame{Addr: addr, Module: "kernel"}
	}
	return fr
}

// Stack appends the frames of a stack, innermost first. All addresses but the first are where a
// call returns to, so the call before them is looked up.
func (k *KernelTable) Stack(pcs []uint64, dst []Frame) []Frame {
	for i, pc := range pcs {
		fr := k.Lookup(pc - min(uint64(i), 1))
		fr.Addr = pc
		if i > 0 && fr.Func != "" {
			fr.Offset++
		}
		dst = append(dst, fr)
	}
	return dst
}
