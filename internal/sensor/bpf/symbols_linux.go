package bpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Symbols asks the kernel for names of its functions, from Linux 5.16 on. Reading /proc/kallsyms
// takes a tenth of a second of CPU, which was most of the cost of starting a recording, and a
// recording needs some hundred addresses. Its methods are for one goroutine.
type Symbols struct {
	c     *ebpf.Collection
	names *ebpf.Program
	find  *ebpf.Program
	view  []byte // of the map: entries of symbolSize
}

const (
	symbolSize = 256 // bytes of an entry: the address, and text that ends with 0; c/symbols.h has the other side
	symbolsAt  = 64  // entries
)

func openSymbols(spec *ebpf.CollectionSpec, types *kernelTypes) (*Symbols, error) {
	c, err := alone(spec, types, whystallProgSymbolNames, whystallProgSymbolAddress)
	if err != nil {
		return nil, err
	}
	page := os.Getpagesize()
	view, err := unix.Mmap(c.Maps[whystallMapSymbols].FD(), 0,
		(symbolsAt*symbolSize+page-1)&^(page-1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("map names of symbols: %w", err)
	}
	return &Symbols{c: c, names: c.Programs[whystallProgSymbolNames],
		find: c.Programs[whystallProgSymbolAddress], view: view}, nil
}

// errHidden means that the kernel shows this user no addresses.
var errHidden = errors.New("addresses are hidden")

// address finds a function by its name; 0: there is none.
func (s *Symbols) address(name string) (uint64, error) {
	if len(name) > symbolSize-9 {
		return 0, nil
	}
	clear(s.view[:symbolSize])
	copy(s.view[8:], name)
	ret, err := s.find.Run(nil)
	switch {
	case err != nil:
		return 0, fmt.Errorf("find the kernel's %s: %w", name, err)
	case int32(ret) == -int32(unix.EPERM):
		return 0, errHidden
	case ret != 0:
		return 0, nil
	}
	return binary.NativeEndian.Uint64(s.view), nil
}

// addresses finds functions by name; hidden reports that the kernel shows this user no addresses.
func (s *Symbols) addresses(names map[string]string) (found map[string]uint64, hidden bool, err error) {
	found = map[string]uint64{}
	for name := range names {
		addr, err := s.address(name)
		if err == errHidden {
			return found, true, nil
		}
		if err != nil {
			return found, false, err
		}
		if addr != 0 {
			found[name] = addr
		}
	}
	return found, false, nil
}

// Symbol is the place of an address in the kernel's code. Func is "" if no function is known there.
type Symbol struct {
	Func, Module string // Module "kernel" for the kernel itself
	Offset       uint64
}

// Names appends a Symbol for each address.
func (s *Symbols) Names(addrs []uint64, dst []Symbol) ([]Symbol, error) {
	for len(addrs) > 0 {
		n := min(len(addrs), symbolsAt)
		for i := range symbolsAt {
			at := s.view[i*symbolSize:]
			var a uint64
			if i < n {
				a = addrs[i]
			}
			binary.NativeEndian.PutUint64(at, a)
			at[8] = 0
		}
		if _, err := s.names.Run(nil); err != nil {
			return dst, fmt.Errorf("name the kernel's functions: %w", err)
		}
		for i := range n {
			text := s.view[i*symbolSize+8 : (i+1)*symbolSize]
			if end := bytes.IndexByte(text, 0); end >= 0 {
				text = text[:end]
			}
			dst = append(dst, parseSymbol(string(text)))
		}
		addrs = addrs[n:]
	}
	return dst, nil
}

// parseSymbol reads what the kernel prints: "futex_wait+0x65/0x120", "nf_hook+0x2/0x40 [nf_tables]"
// in a module, and "0xffffc90000a1f2c0" where it knows no function.
func parseSymbol(text string) Symbol {
	text, module, ok := strings.Cut(text, " ")
	name, at, ok2 := strings.Cut(text, "+0x")
	if !ok2 || name == "" {
		return Symbol{Module: "kernel"}
	}
	at, _, _ = strings.Cut(at, "/")
	offset, err := strconv.ParseUint(at, 16, 64)
	if err != nil {
		return Symbol{Module: "kernel"}
	}
	s := Symbol{Func: name, Module: "kernel", Offset: offset}
	// The id of the module's build may follow its name.
	if module, _, _ = strings.Cut(module, " "); ok && len(module) > 2 {
		s.Module = strings.Trim(module, "[]")
	}
	return s
}

func (s *Symbols) close() {
	if s != nil {
		unix.Munmap(s.view)
		s.c.Close()
	}
}
