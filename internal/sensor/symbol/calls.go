package symbol

import "encoding/binary"

// A wait in a loop may be divided among functions: one looks, one pauses, and one calls both. A
// sample in the innermost one needs its caller. The stack of code without frame pointers does not
// say it, so:
//
//  1. An address on the stack is believed if the call before it goes to the function in question.
//  2. Else the calls of that function are looked for in the file: all of them, or those in the
//     function that the stack shows next. A function that has not made its frame yet hides its
//     caller, but not the caller's. If each of these calls is in a loop that waits, so is the
//     function.

const (
	loopCallers = 3        // of the sampled function
	leafBytes   = 512      // a function that only looks is no longer
	maxText     = 24 << 20 // bytes of code that are searched for calls
	maxSearches = 8        // in one file
	maxCalls    = 1 << 10  // of one function
	maxTried    = 32       // of them
	callerBytes = 4 << 10  // a function that waits is no longer
	maxUp       = 1        // functions from the sampled one to the loop
	callBytes   = 5
)

// waits reports whether the instruction at a linked address is in a loop that only waits. stack has
// the linked addresses that its callers may return to.
func (im *image) waits(linked uint64, stack []uint64) bool {
	if im.machine != machineAMD64 {
		return false
	}
	if pauses(im.codeAt, linked) {
		return true
	}
	waits, left := waitsAt(im.codeAt, linked, nil)
	if waits || !left {
		return waits
	}
	if callers := im.callers(linked, stack); len(callers) > 0 {
		if waits, _ := waitsAt(im.codeAt, linked, callers); waits {
			return true
		}
	}
	if len(stack) > 0 {
		if from, ok := im.calledBefore(stack[0]); ok && im.allWait(im.callsWithin(from, linked), 0) {
			return true
		}
	}
	return im.allWait(im.callsOf(linked), maxUp)
}

// allWait reports whether all calls are in loops that wait, or in functions all calls of which are.
func (im *image) allWait(calls []uint64, up int) bool {
	if len(calls) == 0 || len(calls) > maxTried {
		return false
	}
	for _, call := range calls {
		waits, left := waitsAt(im.codeAt, call, nil)
		if !waits && (!left || up == 0 || !im.allWait(im.callsOf(call), up-1)) {
			return false
		}
	}
	return true
}

// calledBefore is where the direct call before an address goes to.
func (im *image) calledBefore(to uint64) (entry uint64, ok bool) {
	var b [callBytes]byte
	if to < callBytes || im.codeAt(to-callBytes, b[:]) < callBytes || b[0] != 0xe8 {
		return 0, false
	}
	return to + uint64(int64(int32(binary.LittleEndian.Uint32(b[1:])))), true
}

// callers are those of stack that the function at a linked address does return to.
func (im *image) callers(linked uint64, stack []uint64) (all []uint64) {
	for _, to := range stack[:min(len(stack), loopCallers)] {
		if entry, ok := im.calledBefore(to); !ok || entry > linked || linked-entry >= leafBytes {
			break
		}
		all = append(all, to)
		linked = to - callBytes
	}
	return all
}

// codeAt is a coder.
func (im *image) codeAt(linked uint64, b []byte) int {
	for _, s := range im.segments {
		if s.kind != segLoad || s.flags&segExec == 0 || linked < s.vaddr || linked-s.vaddr >= s.in {
			continue
		}
		at := linked - s.vaddr
		b = b[:min(uint64(len(b)), s.in-at)]
		if im.code.r == nil {
			im.code.r = im.r
		}
		n, _ := im.code.ReadAt(b, int64(at+s.off))
		return n
	}
	return 0
}

// callsOf lists the calls of the function that has a linked address; none if there are too many to
// look at. The function begins where the nearest call before the address goes to.
func (im *image) callsOf(linked uint64) []uint64 {
	for i := range im.called {
		if c := &im.called[i]; linked >= c.low && linked < c.high {
			if calls := c.of(linked); len(calls) > 0 {
				return calls
			}
		}
	}
	if len(im.called) >= maxSearches {
		return nil
	}
	c := callsAround(linked)
	for _, s := range im.segments {
		if s.kind == segLoad && s.flags&segExec != 0 && s.in <= maxText {
			im.search(s, &c)
		}
	}
	im.called = append(im.called, c)
	return c.of(linked)
}

// callsWithin is the first of those calls in the function that begins at from. Others may be in
// functions behind it.
func (im *image) callsWithin(from, linked uint64) []uint64 {
	c := callsAround(linked)
	for _, s := range im.segments {
		if s.kind == segLoad && s.flags&segExec != 0 && from >= s.vaddr && from-s.vaddr < s.in {
			at := from - s.vaddr
			s.off, s.vaddr, s.in = s.off+at, from, min(s.in-at, callerBytes)
			im.search(s, &c)
		}
	}
	calls := c.of(linked)
	return calls[:min(len(calls), 1)]
}

func callsAround(linked uint64) called {
	return called{low: linked - min(linked, leafBytes-1), high: linked + leafBytes, calls: map[uint64][]uint64{}}
}

// called is the direct calls of functions that begin in [low,high), by where they begin.
type called struct {
	low, high uint64
	calls     map[uint64][]uint64
}

// of lists the calls of the function that has an address.
func (c *called) of(linked uint64) []uint64 {
	entry := uint64(0)
	for target := range c.calls {
		if target <= linked && target > entry {
			entry = target
		}
	}
	if calls := c.calls[entry]; linked-entry < leafBytes && len(calls) <= maxCalls {
		return calls
	}
	return nil
}

// search adds the calls in a segment.
func (im *image) search(s segment, c *called) {
	const block = 1 << 20
	for at := uint64(0); at+callBytes <= s.in; at += block {
		b, err := im.bytes(s.off+at, min(block+callBytes-1, s.in-at))
		if err != nil {
			return
		}
		for i := 0; i+callBytes <= len(b); i++ {
			if b[i] != 0xe8 {
				continue
			}
			call := s.vaddr + at + uint64(i)
			target := call + callBytes + uint64(int64(int32(binary.LittleEndian.Uint32(b[i+1:]))))
			if target >= c.low && target < c.high && len(c.calls[target]) <= maxCalls {
				c.calls[target] = append(c.calls[target], call)
			}
		}
	}
}
