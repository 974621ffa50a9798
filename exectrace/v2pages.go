package exectrace

// pageSize is how many goroutine numbers share a page. A P takes numbers sixteen at a time, so those of a
// page live at the same time.
const pageSize = 8

// page holds goroutines whose id is 0 where there is none.
type page [pageSize]swiftG

// maxPages bounds a generation's goroutines: 16 MB. One that has more is read in order, which takes less memory each.
const maxPages = 32 << 10

// pages finds goroutines by number: a hash table of pages. The entries of the pages in use are few and stay in the
// caches where a table of the goroutines themselves would not.
type pages struct {
	e    []pageEntry
	n    int
	bits uint
	mem  arena[page]
}

type pageEntry struct {
	key uint64 // page number + 1
	p   *page
}

func (t *pages) get(key uint64) *page {
	mask := len(t.e) - 1
	if mask >= 0 {
		for i := int(key*0x9e3779b97f4a7c15>>(64-t.bits)) & mask; ; i = (i + 1) & mask {
			e := &t.e[i&mask]
			if e.key == key+1 {
				return e.p
			}
			if e.key == 0 {
				break
			}
		}
	}
	return t.add(key)
}

func (t *pages) add(key uint64) *page {
	if 2*(t.n+1) > len(t.e) {
		old := t.e
		t.bits = max(8, t.bits+1)
		t.e = make([]pageEntry, 1<<t.bits)
		for _, e := range old {
			if e.key != 0 {
				t.place(e)
			}
		}
	}
	p := t.mem.new()
	*p = page{}
	t.place(pageEntry{key + 1, p})
	t.n++
	return p
}

func (t *pages) place(e pageEntry) {
	mask := len(t.e) - 1
	i := int((e.key-1)*0x9e3779b97f4a7c15>>(64-t.bits)) & mask
	for t.e[i].key != 0 {
		i = (i + 1) & mask
	}
	t.e[i] = e
}

func (t *pages) reset() {
	clear(t.e)
	t.n = 0
	t.mem.reset()
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
