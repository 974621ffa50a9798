package exectrace

// pageSize is how many goroutine numbers share a page. A P takes numbers sixteen at a time, so those of a
// page live at the same time.
const pageSize = 8

// page holds goroutines; who was not heard of has no times.
type page [pageSize]swiftG

// leafPages is how many pages share a leaf, 512 numbers: half a KB of pointers.
const leafPages = 64

type leaf [leafPages]*page

// maxPages bounds a generation's goroutines: 16 MB of pages and leaves. One that has more is read in order, which takes less memory each.
const maxPages = 32 << 10

// pages finds goroutines by number: number -> leaf -> page. Numbers count up, so those that live now fill a few leaves,
// eight goroutines to a pointer and sixty-four to a cache line, where a hash table of pages had four pages to a line and one
// probe in four went astray. The leaves in use are found in a direct-mapped table; others are in a map.
type pages struct {
	top    *[1 << topBits]topEntry
	leaves map[uint64]*leaf
	n      int // pages and leaves
	mem    arena[page]
	memL   arena[leaf]
}

// topBits: 64 KB where goroutines are scattered over millions of numbers, a few lines of that where they are not.
const topBits = 12

type topEntry struct {
	key uint64 // number/(pageSize*leafPages) + 1
	l   *leaf
}

// get gives the goroutine with the number.
func (t *pages) get(id uint64) *swiftG {
	e := &t.top[id/(pageSize*leafPages)%(1<<topBits)]
	if e.key == id/(pageSize*leafPages)+1 {
		if p := e.l[id/pageSize%leafPages]; p != nil {
			return &p[id%pageSize]
		}
	}
	return t.add(id)
}

func (t *pages) add(id uint64) *swiftG {
	key := id / (pageSize * leafPages)
	l := t.leaves[key]
	if l == nil {
		l = t.memL.new()
		*l = leaf{}
		if t.leaves == nil {
			t.leaves = map[uint64]*leaf{}
		}
		t.leaves[key] = l
		t.n++
	}
	t.top[key%(1<<topBits)] = topEntry{key + 1, l}
	p := l[id/pageSize%leafPages]
	if p == nil {
		p = t.mem.new()
		l[id/pageSize%leafPages] = p
		t.n++
		for k := range p {
			p[k] = swiftG{id: id&^(pageSize-1) + uint64(k), first: noTime}
		}
	}
	return &p[id%pageSize]
}

func (t *pages) reset() {
	if t.top == nil {
		t.top = new([1 << topBits]topEntry)
	}
	clear(t.top[:])
	clear(t.leaves)
	t.n = 0
	t.mem.reset()
	t.memL.reset()
}

// arena hands out Ts that stay where they are, and takes all back at once.
type arena[T any] struct {
	chunks [][]T
	n      int
}

const arenaChunk = 128

func (a *arena[T]) new() *T {
	c, i := a.n/arenaChunk, a.n%arenaChunk
	if c == len(a.chunks) {
		a.chunks = append(a.chunks, make([]T, arenaChunk))
	}
	a.n++
	return &a.chunks[c][i]
}

func (a *arena[T]) at(k int) *T { return &a.chunks[k/arenaChunk][k%arenaChunk] }

func (a *arena[T]) reset() { a.n = 0 }
