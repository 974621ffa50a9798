package systool

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
)

var free = &attach.Kind{
	Name:  "free",
	Hints: []string{"total", "ache", "cach", "Mem", "Swap", "缓存", "内存", "キャッシュ", "буф"},
	Claim: claimFree,
	Read:  readFree,
}

// freeRow takes a row's label: Mem:, Swap:, the row that free had before 3.3.10, and the words of
// other languages.
func freeRow(text string) (label string, cells []string) {
	if rest, ok := strings.CutPrefix(strings.TrimSpace(text), "-/+ "); ok {
		_, after, ok := strings.Cut(rest, ":")
		if !ok {
			return "", nil
		}
		return "-/+", fields(after)
	}
	before, after, ok := strings.Cut(strings.TrimSpace(text), ":")
	// Chinese writes a colon of double width.
	if !ok {
		if before, after, ok = strings.Cut(strings.TrimSpace(text), "："); !ok {
			return "", nil
		}
	}
	if strings.ContainsAny(before, "\t0123456789") || len(before) > 24 {
		return "", nil
	}
	return before, fields(after)
}

// freeMemory reports whether a row is the one of memory: six amounts, of which the first is all.
func freeMemory(label string, cells []string) bool {
	return label != "" && label != "-/+" && !strings.Contains(label, " ") && len(cells) >= 5 &&
		len(cells) <= 7 && freeAmounts(cells)
}

func freeAmounts(cells []string) bool {
	return len(cells) > 0 && !slices.ContainsFunc(cells, func(c string) bool { _, ok := size(c, 1); return !ok })
}

// freeHeader is the line of names. It starts with the name of the total, in any language.
func freeHeader(text string) bool {
	f := fields(text)
	if len(f) < 5 || len(f) > 8 {
		return false
	}
	return f[0] == "total" && (f[1] == "used" || f[1] == "usado") && f[2] == "free" ||
		slices.ContainsFunc(f, func(s string) bool { return strings.IndexByte(s, '/') > 0 }) &&
			!strings.ContainsAny(text, "0123456789:")
}

// freeSwap reports whether a row of swap, torn from the one of memory, is free's by its units.
func freeSwap(cells []string) bool {
	return len(cells) == 3 && freeAmounts(cells) &&
		!slices.ContainsFunc(cells[:2], func(c string) bool { _, bare := number(c); return bare && c != "0" })
}

var freeLabels = []string{"Mem", "Swap", "Low", "High", "Total", "-/+", "Comm", "Speicher",
	"Auslager", "Spch", "内存", "交换", "Mém", "Mem.", "Inter", "Память", "Подкачка", "Memoria", "メモリ", "スワップ"}

func claimFree(lines []paste.Line) int {
	seen := false
	return attach.ClaimWhile(lines, func(at int, text string) bool {
		if freeHeader(text) {
			next, ok := following(lines, at+1)
			return ok && freeMemory(freeRow(next.Text))
		}
		label, cells := freeRow(text)
		if label == "Mem" && freeMemory(label, cells) {
			seen = true
			return true
		}
		known := slices.Contains(freeLabels, label)
		if at > 0 && !known && freeHeader(lines[at-1].Text) && freeMemory(label, cells) {
			seen = true
			return true
		}
		if at == 0 && label == "Swap" && freeSwap(cells) {
			seen = true
			return true
		}
		return (known || seen && len(cells) == 3) && freeAmounts(cells) && len(cells) >= 2 &&
			len(cells) <= 7 && (seen || at > 0 && known)
	})
}

// memory is one report of free, in bytes.
type memory struct {
	total, used, free, cache, available float64
	shared                              float64 // of the cache, where available had to be summed up
	buffers                             float64 // of the cache, where they stand apart
	held                                float64 // used without the cache, where a row says so
	swap, swapUsed                      float64
	hasAvailable, hasSwap               bool
	hasFree, hasCache                   bool    // of top, which may be cut off, or be in another language
	partial                             bool    // the page cache is not counted apart
	cut                                 bool    // since the row is cut off
	bare                                bool    // nothing says of which unit the amounts are
	unit                                float64 // of amounts without one; 0 or 1: none
}

