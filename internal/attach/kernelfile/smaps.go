package kernelfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// Facts of a process' memory.
const (
	FactRSS      attach.FactName = "/process/rss:bytes"
	FactAnonHuge attach.FactName = "/process/anon-huge:bytes"
	FactSwap     attach.FactName = "/process/swap:bytes"
	FactGoArena  attach.FactName = "/process/smaps/go-arena:bytes" // resident in mappings where Go keeps its heap
)

// mapLine is a line of /proc/PID/maps, which also starts each mapping in smaps.
var mapLine = pattern.New(`^([0-9a-f]{4,16})-([0-9a-f]{4,16}) ([r-][w-][x-][ps-]) [0-9a-f]{8,16} [0-9a-f]{2,4}:[0-9a-f]{2,4} \d+ *(.*)$`)

var smapsKeys = oneOf("Size Rss Pss Pss_Dirty Pss_Anon Pss_File Pss_Shmem Shared_Clean Shared_Dirty Private_Clean Private_Dirty Referenced Anonymous KSM LazyFree AnonHugePages ShmemPmdMapped " +
	"FilePmdMapped Shared_Hugetlb Private_Hugetlb Swap SwapPss KernelPageSize MMUPageSize Locked THPeligible ProtectionKey")

func smapsLine(text string) bool {
	if dash := strings.IndexByte(text, '-'); (dash < 4 || dash > 16) && strings.IndexByte(text, ':') < 0 {
		return false
	}
	if mapLine.MatchString(text) || strings.HasPrefix(strings.ToLower(text), "vmflags:") {
		return true
	}
	name, _, ok := pair(text)
	return ok && smapsKeys(name) && strings.Contains(text, ":")
}

var smaps = &attach.Kind{
	Name: "smaps", Hints: []string{"-", ":"},
	Claim: starting("0-9a-fA-Zv", 400, repeated(func(lines []paste.Line) int {
		if !smapsLine(strings.TrimSpace(lines[0].Text)) {
			return 0
		}
		values := 0
		n := run(lines, func(t string) bool {
			ok := smapsLine(t)
			if ok && !mapLine.MatchString(t) {
				values++
			}
			return ok
		})
		return attach.ClaimIf(values >= 3, n)
	})),
	Read: readSmaps,
}

var procMaps = &attach.Kind{
	Name: "/proc/PID/maps", Hints: []string{"-"}, Yields: []string{"smaps"},
	Claim: func(lines []paste.Line) int {
		if dash := strings.IndexByte(lines[0].Text, '-'); dash < 4 || dash > 32 ||
			!mapLine.MatchString(strings.TrimSpace(lines[0].Text)) {
			return 0
		}
		return run(lines, mapLine.MatchString)
	},
	Read: func(p *attach.Part) attach.Reading {
		if strings.HasSuffix(strings.TrimSpace(p.Lines[0].Text),
			"[rollup]") { // it stands for all mappings, and is none
			return attach.Reading{Title: "smaps_rollup, its head alone", State: attach.CannotTell,
				Means: "What stands below its first line is cut off."}
		}
		var size float64
		arena, anon := 0.0, 0
		for _, l := range p.Lines {
			if m := mapLine.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil {
				s, inArena := mapSize(m)
				size += s
				if inArena {
					arena += s
				}
				if m[4] == "" {
					anon++
				}
			}
		}
		r := attach.Reading{Title: "map of an address space", State: attach.Context,
			Figures: []string{fmt.Sprintf("%s, %s of them anonymous, %s of address space",
				plural(len(p.Lines), "mapping", "mappings"), number(float64(anon)), mem(size))}}
		r.Who.PID = p.PID
		r.Means = "It says what is mapped, not what is resident or touched: nothing follows for latency."
		if arena > 0 {
			r.Figures = append(r.Figures, mem(arena)+" of it reserved where Go keeps its heap")
		}
		if len(p.Lines) > 60000 {
			r.State = attach.CannotTell
			r.Means = "The process is near vm.max_map_count (65 530 by default): beyond it mmap fails."
		}
		return r
	},
}

// mapSize is the size of a mapping, and whether it lies where Go keeps its heap on 64-bit machines.
func mapSize(m []string) (size float64, arena bool) {
	from, _ := strconv.ParseUint(m[1], 16, 64)
	to, _ := strconv.ParseUint(m[2], 16, 64)
	if to <= from {
		return 0, false
	}
	return float64(to - from), from >= 0xc000000000 && from < 0xc000000000+1<<40
}

// memorySums are the sums over the mappings of one reading.
type memorySums struct {
	rss, pss, private, shared, anon, huge, lazy, swap, swapPss, arena, arenaHuge float64
	mappings                                                                     int
	rollup                                                                       bool
	readings                                                                     int                // addresses that start anew: of another process or moment
	keys                                                                         map[string]int     // how often each field comes
	byName, byKind                                                               map[string]float64 // resident bytes
}

