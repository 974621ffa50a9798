package systool

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// The lines above top's processes, in any language. Where the words are none that are known, a
// line that is whole is read by the places of its figures, which are the same in all languages.
// A figure that was not seen is a gap, and never 0.

var (
	// topPair is a figure and its words: "5.9 us", "0.7%us", "0,3 en espera", "16330672k total".
	// A + stands where figures were cut off.
	topPair = pattern.New(`(\d[\d.]*(?:,\d+)*)([kKmMgGtT]?)(\+?) *%? *(\pL[\pL./]*(?: \pL[\pL.]*)*)`)
	// topLoadLast is the load average at the end of the first line, whatever it is called.
	topLoadLast = pattern.New(`: *([\d.,]*\d), +([\d.,]*\d), +([\d.,]*\d)$`)
	// topNumber is a CPU's number at the start of its shares.
	topNumber = pattern.New(`^(?:%?Cpu)?(\d+) *:`)
	// topOneCPU names a CPU in a line of one or two.
	topOneCPU = pattern.New(`%?Cpu(\d+) *:`)
)

// topPairs gives the figures of a line, which stand behind its colon.
func topPairs(text string) [][]string {
	if _, after, ok := strings.Cut(text, ":"); ok {
		text = after
	}
	return topPair.FindAllStringSubmatch(text, 16)
}

// tasks reads the line of tasks: all, running, sleeping, stopped, zombies.
func (s *screen) tasks(text string) {
	s.threads = strings.HasPrefix(text, "Threads")
	pairs := topPairs(text)
	for i, m := range pairs {
		n, _ := whole(m[1])
		switch word := m[4]; {
		case i == 0:
			s.total = n
		case word == "running", word == "laufend", i == 1 && len(pairs) == 5:
			s.running = n
		case word == "zombie", i == 4 && len(pairs) == 5:
			s.zombies = n
		}
	}
}

// cpuPlaces is the order of the shares in a line of CPUs.
var cpuPlaces = []string{"us", "sy", "ni", "id", "wa", "hi", "si", "st", "gu"}

// impossibleShares is a sum of shares of CPU time, in percent, that rounding does not give.
const impossibleShares = 110

// tornShares says that a line of CPUs is left out, by the sum of its shares; 0: none is.
func (v *verdict) tornShares(sum float64) {
	if sum > 0 {
		v.unsure = true
		v.Flaws = append(v.Flaws, fmt.Sprintf("the shares of CPU time sum to %s %%: they cannot be right, and are left out", plain(sum)))
	}
}

// shares reads a line of CPUs; newer versions print two CPUs on a line.
func (s *screen) shares(text string) {
	for _, m := range topOneCPU.FindAllStringSubmatch(text, 8) {
		if n, ok := whole(m[1]); ok && n < maxCPUs {
			s.cpus, s.named = max(s.cpus, n+1), s.named+1
		}
	}
	for _, one := range strings.Split(text, "%Cpu") {
		c, ok := cpuLine(one)
		if m := topGraph.FindStringSubmatch(one); m != nil {
			c.us, _ = number(m[1])
			c.sy, _ = number(m[2])
			c.id, ok = 100-c.us-c.sy, true
		}
		if sum := c.us + c.sy + c.wa + c.hi + c.si + c.st + c.id; sum > impossibleShares {
			s.torn, ok = sum, false
		}
		if ok && len(s.cpu) < maxCPUs {
			number := -1
			if m := topNumber.FindStringSubmatch(strings.TrimSpace(one)); m != nil {
				number, _ = whole(m[1])
			}
			s.cpu, s.numbers = append(s.cpu, c), append(s.numbers, number)
		}
	}
}

// share notes the share that top calls by a name.
func (c *cpuUse) share(name string, f float64) {
	switch name {
	case "us", "ni", "gu":
		c.us += f
	case "sy":
		c.sy = f
	case "id":
		c.id = f
	case "wa":
		c.wa = f
	case "hi":
		c.hi = f
	case "si":
		c.si = f
	case "st":
		c.st = f
	}
}

// cpuLine reads the shares of one line. They are known where none is missing that matters: what
// was not seen is next to nothing, by what is left of all time.
func cpuLine(text string) (c cpuUse, known bool) {
	c = cpuUse{samples: 1, runnable: -1, blocked: -1}
	pairs := topPairs(text)
	byPlace := (len(pairs) == 8 || len(pairs) == 9) &&
		slices.ContainsFunc(pairs, func(m []string) bool { return !slices.Contains(cpuPlaces, m[4]) })
	seen, sum := map[string]bool{}, 0.0
	for i, m := range pairs {
		name := m[4]
		if byPlace {
			name = cpuPlaces[i]
		}
		f, ok := number(m[1])
		if !ok || !slices.Contains(cpuPlaces, name) {
			continue
		}
		seen[name], sum = true, sum+f
		c.share(name, f)
	}
	return c, seen["us"] && seen["sy"] && seen["id"] && (seen["wa"] && seen["st"] || sum > 100-stealMatters)
}

