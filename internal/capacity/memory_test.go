package capacity

import (
	"math/rand"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
)

var memoryStreams = []string{
	"/process/rss:bytes", "/process/rss/file:bytes", "/process/rss/shmem:bytes",
	"/process/rss/anon:bytes", "/process/anon-huge:bytes", "/process/lazyfree:bytes",
	"/go/memory/sys:bytes", "/go/memory/heap/sys:bytes", "/go/memory/heap/released:bytes",
	"/go/memory/heap/alloc:bytes", "/go/memory/stacks/inuse:bytes",
}

func memorySet(mib map[string]float64) *evidence.Set {
	set := &evidence.Set{}
	for stream, v := range mib {
		set.Add(evidence.Record{Stream: stream, Shape: evidence.Sample, Value: v * (1 << 20)})
	}
	return set
}

func sumMemory(m *account.Memory) int64 {
	return m.Live + m.Idle + m.Released + m.Huge + m.LazyFree + m.Stacks + m.Runtime + m.Files +
		m.Native + m.Unexplained
}

// TestMemorySums: whatever the figures are, the terms add up to the resident bytes, and none is
// below zero.
func TestMemorySums(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for range 20000 {
		mib := map[string]float64{"/process/rss:bytes": rnd.Float64() * 4096}
		for _, s := range memoryStreams[1:] {
			if rnd.Intn(4) > 0 {
				mib[s] = rnd.Float64()*5000 - 100
			}
		}
		m := Memory(memorySet(mib), rnd.Intn(5) == 0)
		if sum := sumMemory(m); sum != m.RSS {
			t.Fatalf("%v: terms add up to %d, resident are %d", mib, sum, m.RSS)
		}
		for _, v := range []int64{m.Live, m.Idle, m.Released, m.Huge, m.LazyFree, m.Stacks,
			m.Runtime, m.Files, m.Native, m.Unexplained} {
			if v < 0 {
				t.Fatalf("%v: %+v", mib, m)
			}
		}
	}
}

// TestMemoryTerms: one program after it released memory, read with and without smaps, with huge
// pages and with MADV_FREE.
func TestMemoryTerms(t *testing.T) {
	// As measured with Go 1.21, huge pages always: 29 MiB became 622 after memory was released.
	bloat := map[string]float64{
		"/process/rss:bytes": 622, "/process/rss/file:bytes": 4, "/process/anon-huge:bytes": 610,
		"/process/lazyfree:bytes": 0,
		"/go/memory/sys:bytes":    640, "/go/memory/heap/sys:bytes": 620,
		"/go/memory/heap/released:bytes": 600, "/go/memory/heap/alloc:bytes": 15, "/go/memory/stacks/inuse:bytes": 1,
	}
	m := Memory(memorySet(bloat), false)
	const mib = 1 << 20
	if m.Huge != 578*mib || m.Live != 15*mib || m.Idle != 5*mib || m.Stacks != 1*mib ||
		m.Runtime != 19*mib || m.Files != 4*mib || m.Unexplained != 0 {
		t.Errorf("huge pages: %+v", m)
	}
	delete(bloat, "/process/anon-huge:bytes")
	if m := Memory(memorySet(bloat), false); m.Huge != 0 || m.AnonHuge != -1 || m.Unexplained != 578*mib {
		t.Errorf("without smaps: %+v", m)
	}
	// MADV_FREE: the same gap, and no huge page.
	bloat["/process/anon-huge:bytes"], bloat["/process/lazyfree:bytes"] = 0, 570
	if m := Memory(memorySet(bloat), false); m.Huge != 0 || m.LazyFree != 570*mib ||
		m.Released != 8*mib || m.Unexplained != 0 {
		t.Errorf("lazily freed: %+v", m)
	}
	bloat["/process/rss/anon:bytes"] = 617
	if m := Memory(memorySet(bloat), true); m.Files != 4*mib || m.Native != 47*mib ||
		m.LazyFree != 570*mib || m.Unexplained != 1*mib || m.Live != 0 {
		t.Errorf("native: %+v", m)
	}
	if Memory(&evidence.Set{}, false) != nil {
		t.Error("nothing was read, and there is a ledger")
	}
}