// leastKiB is less than any machine has: a smaller total is of a larger unit, as where free is an
// alias.
const leastKiB = 8 << 10

// Between these a total without a unit may be MiB as well as GiB.
const (
	leastMiB = 200
	mostGiB  = 1500
)

// freeUnit guesses what a figure without a unit is: kilobytes unless an option says otherwise, or
// the total would be less than any machine has.
func freeUnit(p *attach.Part, total float64) float64 {
	for letter, unit := range map[byte]float64{'b': 1, 'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30} {
		if option(p, letter) && strings.Contains(p.Command, "free") {
			return unit
		}
	}
	switch words := fields(p.Command); {
	case len(words) > 0 && !strings.Contains(p.Command, "-") && total >= leastKiB &&
		strings.HasSuffix(words[len(words)-1], "free"):
		return 1 << 10 // its only unit without an option
	}
	switch {
	case total < mostGiB:
		return 1 << 30
	case total < 300e3:
		return 1 << 20
	case total < 64e9/4:
		return 1 << 10
	}
	return 1
}

func parseFree(p *attach.Part) (all []memory, guessed bool) {
	names, printed := []string{}, "" // printed is the total of the last report, as it stands there
	for _, l := range p.Lines {
		if freeHeader(l.Text) {
			names = fields(l.Text)
			continue
		}
		label, cells := freeRow(l.Text)
		if freeMemory(label, cells) {
			printed = cells[0]
			total, bare := number(printed)
			guessed = guessed || bare && p.Command == ""
			all = append(all, freeReport(names, cells, freeUnit(p, total)))
			continue
		}
		if len(all) == 0 || !freeAmounts(cells) {
			continue
		}
		m := &all[len(all)-1]
		unit := 1.0
		if total, ok := number(printed); ok {
			unit = freeUnit(p, total)
		}
		switch {
		case label == "-/+" && len(cells) >= 2:
			m.held, _ = size(cells[0], unit)
			without, _ := size(cells[1], unit)
			m.available = max(m.free, without-m.shared)
		case len(cells) == 3 && label != "Low" && label != "High" && label != "Total" && label != "Comm":
			m.swap, _ = size(cells[0], unit)
			m.swapUsed, _ = size(cells[1], unit)
			m.hasSwap = true
		}
	}
	return all, guessed
}

func freeReport(names, cells []string, unit float64) (m memory) {
	at := func(i int) float64 { f, _ := size(cells[i], unit); return f }
	m.total, m.used, m.free = at(0), at(1), at(2)
	if _, bare := number(cells[0]); bare {
		m.unit = unit
	}
	switch {
	case slices.Contains(names, "buffers") && slices.Contains(names, "cached"):
		// Shared memory and tmpfs are in the cache, and only swap takes them.
		m.cache, m.shared, m.buffers = at(4)+at(5), at(3), at(4)
		m.available = m.free + max(0, m.cache-m.shared)
	case len(cells) == 5 && len(names) >= 5 && names[4] != "buffers": // a terminal cut the row off
		m.partial, m.cut = true, true
	case len(cells) == 5: // old busybox does not count the page cache apart
		m.buffers, m.cache, m.partial = at(4), at(4), true
		m.available = m.free + m.cache
	case len(cells) == 7: // -w: buffers and cache apart
		m.cache, m.available, m.hasAvailable = at(4)+at(5), at(6), true
	default:
		m.cache, m.available, m.hasAvailable = at(4), at(5), true
	}
	return m
}

