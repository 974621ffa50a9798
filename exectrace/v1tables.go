package exectrace

// v1IDs maps the file's numbers to ids. An entry is the id + 1, or 0 until it is looked up.
type v1IDs []uint32

func (m *v1IDs) get(n uint32, o *v1Offsets, look func(off int64) uint32) uint32 {
	if n == 0 || int64(n) >= int64(len(o.off)) || o.off[n] == 0 {
		return 0
	}
	if len(*m) == 0 {
		*m = make(v1IDs, len(o.off))
	}
	if (*m)[n] == 0 {
		(*m)[n] = look(o.off[n]) + 1
	}
	return (*m)[n] - 1
}

// v1Intern puts ids where the merge left numbers of the file. What no event refers to is never
// read. So a trace's whole table of stacks, 200 MB with some compilers' traces, costs nothing.
func (t *Trace) v1Intern(ev []Event) {
	stacks := t.v1.stackIDs
	for i := range ev {
		e := &ev[i]
		if n := e.Stack; n != 0 {
			if int(n) < len(stacks) && stacks[n] != 0 {
				e.Stack = StackID(stacks[n] - 1)
			} else {
				e.Stack = StackID(t.v1Stack(uint32(n)))
				stacks = t.v1.stackIDs
			}
		}
		if n := e.OnStack; n != 0 {
			if int(n) < len(stacks) && stacks[n] != 0 {
				e.OnStack = StackID(stacks[n] - 1)
			} else {
				e.OnStack = StackID(t.v1Stack(uint32(n)))
				stacks = t.v1.stackIDs
			}
		}
		if e.Name != 0 {
			e.Name = t.v1Name(uint32(e.Name))
		}
		if e.Kind == KindLog {
			e.Arg[1] = uint64(t.v1String(int64(e.Arg[1])))
		}
	}
}

func (t *Trace) v1Stack(n uint32) uint32 {
	return t.v1.stackIDs.get(n, &t.v1.stacks, func(off int64) uint32 {
		data := t.data
		size, at := v1Uvarint(data, int(off))
		if at == 0 {
			return 0
		}
		var buf [maxDepth]uint32
		frames := buf[:0]
		for range min(size, maxDepth) {
			var v [4]uint64
			for k := range v {
				if v[k], at = v1Uvarint(data, at); at == 0 {
					return uint32(t.tables.internStack(frames))
				}
			}
			fn, file := t.v1Name(uint32(v[1])), t.v1Name(uint32(v[2]))
			frames = append(frames, t.tables.internFrame(v[0], fn, file, v[3]))
		}
		return uint32(t.tables.internStack(frames))
	})
}

func (t *Trace) v1Name(n uint32) StringID {
	if n&v1Builtin != 0 {
		if k := n &^ v1Builtin; int(k) < len(v1STW) {
			return t.tables.internString([]byte(v1STW[k]))
		}
		return 0
	}
	return StringID(t.v1.stringIDs.get(n, &t.v1.strings, func(off int64) uint32 { return uint32(t.v1String(off)) }))
}

// v1String interns the string whose length stands at off.
func (t *Trace) v1String(off int64) StringID {
	if off == 0 {
		return 0
	}
	size, n := v1Uvarint(t.data, int(off))
	if n == 0 || size > v1MaxString || int(size) > len(t.data)-n {
		return 0
	}
	return t.tables.internString(t.data[n : n+int(size)])
}
