package capacity

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
)

// MemoryOf makes the memory ledger: resident bytes at the end of the recording, each in one term. Nil where they were not read.
//
//  1. Mapped files and shared memory, by the kernel's own count. Of a program without Go's runtime what was freed lazily is next, and the rest
//     of its anonymous memory is its own: heap, stacks and what it maps, which the kernel does not tell apart without smaps.
//  2. Of the anonymous rest the runtime's own figures claim what it holds: live heap, idle heap, stacks, its other memory. What it holds it need not have
//     touched, so where the claim exceeds the resident, it is cut: its other memory first, live objects last.
//  3. What is left is beyond the runtime's view. Where smaps was read, LazyFree takes its part (given back by MADV_FREE, for the kernel to take when
//     it wants), then huge pages theirs: at most AnonHugePages, and at most what the runtime gave back, since only that can be filled again
//     behind its back; then what was given back otherwise. Where smaps was not read all of it is unexplained, and so is what nothing covers:
//     memory of C, or mapped by the program itself.
//
// native tells that the target is known not to be a Go program; a Go program without its figures has only the first step.
func Memory(set *evidence.Set, native bool) *account.Memory {
	if set == nil {
		return nil
	}
	rss := set.All("/process/rss:bytes")
	if len(rss) == 0 {
		return nil
	}
	m := &account.Memory{RSS: whole(rss[len(rss)-1].Value), Begin: whole(rss[0].Value), End: whole(rss[len(rss)-1].Value), AnonHuge: -1}
	wholeProcess := true
	if r, ok := set.Fact("/process/smaps/whole:bool"); ok {
		wholeProcess = r.Value == 1
	}
	smaps := false
	if v, ok := last(set, "/process/anon-huge:bytes"); ok && wholeProcess {
		m.AnonHuge, smaps = v, true
	}
	if r, ok := set.Fact("/cgroup/memory/limit:bytes"); ok {
		m.Limit = whole(r.Value)
	}
	left := m.RSS
	take := func(into *int64, n int64) {
		n = max(0, min(n, left))
		*into += n
		left -= n
	}
	lazy := int64(0)
	if smaps {
		lazy, _ = last(set, "/process/lazyfree:bytes")
	}
	file, _ := last(set, "/process/rss/file:bytes")
	shmem, _ := last(set, "/process/rss/shmem:bytes")
	take(&m.Files, file)
	take(&m.Files, shmem)
	if native {
		take(&m.LazyFree, lazy)
		if anon, ok := last(set, "/process/rss/anon:bytes"); ok {
			take(&m.Native, anon-m.LazyFree)
		}
		m.Unexplained = left
		return m
	}
	g, ok := goMemory(set)
	if !ok {
		take(&m.LazyFree, lazy)
		m.Unexplained = left
		return m
	}
	// In the order of what is surely resident; what does not fit is what was not touched.
	take(&m.Live, g.live)
	take(&m.Stacks, g.stacks)
	take(&m.Idle, g.idle)
	take(&m.Runtime, g.other)
	if smaps {
		// What of the runtime's released memory is resident can be no more than it released.
		beyond := min(left, g.released)
		part := min(lazy, beyond)
		take(&m.LazyFree, part)
		beyond -= part
		part = min(m.AnonHuge, beyond)
		take(&m.Huge, part)
		beyond -= part
		take(&m.Released, beyond)
	}
	m.Unexplained = left
	return m
}

// goFigures are runtime.MemStats' own, made disjoint.
type goFigures struct {
	live, idle, stacks, other, released int64
}

// goMemory reads them. Idle is in spans: free slots of those in use, and whole ones that were not released.
func goMemory(set *evidence.Set) (g goFigures, ok bool) {
	sys, okSys := last(set, "/go/memory/sys:bytes")
	heap, okHeap := last(set, "/go/memory/heap/sys:bytes")
	released, okReleased := last(set, "/go/memory/heap/released:bytes")
	if !okSys || !okHeap || !okReleased || sys < heap || heap < released {
		return g, false
	}
	alloc, _ := last(set, "/go/memory/heap/alloc:bytes")
	stacks, _ := last(set, "/go/memory/stacks/inuse:bytes")
	g.released = released
	g.live = min(alloc, heap-released)
	g.idle = heap - released - g.live
	g.stacks = min(stacks, sys-heap)
	g.other = sys - heap - g.stacks
	return g, true
}

func last(set *evidence.Set, stream string) (int64, bool) {
	rs := set.All(stream)
	for i := len(rs) - 1; i >= 0; i-- {
		if rs[i].Shape == evidence.Sample {
			return whole(rs[i].Value), true
		}
	}
	return 0, false
}

// whole bounds what a file from anywhere may say: no machine has 2^55 bytes.
func whole(v float64) int64 {
	if !(v > 0) {
		return 0
	}
	return int64(min(v, 1<<55))
}
