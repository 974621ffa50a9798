package books

// table gives pairs of words small dense numbers: open addressing, without deletion. The zero value
// is ready.
type table struct {
	keys  [][2]uint64 // by number
	slots []uint32    // number plus one
}

// number is the number of a key, a new one if the key was not there.
func (t *table) number(a, b uint64) (n uint32, isNew bool) {
	if len(t.keys)*2 >= len(t.slots) {
		t.grow()
	}
	mask := uint64(len(t.slots) - 1)
	for i := Hash(a, b); ; i++ {
		s := t.slots[i&mask]
		if s == 0 {
			t.keys = append(t.keys, [2]uint64{a, b})
			t.slots[i&mask] = uint32(len(t.keys))
			return uint32(len(t.keys) - 1), true
		}
		if t.keys[s-1] == [2]uint64{a, b} {
			return s - 1, false
		}
	}
}

func (t *table) grow() {
	t.slots = make([]uint32, max(256, 2*len(t.slots)))
	mask := uint64(len(t.slots) - 1)
	for n, k := range t.keys {
		i := Hash(k[0], k[1])
		for t.slots[i&mask] != 0 {
			i++
		}
		t.slots[i&mask] = uint32(n + 1)
	}
}

// Hash mixes two words, as the finalizer of splitmix64 does. It also decides which units are in a
// sample, so another one means other samples.
func Hash(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 ^ b
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// accounts numbers the keys of accounts.
type accounts struct {
	ids    table
	keys   []Key // by number
	recent [64]struct {
		key    Key
		number uint32 // plus one; 0: the slot is empty
	}
}

// mostAccounts bounds the accounts of a recording. Beyond it names are dropped, time is not.
const mostAccounts = 1 << 15

// number is the number of a key, a new one if the key was not there. Pieces of one unit name few
// accounts over and over, which recent answers without the table.
func (a *accounts) number(k Key) uint32 {
	if len(a.keys) >= mostAccounts {
		k.Site, k.Detail = 0, 0
		if len(a.keys) >= 2*mostAccounts {
			k.Actor = 0
		}
	}
	recent := &a.recent[(uint32(k.Leaf)*5+uint32(k.Class)*11+uint32(k.Actor)*3+uint32(k.Site)*7)%uint32(len(a.recent))]
	if recent.number != 0 && recent.key == k {
		return recent.number - 1
	}
	n, isNew := a.ids.number(uint64(k.Class)<<40|uint64(k.Leaf)<<32|uint64(k.Actor),
		uint64(k.Site)<<32|uint64(k.Detail))
	if isNew {
		a.keys = append(a.keys, k)
	}
	recent.key, recent.number = k, n+1
	return n
}
