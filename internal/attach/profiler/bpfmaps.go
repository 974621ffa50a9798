package profiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var bpfMaps = &attach.Kind{Name: "bpftrace maps", Claim: claimMaps, Read: readMaps,
	Hints: []string{"@", "Attaching "}, Yields: []string{"BPF histogram"}}

var (
	// "@[comm, 12]: 34", "@total: 5", "@x[a]: count 5, average 3, total 15"
	mapRowLine = pattern.New(`^@(\w*)(?:\[(.*)\])?: (-?\d+|count \d+, average -?\d+, total -?\d+)$`)
	// "@[", "@stacks[tid, " where the key is a stack
	mapOpen = pattern.New(`^@(\w*)\[(?:.*,)?$`)
	// "]: 12", ", redis]: 12"
	// a frame of such a key, or the end of one of its stacks
	mapFrame = pattern.New(`^(?:\s|,|0x[0-9a-f]+$|\S+$|.*\+(?:0x)?[0-9a-f]+(?:$| \())`)
	mapClose = pattern.New(`^(?:,\s*)?(.*)\]: (-?\d+)$`)
)

// mapEntry is an entry of a bpftrace map.
type mapEntry struct {
	name, key string
	value     float64
	stats     string     // of stats(): count, average and total, as printed
	stack     stackBlock // of a key that is a stack
}

func claimMaps(lines []paste.Line) int {
	rows, end, open, inside := 0, 0, false, 0
	n := claimed(lines, func(i int, text string) bool {
		switch {
		case open && mapClose.MatchString(text):
			open, rows, end = false, rows+1, i+1
		case open:
			if inside++; inside > 260 || strings.HasPrefix(text, "@") || !mapFrame.MatchString(text) {
				return false
			}
		case mapRowLine.MatchString(text):
			rows++
			end = i + 1
		case mapOpen.MatchString(text):
			open, inside = true, 0
		case preamble(text):
		default:
			return false
		}
		return true
	})
	if rows == 0 {
		return 0
	}
	if open && n == len(lines) { // its end was cut off
		return n
	}
	return end
}

func mapEntries(p *attach.Part) (out []mapEntry) {
	var now *mapEntry
	kernel := true
	for _, text := range texts(p) {
		if m := mapOpen.FindStringSubmatch(text); m != nil {
			now, kernel = &mapEntry{name: m[1]}, true
			continue
		}
		if now == nil {
			if m := mapRowLine.FindStringSubmatch(text); m != nil && len(out) < most {
				e := mapEntry{name: m[1], key: m[2]}
				value := m[3]
				if _, total, ok := strings.Cut(value, "total "); ok {
					value, e.stats = total, value
				}
				e.value, _ = number(value)
				out = append(out, e)
			}
			continue
		}
		if m := mapClose.FindStringSubmatch(text); m != nil {
			now.key = m[1]
			now.value, _ = number(m[2])
			now.stack.value = now.value
			now.stack.owner.comm, _, _ = strings.Cut(m[1], ",")
			if len(out) < most {
				out = append(out, *now)
			}
			now = nil
			continue
		}
		if text == "," || text == ", " {
			kernel = false
			continue
		}
		name, _, _ := strings.Cut(text, "+")
		if name != "" && len(now.stack.names) < 256 {
			now.stack.names = append(now.stack.names, strings.TrimSpace(name))
			if kernel {
				now.stack.kernel++
			}
		}
	}
	return out
}

func readMaps(p *attach.Part) attach.Reading {
	entries := mapEntries(p)
	var blocks []stackBlock
	for _, e := range entries {
		if len(e.stack.names) > 0 {
			blocks = append(blocks, e.stack)
		}
	}
	if len(blocks) > 0 && len(blocks)*2 >= len(entries) {
		return mapStacks(blocks, p)
	}
	slices.SortStableFunc(entries, func(a, b mapEntry) int { return cmp.Compare(b.value, a.value) })
	total := 0.0
	names := map[string]bool{}
	for _, e := range entries {
		total += e.value
		names["@"+e.name] = true
	}
	what := ""
	switch lower := strings.ToLower(p.Command + strings.Join(commentsOf(p), " ")); {
	case strings.Contains(lower, "syscall"):
		what = " of system calls"
	case strings.Contains(lower, "vfs"):
		what = " of file system calls"
	}
	r := attach.Reading{Title: fmt.Sprintf("bpftrace map%s, %s", what,
		attach.Plural(len(entries), "key")), State: attach.CannotTell}
	for _, e := range entries[:min(3, len(entries))] {
		key := "@" + e.name
		if e.key != "" {
			key += "[" + e.key + "]"
		}
		line := fmt.Sprintf("%s %s", key, cmp.Or(e.stats, count(e.value)))
		if len(names) == 1 && total > 0 {
			line += fmt.Sprintf(" (%s)", pct(e.value/total))
		}
		r.Figures = append(r.Figures, line)
	}
	r.Means = "These are values by key; what they count or add up, and over how long, is in the script and not in its output."
	r.Not = "A count is no latency and no cause of slowness."
	r.Next = []attach.Next{record(0, "what threads waited for")}
	return r
}

// commentsOf are the lines that a script printed before its maps.
func commentsOf(p *attach.Part) (out []string) {
	for _, text := range texts(p) {
		if preamble(text) {
			out = append(out, text)
		}
	}
	return out
}

// mapStacks reads a map whose keys are stacks. What they count, the program's text says.
func mapStacks(blocks []stackBlock, p *attach.Part) attach.Reading {
	total, off, samples := 0.0, 0.0, 0.0
	for i := range blocks {
		b := &blocks[i]
		total += b.value
		if offCPUStack(b.names) {
			off += b.value
		}
		samples = max(samples, b.value)
	}
	if total > 0 && off >= 0.8*total {
		r := offCPUReading(blocks, false, false)
		r.Title = "bpftrace stacks, " + r.Title
		unitless(&r)
		return r
	}
	if probed(p) || oneProbe(blocks) {
		return countedStacks(blocks)
	}
	r := onCPUReading(blocks, "bpftrace stacks")
	if strings.Contains(p.Command+p.Script, "profile:") {
		return r
	}
	demote(&r)
	r.Not = "That they are CPU samples is taken from the functions; counts of an event look the same."
	return r
}