// mappingKind is what a mapping is for, by the name at its end.
func mappingKind(name string) string {
	switch {
	case name == "" || strings.HasPrefix(name, "[anon"):
		return "anonymous"
	case name == "[heap]":
		return "heap"
	case strings.HasPrefix(name, "[stack"):
		return "stack"
	case strings.HasPrefix(name, "/dev/shm/"), strings.HasPrefix(name, "/SYSV"), strings.HasPrefix(name, "/memfd:"),
		strings.HasPrefix(name, "/dev/zero"):
		return "shared memory"
	case strings.HasPrefix(name, "/"):
		return "files"
	}
	return "others"
}

// most is how often the most frequent field comes.
func (s memorySums) most() (n int) {
	for _, c := range s.keys {
		n = max(n, c)
	}
	return n
}

func sumSmaps(lines []string) (s memorySums) {
	name, kind, arena := "", "", false
	last := uint64(0)
	s.byName, s.byKind = map[string]float64{}, map[string]float64{}
	s.keys = map[string]int{}
	for _, t := range lines {
		if m := mapLine.FindStringSubmatch(t); m != nil {
			s.mappings++
			name, kind = m[4], mappingKind(m[4])
			if name == "" {
				name = "anonymous at " + m[1]
			}
			s.rollup = s.rollup || m[4] == "[rollup]"
			_, arena = mapSize(m)
			start, _ := strconv.ParseUint(m[1], 16, 64)
			if s.readings == 0 || start <= last {
				s.readings++
			}
			last = start
			continue
		}
		key, v, _ := pair(t)
		s.keys[key]++
		switch key {
		case "Rss":
			s.rss += v
			if arena {
				s.arena += v
			}
			if name != "" {
				s.byName[name] += v
				s.byKind[kind] += v
			}
		case "Pss":
			s.pss += v
		case "Private_Clean", "Private_Dirty":
			s.private += v
		case "Shared_Clean", "Shared_Dirty":
			s.shared += v
		case "Anonymous":
			s.anon += v
		case "AnonHugePages":
			s.huge += v
			if arena {
				s.arenaHuge += v
			}
		case "LazyFree":
			s.lazy += v
		case "Swap":
			s.swap += v
		case "SwapPss":
			s.swapPss += v
		}
	}
	return s
}

// What counts: huge pages are worth a word from there on, and swapped memory too.
const (
	hugeWorth = 64 << 20
	hugePart  = 0.10
)

// residentText: memory that several processes map counts in each one's Rss; Pss divides it.
func residentText(s memorySums) string {
	text := mem(s.rss) + " resident"
	if s.pss > 0 && s.pss < s.rss {
		text += fmt.Sprintf(", %s by its share of what others map, too (Pss)", mem(s.pss))
		if s.keys["Private_Dirty"] > 0 && s.keys["Private_Clean"] > 0 {
			text += fmt.Sprintf(", %s its own", mem(s.private))
		}
		if s.shared > 0 && s.keys["Shared_Clean"] > 0 && s.keys["Shared_Dirty"] > 0 {
			text += fmt.Sprintf(" and %s shared (%s)", mem(s.shared), percent(ratio(s.shared, s.rss)))
		}
	}
	return text
}

