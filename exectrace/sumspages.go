package exectrace

// pageSize is how many goroutine numbers share a page: as many as a P takes at a time, so the
// goroutines of a page live at the same time.
const pageSize = 16

// page holds goroutines. One that no event names has no times.
type page [pageSize]sumG

// maxPages bounds a generation's goroutines: 16 MB. A generation that has more is read in order,
// which takes less memory for each.
const maxPages = 16 << 10

// pages finds goroutines by number. Numbers count up, so those that live now are on a few pages
// side by side. A direct-mapped table finds them by two loads, four pages to a cache line, and
// nothing is hashed.
//
// Pages may share an entry of that table, as those of old and of new goroutines do. Then the entry
// has the page that was asked for last, and a hash table has them all.
type pages struct {
	top  *[1 << topBits]topEntry
	more goMap // page number -> index in mem
	n    int
	mem  arena[page]
	anon bool // goroutines start without their numbers
}

const topBits = 14

type topEntry struct {
	key uint64 // page number; noPage without one
	p   *page
}

const noPage = ^uint64(0)

// get gives the goroutine with this number.
func (t *pages) get(id uint64) *sumG {
	e := &t.top[id/pageSize%(1<<topBits)]
	if e.key != id/pageSize {
		t.find(e, id/pageSize)
	}
	return &e.p[id%pageSize]
}

// find puts the page with number key into e, a new page if there is none.
func (t *pages) find(e *topEntry, key uint64) {
	k, ok := t.more.get(key)
	if !ok {
		k = uint32(t.n)
		p := t.mem.new()
		t.n++
		t.more.put(key, k)
		for x := range p {
			p[x] = sumG{first: noTime}
			if !t.anon {
				p[x].id = key*pageSize + uint64(x)
			}
		}
	}
	*e = topEntry{key, t.mem.get(int(k))}
}

func (t *pages) reset() {
	if t.top == nil {
		t.top = new([1 << topBits]topEntry)
	}
	for k := range t.top {
		t.top[k] = topEntry{key: noPage}
	}
	t.more.reset()
	t.n = 0
	t.mem.reset()
}

// arena hands out Ts that stay where they are, and takes all of them back at once.
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

func (a *arena[T]) get(k int) *T { return &a.chunks[k/arenaChunk][k%arenaChunk] }

func (a *arena[T]) reset() { a.n = 0 }