func readFree(p *attach.Part) attach.Reading {
	all, guessed := parseFree(p)
	v := &verdict{}
	v.Title, v.Glance = "free", true
	if len(all) == 0 {
		v.unsure = true
		if _, cells := freeRow(p.Lines[0].Text); freeSwap(cells) {
			all, _ := size(cells[0], 1)
			used, _ := size(cells[1], 1)
			v.figure("swap used %s of %s", bytes(used), bytes(all))
		}
		v.means("there is no row of memory in it")
		return v.done()
	}
	if len(all) > 1 {
		v.Title = fmt.Sprintf("free, %d reports; the last counts", len(all))
	}
	m := all[len(all)-1]
	total := m.total / max(m.unit, 1)
	switch {
	case guessed && total >= leastMiB && total < mostGiB:
		m.bare = true
		v.Flaws = append(v.Flaws, "the unit is not in it: MiB of a small machine, or GiB of a large one")
	case guessed:
		v.Flaws = append(v.Flaws, "the unit is not in it: "+bytes(m.total)+" in all is the likely reading")
	}
	m.judge(v)
	m.since(v, all)
	return v.done()
}

// since holds the last report against the first one, which may be of another machine.
func (m memory) since(v *verdict, all []memory) {
	if !m.bare && !m.partial {
		v.fact(attach.MemoryTotal, m.total)
	}
	first := all[0]
	switch {
	case len(all) < 2 || m.total <= 0 || m.partial:
	case math.Abs(first.total-m.total) > 0.1*m.total:
		v.Title = fmt.Sprintf("free, %d reports of machines with different amounts of memory; the last counts", len(all))
	case math.Abs(first.available-m.available) >= 0.05*m.total:
		v.Figures = slices.Insert(v.Figures, min(1, len(v.Figures)),
			fmt.Sprintf("%s %s in the first report, and swap used %s", m.left(), m.show(first.available), m.show(first.swapUsed)))
	}
}

// Shares of all memory that are available.
const (
	memoryShort = 0.05
	memoryLow   = 0.10
)

