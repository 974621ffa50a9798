package capacity

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
)

// Memory makes the memory ledger: the resident bytes at the end of the recording, each in one term.
// It is nil where they were not read. Each step takes from what the one before left, so the terms
// add up.
//
//  1. Files: mapped files and shared memory, by the kernel's own count.
//  2. A program without Go's runtime: LazyFree is what it gave back by MADV_FREE, for the kernel to
//     take when it wants. Native is the rest of its anonymous memory: heap, stacks and mappings,
//     which the kernel counts together unless smaps is read. That is all.
//  3. A Go program: the runtime's own figures claim what it holds: live heap, stacks, idle heap,
//     its other memory. It need not have touched what it holds. So where the claim is more than
//     what is resident, it is cut: its other memory first, live objects last.
//  4. What is left is beyond the runtime's view. Where smaps was read, LazyFree takes its part,
//     then Huge: at most AnonHugePages, and at most what the runtime gave back, since only that can
//     be filled again behind its back. Released is what was given back otherwise.
//  5. The rest is unexplained: memory of C, or mapped by the program itself; all of step 4 where
//     smaps was not read.
//
// A target is native if it is known not to be a Go program. A Go program without its figures has
// only steps 1 and 5, and LazyFree.
func Memory(set *evidence.Set, native bool) *account.Memory {
	if set == nil {
		return nil
	}
	rss := set.All("/process/rss:bytes")
	if len(rss) == 0 {
		return nil
	}
	m := &account.Memory{RSS: bounded(rss[len(rss)-1].Value), Begin: bounded(rss[0].Value),
		End: bounded(rss[len(rss)-1].Value), AnonHuge: -1}
	if r, ok := set.Fact("/cgroup/memory/limit:bytes"); ok {
		m.Limit = bounded(r.Value)
	}
	t := terms{left: m.RSS}
	file, _ := last(set, "/process/rss/file:bytes")
	shmem, _ := last(set, "/process/rss/shmem:bytes")
	t.take(&m.Files, file)
	t.take(&m.Files, shmem)
	lazy := addSmaps(m, set)
	figures, ok := goMemory(set)
	switch {
	case native:
		t.take(&m.LazyFree, lazy)
		if anon, ok := last(set, "/process/rss/anon:bytes"); ok {
			t.take(&m.Native, anon-m.LazyFree)
		}
	case !ok:
		t.take(&m.LazyFree, lazy)
	default:
		t.takeGo(m, &figures, lazy)
	}
	m.Unexplained = t.left
	return m
}

// addSmaps fills in the huge pages and returns what was freed lazily. Both are of smaps, and
// nothing if not the whole of it was read.
func addSmaps(m *account.Memory, set *evidence.Set) (lazy int64) {
	if r, ok := set.Fact("/process/smaps/whole:bool"); ok && r.Value != 1 {
		return 0
	}
	huge, ok := last(set, "/process/anon-huge:bytes")
	if !ok {
		return 0
	}
	m.AnonHuge = huge
	lazy, _ = last(set, "/process/lazyfree:bytes")
	return lazy
}

// terms is the resident memory that no term has taken yet.
type terms struct{ left int64 }

// take moves n bytes to a term, or what is left.
func (t *terms) take(term *int64, n int64) {
	n = max(0, min(n, t.left))
	*term += n
	t.left -= n
}

// takeGo is steps 3 and 4. What is surely resident comes first.
func (t *terms) takeGo(m *account.Memory, f *goFigures, lazy int64) {
	t.take(&m.Live, f.live)
	t.take(&m.Stacks, f.stacks)
	t.take(&m.Idle, f.idle)
	t.take(&m.Runtime, f.other)
	if m.AnonHuge < 0 {
		return // smaps was not read
	}
	// No more of the released memory is resident than was released.
	beyond := terms{left: min(t.left, f.released)}
	t.left -= beyond.left
	beyond.take(&m.LazyFree, lazy)
	beyond.take(&m.Huge, m.AnonHuge)
	beyond.take(&m.Released, beyond.left)
}

// goFigures are the runtime's own, as in runtime.MemStats, made disjoint.
type goFigures struct {
	live     int64 // heap objects
	idle     int64 // heap it keeps: free slots of spans in use, and whole spans
	stacks   int64
	other    int64
	released int64 // heap that it gave back
}

// goMemory reads the figures. They are not used where one contradicts another, as in a damaged
// file.
func goMemory(set *evidence.Set) (f goFigures, ok bool) {
	sys, okSys := last(set, "/go/memory/sys:bytes")
	heap, okHeap := last(set, "/go/memory/heap/sys:bytes")
	released, okReleased := last(set, "/go/memory/heap/released:bytes")
	if !okSys || !okHeap || !okReleased || sys < heap || heap < released {
		return f, false
	}
	alloc, _ := last(set, "/go/memory/heap/alloc:bytes")
	stacks, _ := last(set, "/go/memory/stacks/inuse:bytes")
	f.released = released
	f.live = min(alloc, heap-released)
	f.idle = heap - released - f.live
	f.stacks = min(stacks, sys-heap)
	f.other = sys - heap - f.stacks
	return f, true
}

// last is the last sample of a stream.
func last(set *evidence.Set, stream string) (int64, bool) {
	rs := set.All(stream)
	for i := len(rs) - 1; i >= 0; i-- {
		if rs[i].Shape == evidence.Sample {
			return bounded(rs[i].Value), true
		}
	}
	return 0, false
}

// bounded bounds what a file from anywhere may say: no machine has 2^55 bytes.
func bounded(v float64) int64 {
	if !(v > 0) { // not a number, too
		return 0
	}
	return int64(min(v, 1<<55))
}