// memoryPlaces gives the names of a line's amounts where its words are not known. The line of
// memory ends with what has a slash in each language, and that of swap has a point in its middle.
func memoryPlaces(pairs [][]string) (names []string, swap bool) {
	switch {
	case len(pairs) == 4 && strings.Contains(pairs[3][4], "/"):
		return []string{"total", "free", "used", "buff/cache"}, false
	case (len(pairs) == 3 || len(pairs) == 4) && strings.HasSuffix(pairs[2][4], "."):
		return []string{"total", "free", "used", "avail"}, true
	}
	return nil, false
}

// memoryWords are the words that are known of a line of memory.
var memoryWords = []string{"total", "free", "used", "buff/cache", "buffers", "cached", "avail"}

// memoryWord is a word of a line of memory as memoryWords has it: "used." and "avail Mem" too.
func memoryWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return strings.TrimSuffix(word, ".")
}

// cyrillicUnit gives the letter of a unit at the start of a line: "МиБ Mem :" counts in M.
func cyrillicUnit(text string) (letter string, ok bool) {
	r := []rune(text[:min(len(text), 16)])
	if len(r) < 4 || r[2] != 'Б' || r[3] != ' ' {
		return "", false
	}
	at := slices.Index([]rune("КМГТПЭ"), r[0])
	if at < 0 {
		return "", false
	}
	return "KMGTPE"[at : at+1], true
}

// memory reads a line of memory or swap. Amounts have no unit but the line's, and old versions
// print a k behind each.
func (s *screen) memory(text string) {
	unit := 1024.0
	if i := strings.Index(text, "iB "); i == 1 {
		unit, _ = size("1"+text[:1], 1)
		s.mem.unit = unit
	} else if letter, ok := cyrillicUnit(text); ok {
		unit, _ = size("1"+letter, 1)
		s.mem.unit = unit
	}
	before, _, _ := strings.Cut(text, ":")
	swap := strings.Contains(before, "Swap")
	pairs := topPairs(text)
	known := 0
	for _, m := range pairs {
		if slices.Contains(memoryWords, memoryWord(m[4])) {
			known++
		}
	}
	var places []string
	if known < 3 {
		var isSwap bool
		places, isSwap = memoryPlaces(pairs)
		swap = swap || isSwap
	}
	cut := 0.0
	for i, m := range pairs {
		name := memoryWord(m[4])
		if places != nil {
			name = places[i]
		}
		f, ok := size(strings.TrimSuffix(m[1], ",")+m[2], unit)
		if !ok {
			continue
		}
		if m[3] == "+" { // one figure at least was cut off
			if name == "total" && !swap {
				cut = f
			}
			f *= 10
		}
		s.mem.amount(name, swap, f)
	}
	// Some versions count what is used so that all of it sums up to the total.
	if sum := s.mem.used + s.mem.free + s.mem.cache; cut > 0 &&
		(math.Floor(sum/unit/10)*unit == cut || math.Floor(sum/unit/100)*unit == cut) {
		s.mem.total = sum
	}
	if !s.mem.hasAvailable {
		s.mem.available = s.mem.free + s.mem.cache
		if swap && s.mem.available > s.mem.total {
			s.mem.total = 0 // words were changed: what is called cached is something else
		}
	}
}

// amount takes one amount of a line.
func (m *memory) amount(name string, swap bool, f float64) {
	switch {
	case name == "avail":
		m.available, m.hasAvailable = f, true
	case name == "cached" || name == "buff/cache":
		m.cache, m.hasCache = m.cache+f, true
	case name == "buffers":
		m.cache += f
	case swap && name == "total":
		m.swap, m.hasSwap = f, true
	case swap && name == "used":
		m.swapUsed = f
	case swap:
	case name == "total":
		m.total = f
	case name == "free":
		m.free, m.hasFree = f, true
	case name == "used":
		m.used = f
	}
}

// knowsAvailable reports whether top said how much memory is available, or what it adds up from.
func (m *memory) knowsAvailable() bool {
	return m.total > 0 && (m.hasAvailable || m.hasFree && m.hasCache)
}