func readSmaps(p *attach.Part) attach.Reading {
	var lines []string
	for _, l := range p.Lines {
		lines = append(lines, strings.TrimSpace(l.Text))
	}
	s := sumSmaps(lines)
	r := attach.Reading{Title: fmt.Sprintf("smaps, %s",
		plural(max(1, s.mappings), "mapping", "mappings")), State: attach.Healthy, Glance: true}
	switch {
	case s.rollup && s.mappings > 1:
		r.Title = fmt.Sprintf("smaps_rollup of %d processes or moments, added up", s.mappings)
	case s.rollup:
		r.Title = "smaps_rollup, the memory of a process"
	case s.readings > 1:
		r.Title += fmt.Sprintf(" of %d processes or moments, added up", s.readings)
	case s.mappings == 0 && s.most() > 1:
		r.Title = fmt.Sprintf("smaps, fields of %d mappings without their addresses, added up", s.most())
	}
	r.Who.PID = p.PID
	if s.mappings == 0 && bareSums(lines) {
		return bareSmaps(s, r)
	}
	r.Figures = []string{
		residentText(s),
		"huge pages are not in it", "what is anonymous or swapped out is not in it", // cut off, and not 0
	}
	has := func(field string) bool {
		return slices.ContainsFunc(lines, func(t string) bool { return strings.HasPrefix(t, field+":") })
	}
	if has("AnonHugePages") {
		r.Figures[1] = fmt.Sprintf("%s of it in huge pages (%s)", mem(s.huge), percent(ratio(s.huge, s.rss)))
	}
	swapped := mem(s.swap) + " swapped out"
	if has("SwapPss") && has("Swap") && s.swapPss < s.swap {
		swapped += fmt.Sprintf(", %s by its share of what others map, too (SwapPss)", mem(s.swapPss))
		s.swap = s.swapPss
	}
	switch {
	case has("Anonymous") && has("Swap"):
		r.Figures[2] = fmt.Sprintf("%s anonymous, %s", mem(s.anon), swapped)
	case has("Anonymous"):
		r.Figures[2] = mem(s.anon) + " anonymous"
	case has("Swap"):
		r.Figures[2] = swapped
	}
	if s.lazy > 0 {
		r.Figures = append(r.Figures, mem(s.lazy)+" given back by MADV_FREE and not yet taken")
	}
	if text := sharesOf(s.byKind, mem); !s.rollup && s.mappings > 3 && text != "" {
		most := attach.Largest(s.byName)[0]
		r.Figures = slices.Insert(r.Figures, 1, fmt.Sprintf("resident by kind of mapping: %s; most is in %s, %s", text, printed(most), mem(s.byName[most])))
	}
	r.Facts = []attach.Fact{{Name: FactRSS, Value: s.rss}, {Name: FactAnonHuge, Value: s.huge},
		{Name: FactSwap, Value: s.swap}}
	if s.arena > 0 {
		r.Facts = append(r.Facts, attach.Fact{Name: FactGoArena, Value: s.arena})
	}
	r.Not = "anything about latency, nor whether huge pages hold what a runtime has given back: the runtime's own figures tell"
	huge, of := s.huge, s.rss
	if s.arena > 0 {
		huge, of = s.arenaHuge, s.arena
	}
	switch {
	case huge >= hugeWorth && ratio(huge, of) >= hugePart && (s.arena > 0 || s.rollup || s.mappings <= 3):
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s of %s resident is in huge pages: they help a live heap, and bloat one that was given back.", mem(huge), mem(of))
		r.Signs = []attach.Sign{{Cause: "thp-bloat", Grade: attach.Risk, Share: ratio(huge, of),
			Proof: []string{residentText(s), mem(s.huge) + " of it in huge pages"}}}
		r.Next = []attach.Next{{Command: "grep -H . /sys/kernel/mm/transparent_hugepage/*; grep AnonHuge /proc/PID/smaps_rollup", Why: "whether the share of huge pages grows, and by which setting"}}
		if s.arena == 0 {
			return r
		}
		r.Next = []attach.Next{{Command: "curl -s localhost:PORT/debug/pprof/heap?debug=1 | grep -E 'Sys|HeapReleased|HeapIdle'", Why: "how much memory the Go runtime thinks it holds"}}
	case s.swap >= hugeWorth && s.swap >= hugePart*s.rss:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s of the process is swapped out: touching it takes major faults.", mem(s.swap))
		r.Signs = []attach.Sign{{Cause: "page-fault", Grade: attach.Risk, Proof: []string{swapped}}}
		r.Next = []attach.Next{{Command: "grep -E 'majflt|ctxt' /proc/PID/status; vmstat 1 10",
			Why: "whether pages come in from swap now (si)"}}
	case s.rollup && s.mappings == 1 && s.pss > 0 && s.pss < s.rss/2:
		r.Means = fmt.Sprintf("Most of what is resident is shared: by its share the process holds %s, and not %s; nothing in it costs time by itself.", mem(s.pss), mem(s.rss))
	default:
		r.Means = "It is resident memory by mapping; nothing in it costs time by itself."
	}
	return r
}

// bareSums reports whether values have no unit: somebody's sum over the mappings, as awk prints it.
func bareSums(lines []string) bool {
	for _, t := range lines {
		if strings.HasSuffix(strings.ToLower(t), "kb") {
			return false
		}
	}
	return true
}

// bareSmaps says sums as the counts that they are: the file is in KiB, a sum may be of anything.
func bareSmaps(s memorySums, r attach.Reading) attach.Reading {
	r.Title, r.State = "fields of smaps, summed up, without units", attach.CannotTell
	r.Figures = []string{fmt.Sprintf("%s resident, if they are of KiB as the file itself", mem(s.rss*1024))}
	if s.huge > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%s of it in huge pages (%s)", mem(s.huge*1024),
			percent(ratio(s.huge, s.rss))))
	}
	r.Means = "It is memory of a process, summed up; nothing in it costs time by itself."
	r.Not = "anything about latency, nor which mapping has the memory"
	return r
}
