package format

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// The memory of a process by mapping, and the kernel's own sum over the mappings.
const (
	KindSmaps  Kind = "smaps of a process"
	KindRollup Kind = "smaps_rollup of a process"
)

// The sum is written like one mapping, whose name is [rollup].
var _ = registerFile(&row{
	kind: KindSmaps, name: "smaps",
	looks: looksSmaps, yields: []Kind{KindRollup}, at: base("smaps"), file: (*kernelFiles).smaps,
	gap: "/process/anon-huge:bytes",
	streams: []evidence.Stream{
		{Name: "/process/smaps/rss:bytes",
			Doc: "Sample. Resident memory by smaps or smaps_rollup, from the same walk as the next ones. If the file is not of a whole process, that of its mappings."},
		{Name: "/process/anon-huge:bytes",
			Doc: "Sample. AnonHugePages, by smaps or smaps_rollup. No record: not read."},
		{Name: "/process/lazyfree:bytes", Doc: "Sample. LazyFree: given back by MADV_FREE and not yet taken."},
		{Name: "/process/smaps/anon:bytes", Doc: "Sample. Anonymous."},
		{Name: "/process/smaps/pss:bytes", Doc: "Sample. Proportional share."},
		{Name: "/process/smaps/whole:bool",
			Doc: "Fact. 1: smaps_rollup, or a smaps with more than Go's arenas in it; 0: a few mappings only."},
		{Name: "/process/smaps/go-arena:bytes",
			Doc: "Sample. Resident in mappings at 0xc000000000, where Go keeps its heap on 64-bit machines; from a whole smaps only."},
		{Name: "/process/smaps/go-arena/anon-huge:bytes", Doc: "Sample. AnonHugePages of those."},
		{Name: "/process/smaps/go-arena/lazyfree:bytes", Doc: "Sample. LazyFree of those."},
	},
})

var _ = registerFile(&row{
	kind: KindRollup, name: "smaps-rollup",
	looks: looksRollup, at: base("smaps_rollup"), file: (*kernelFiles).smaps, gap: "/process/anon-huge:bytes",
	also: []string{"/process/smaps/rss:bytes", "/process/smaps/pss:bytes",
		"/process/smaps/anon:bytes", "/process/smaps/whole:bool", "/process/anon-huge:bytes",
		"/process/lazyfree:bytes"},
})

func looksRollup(h head) bool {
	first, _, _ := strings.Cut(h.start, "\n")
	return strings.HasSuffix(strings.TrimSpace(first), "[rollup]")
}

// looksSmaps wants a mapping's line and a size under it. The flags of the mapping before may stand
// above.
func looksSmaps(h head) bool {
	text := h.start
	for n := 0; n < 3; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		if _, ok := mappingStart(line); ok {
			return strings.HasPrefix(text, "Size:") || strings.HasPrefix(text, "Rss:")
		}
		if n == 0 && strings.HasPrefix(strings.ToLower(line), "vmflags:") {
			continue
		}
		return false
	}
	return false
}

// goArena is where Go's heap starts on 64-bit machines, and goArenaEnd is one of its address hints
// later.
const (
	goArena    = 0xc000000000
	goArenaEnd = goArena + 1<<40
)

// mappingStart reads the start of "c000000000-c3ac000000 rw-p 00000000 00:00 0".
func mappingStart(line string) (uint64, bool) {
	first, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
	from, to, isRange := strings.Cut(first, "-")
	if !ok || !isRange || len(rest) < 4 || strings.Trim(rest[:3], "rwx-") != "" {
		return 0, false
	}
	a, err := strconv.ParseUint(from, 16, 64)
	b, err2 := strconv.ParseUint(to, 16, 64)
	return a, err == nil && err2 == nil && b > a
}

// smaps sums over the mappings; smaps_rollup has one for all.
func (s *kernelFiles) smaps(r reading) error {
	type sums struct{ rss, huge, lazy, anon, pss float64 }
	var all, arena sums
	var hasHuge, hasLazy, inArena, rollup, others bool
	n, mappings := 0, 0
	for line := range strings.Lines(r.text) {
		n++
		line = strings.TrimSpace(line)
		if from, ok := mappingStart(line); ok {
			mappings++
			inArena = from >= goArena && from < goArenaEnd
			rollup = rollup || strings.HasSuffix(line, "[rollup]")
			others = others || !inArena
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		var into func(*sums) *float64
		switch name {
		case "Rss":
			into = func(m *sums) *float64 { return &m.rss }
		case "Pss":
			into = func(m *sums) *float64 { return &m.pss }
		case "Anonymous":
			into = func(m *sums) *float64 { return &m.anon }
		case "AnonHugePages":
			hasHuge = true
			into = func(m *sums) *float64 { return &m.huge }
		case "LazyFree":
			hasLazy = true
			into = func(m *sums) *float64 { return &m.lazy }
		default:
			continue
		}
		v, err := amount(value)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		*into(&all) += v
		if inArena {
			*into(&arena) += v
		}
	}
	if mappings == 0 {
		return nil // the process has ended meanwhile
	}
	whole := 0.0
	if rollup || others {
		whole = 1
	}
	s.fact("/process/smaps/whole:bool", r.time, whole, "")
	s.add("/process/smaps/rss:bytes", evidence.Sample, r.time, all.rss)
	s.add("/process/smaps/pss:bytes", evidence.Sample, r.time, all.pss)
	s.add("/process/smaps/anon:bytes", evidence.Sample, r.time, all.anon)
	if hasHuge {
		s.add("/process/anon-huge:bytes", evidence.Sample, r.time, all.huge)
	}
	if hasLazy {
		s.add("/process/lazyfree:bytes", evidence.Sample, r.time, all.lazy)
	}
	if arena.rss > 0 && !rollup {
		s.add("/process/smaps/go-arena:bytes", evidence.Sample, r.time, arena.rss)
		if hasHuge {
			s.add("/process/smaps/go-arena/anon-huge:bytes", evidence.Sample, r.time, arena.huge)
		}
		if hasLazy {
			s.add("/process/smaps/go-arena/lazyfree:bytes", evidence.Sample, r.time, arena.lazy)
		}
	}
	return nil
}
