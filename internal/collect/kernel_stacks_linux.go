package collect

import (
	"hash/maphash"
	"runtime"
	"slices"
	"unsafe"

	"github.com/whystall/whystall/internal/sensor/bpf"
	"github.com/whystall/whystall/internal/sensor/symbol"
)

// maxBPFStacks bounds the different stacks; beyond it records have none. A program that generates
// code as it runs has ever new ones.
const maxBPFStacks = 1 << 18

// stackID is a stack's number in the stream, and whether its frames have come: another CPU's ring
// may refer to it first.
type stackID struct {
	id      uint32
	defined bool
}

// stack returns a stack's number in the stream, 0 if there are too many.
func (s *bpfStream) stack(hash uint64) uint32 {
	k, ok := s.stacks[hash]
	if !ok && len(s.stacks) < maxBPFStacks {
		k.id = uint32(len(s.stacks) + 1)
		s.stacks[hash] = k
	}
	return k.id
}

// define returns a stack's number, and whether its frames come for the first time.
func (s *bpfStream) define(hash uint64) (id uint32, isNew bool) {
	id = s.stack(hash)
	if id == 0 || s.stacks[hash].defined {
		return id, false
	}
	s.stacks[hash] = stackID{id, true}
	return id, true
}

// userStack returns the number of an event's user stack. Where the kernel does not report that a
// thread returns, the stack was copied when the thread started to wait, maybe on another CPU whose
// ring is read after this one: then the stack gets a number now, and its frames when that ring is
// read.
func (s *bpfStream) userStack(e *bpf.Event) uint32 {
	whose := e.TID
	if e.Kind == bpf.Waking {
		whose = e.Other
	}
	if c := &s.copied[int(whose)%len(s.copied)]; c.hash == e.User {
		return c.id
	}
	if e.User&1 == 0 && e.Kind != bpf.WaitStack {
		return 0 // the copy was lost
	}
	return s.stack(e.User)
}

// copiedStack is the number of the stack that a copy turned into.
type copiedStack struct {
	hash uint64
	id   uint32
}

// newUnwinder returns a table that finds callers in code without frame pointers; nil for Go, which
// has them.
func newUnwinder(p Process, n *naming) *symbol.Table {
	if !p.Stacks || runtime.GOARCH != "amd64" || n.table == nil || n.table.Binary().Go {
		return nil
	}
	t, err := symbol.New(p.PID, p.Root)
	if err != nil {
		return nil
	}
	return t
}

// unwound returns the number of the stack that a copy holds, 0 if it cannot be unwound.
func (s *bpfStream) unwound(e *bpf.Event) uint32 {
	if s.unwinder == nil {
		return 0
	}
	s.pcs = s.unwinder.Unwind(symbol.Regs{IP: e.IP, SP: e.SP, BP: e.BP}, e.Bytes, e.Time, s.pcs[:0])
	if len(s.pcs) == 0 {
		return 0
	}
	// An event referred to it before its copy came.
	if k, ok := s.stacks[e.ID]; ok && !k.defined {
		s.stacks[e.ID] = stackID{k.id, true}
		s.naming.send(unnamed{id: k.id, time: e.Time, user: true, exact: true, frames: slices.Clone(s.pcs)})
		return k.id
	}
	// Stacks that the programs walked by frame pointers have the programs' hash, which is odd.
	hash := maphash.Bytes(s.seed, unsafe.Slice((*byte)(unsafe.Pointer(&s.pcs[0])), 8*len(s.pcs))) &^ 1
	id, isNew := s.define(hash)
	if isNew {
		s.naming.send(unnamed{id: id, time: e.Time, user: true, exact: true, frames: slices.Clone(s.pcs)})
	}
	return id
}