func (m memory) judge(v *verdict) {
	if m.total <= 0 {
		v.unsure = true
		v.means("the total is 0")
		return
	}
	if m.cut {
		v.unsure = true
		v.figure("free %s of %s", m.show(m.free), m.show(m.total))
		if m.swap > 0 {
			v.figure("swap used %s of %s", m.show(m.swapUsed), m.show(m.swap))
		}
		v.means("its rows are cut off at the right, so how much memory can be had is not in it")
		v.next("grep -E 'MemFree|MemAvailable|^Cached' /proc/meminfo", "how much is available")
		return
	}
	if m.partial {
		v.unsure = true
		v.figure("free %s and %s of buffers, of %s", m.show(m.free), m.show(m.buffers), m.show(m.total))
		v.means("it counts the page cache as used, so how much memory can be had is not in it")
		v.next("grep -E 'MemFree|MemAvailable|^Cached' /proc/meminfo", "how much is available")
		return
	}
	share := m.available / m.total
	rounded := !m.bare && m.unit == 1<<30 && m.unit > memoryLow*m.total/2
	if rounded {
		v.figure("%s %s of %s (about %.0f %%)", m.left(), m.show(m.available), m.show(m.total), 100*share)
	} else {
		held := ""
		if m.held > 0 {
			held = fmt.Sprintf("; %s used without the cache (%s %%)", m.show(m.held), plain(100*m.held/m.total))
		}
		v.figure("%s %s of %s (%s %%)%s", m.left(), m.show(m.available), m.show(m.total), plain(100*share), held)
	}
	stays := ""
	if m.shared >= memoryShort*m.total {
		stays = fmt.Sprintf(", of which %s is shared memory (tmpfs) and is not given up", m.show(m.shared))
	}
	if m.buffers > 0 {
		v.figure("free %s, page cache %s and %s of buffers%s", m.show(m.free),
			m.show(m.cache-m.buffers), m.show(m.buffers), stays)
	} else {
		v.figure("free %s, page cache %s%s", m.show(m.free), m.show(m.cache), stays)
	}
	if m.swap > 0 {
		v.figure("swap used %s of %s", m.show(m.swapUsed), m.show(m.swap))
	} else if m.hasSwap {
		v.figure("no swap")
	}
	v.fact(MemoryAvailable, share)
	if !m.bare {
		v.fact(PageCacheBytes, m.cache)
	}
	if m.swap > 0 && !m.bare {
		v.fact(SwapUsed, m.swapUsed)
	}
	proof := v.Figures[0]
	switch {
	case share < memoryShort:
		v.candidate("direct-reclaim", 0, proof)
		v.candidate("page-fault", 0, proof)
		v.means("memory is nearly used up: only %s is %s", m.show(m.available), m.left())
		v.not("how often threads free memory themselves, or fault pages in again, is not in it")
		v.next("vmstat 1 10", "si and so: whether pages come back from swap")
		v.next("sar -B 1 10", "pgscand/s: whether threads free memory themselves; majflt/s")
	case rounded && share < memoryLow+m.unit/m.total:
		v.unsure = true
		v.means("memory may be scarce: about %.0f %% is %s, and %s are neither free nor cache; figures in GiB are too coarse to tell", 100*share, m.left(), m.show(m.total-m.available))
		v.not("whose it is: the kernel's own memory (slab) counts as used, and no process shows it")
		v.next("grep -E 'MemAvailable|AnonPages|Slab|SUnreclaim|Shmem' /proc/meminfo",
			"how much is available, and who holds the rest")
		v.next("vmstat 1 10", "si and so: whether pages come back from swap")
	case share < memoryLow:
		v.unsure = true
		v.means("memory is getting scarce: %s %% is %s", plain(100*share), m.left())
		v.next("vmstat 1 10", "si and so: whether pages come back from swap")
	case !m.bare && m.free < 0.005*m.total && m.total >= 32<<30:
		v.risk("direct-reclaim",
			fmt.Sprintf("free %s (%s %%) of %s, page cache %s: if vm.min_free_kbytes is small, allocations may have to free memory first",
				m.show(m.free), plain(100*m.free/m.total), m.show(m.total), m.show(m.cache)))
		v.means("memory is not short: %s is %s; little of it is free at once", m.show(m.available), m.left())
		v.next("sysctl vm.min_free_kbytes vm.watermark_scale_factor", "a few MB are little on a machine of this size")
		v.next("grep -E 'allocstall|compact_stall' /proc/vmstat; sleep 10; grep -E 'allocstall|compact_stall' /proc/vmstat", "whether allocations stall")
	case m.swap > 0 && m.swapUsed > 0.8*m.swap:
		v.unsure = true
		v.means("memory is available, and swap is %s %% full: pages that went there once need not be missed", plain(100*m.swapUsed/m.swap))
		v.next("vmstat 1 10", "si: whether pages come back from swap")
	case m.shared >= memoryShort*m.total:
		v.means("memory is not short: %s is %s", m.show(m.available), m.left())
	default:
		v.means("memory is not short: the page cache is given up when memory is wanted")
		v.not("little free memory is no shortage; what counts is what is available")
	}
}

// left is the word for what could be had: tools that do not say what is available leave free memory
// and page cache to be summed up.
func (m memory) left() string {
	switch {
	case m.hasAvailable:
		return "available"
	case m.shared > 0:
		return "free or cached without shared memory"
	}
	return "free or cached"
}

func bytes(f float64) string { return finding.Bytes(bounded(f)) }

// show writes an amount in the unit that the tool used, so that it can be found again.
func (m memory) show(f float64) string {
	switch {
	case m.bare:
		return plain(math.Round(f / m.unit))
	case m.unit == 1<<20 && f < 100<<30:
		return plain(math.Round(f/(1<<20))) + " MiB"
	case m.unit == 1<<30:
		return plain(f/(1<<30)) + " GiB"
	}
	return bytes(f)
}
