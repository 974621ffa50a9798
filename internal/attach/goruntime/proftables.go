package goruntime

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// tables takes the lines of a part one by one.
type tables struct {
	p              *profile
	unit           string
	open           *sampled // of -traces: the stack that is read
	listed         bool
	byRow, largest float64 // the total, by the percentage of the largest row
	rows, titles   int
	last           row      // of the table that is read
	byCum          bool     // its rows are sorted by the sum with what they call
	above, below   []string // of -peek and -tree: who calls a function, and what it calls
}

// neighbours says who calls the one function of a table, and what it calls.
func (t *tables) neighbours() string {
	var out []string
	for _, side := range []struct {
		title string
		lines []string
	}{{"called by ", t.above}, {"it calls ", t.below}} {
		if n := len(side.lines); n > 3 {
			side.lines = append(side.lines[:3:3], fmt.Sprintf("%d more", n-3))
		}
		if len(side.lines) > 0 {
			out = append(out, side.title+strings.Join(side.lines, ", "))
		}
	}
	return strings.Join(out, "; ")
}

// neighbour parses "0.36s  9.02% |   runtime.asyncPreempt" to "runtime.asyncPreempt (0.36s)".
func neighbour(text string) string {
	sums, fn, ok := strings.Cut(text, "% |")
	f, g := strings.Fields(sums), strings.Fields(fn)
	if !ok || len(f) == 0 || len(g) == 0 || f[0] == "0" {
		return ""
	}
	return fmt.Sprintf("%s (%s)", goName(g[0]), f[0])
}

func (t *tables) closeTrace() {
	if t.open != nil {
		t.p.add(*t.open)
	}
	t.open = nil
}

func (t *tables) take(text string) {
	what, r := pprofLine(text)
	switch {
	case what == profHead:
		t.p.head(strings.TrimSpace(text))
	case what == profTitle:
		t.titles++
		t.last, t.byCum = row{}, false
	case what == profRow:
		t.byCum = t.byCum || t.last.fn != "" && r.flat > t.last.flat
		t.last = r
		if t.unit == "" {
			t.unit = r.unit
		}
		if v := max(r.flat, r.cum); v > t.largest && r.total > 0 {
			t.byRow, t.largest = r.total, v
		}
		t.rows++
		t.p.differ = t.p.differ || r.flat < 0 || r.cum < 0
		t.p.book(r)
	case what == profPlain:
		if line := neighbour(text); line == "" {
		} else if t.rows == 0 {
			t.above = append(t.above, line)
		} else {
			t.below = append(t.below, line)
		}
	case what == profListed:
		t.listed = true
	case what == profRule:
		t.closeTrace()
	case what == profNone && !t.listed && traceLine(text):
		f := strings.Fields(text)
		v, u, ok := amount(f[0])
		if ok && len(f) > 1 {
			t.closeTrace()
			t.open = &sampled{value: v}
			t.unit = u
			f = f[1:]
		}
		if t.open != nil && len(t.open.funcs) < 256 && !strings.HasSuffix(f[0], ":") {
			t.open.funcs = append(t.open.funcs, f[0])
		}
	}
}

// leastRows is the share of what a table's head promises from which its rows are all there.
const leastRows = 0.25

// missing notes that rows of a table are cut off, or were not asked for: those that are there have
// less than its head says.
func (p *profile) missing(rows int) {
	sum := 0.0
	for _, v := range p.flat {
		sum += v
	}
	if rows == 0 || p.differ || p.total <= 0 || p.shown < leastRows || sum >= leastRows*p.shown*p.total {
		return
	}
	p.shown, p.partial, p.lacking = sum/p.total, true, true
}

// locksListed reports whether the last table would have a row of a lock that many wait for. Rows
// are sorted by their own sum and then by name, or by the sum with what they call.
func (t *tables) locksListed() bool {
	switch {
	case t.byCum:
		return t.last.cum < manyWaiters
	default:
		return t.last.flat == 0 && t.last.fn > "sync.(*RWMutex).RLock"
	}
}

// book keeps a function's sums. A session may print the same function several times.
func (p *profile) book(r row) {
	if old, has := p.flat[r.fn]; !has || math.Abs(r.flat) > math.Abs(old) {
		p.flat[r.fn] = r.flat
	}
	if old, has := p.cum[r.fn]; !has || math.Abs(r.cum) > math.Abs(old) {
		p.cum[r.fn] = r.cum
	}
}

// topOf is how many rows of how many a table has.
var topOf = pattern.New(`^Showing top (\d+) nodes out of (\d+)`)

// head takes "Type: cpu", "Duration: 6.05s, Total samples = 11.88s (196.50%)" and "Showing nodes
// accounting for 10.91s, 91.84% of 11.88s total".
func (p *profile) head(t string) {
	t = strings.TrimPrefix(t, "(pprof) ")
	if rest, ok := strings.CutPrefix(t, "Type: "); ok {
		p.kind = map[string]profileKind{"cpu": profCPU, "samples": profCPU, "delay": profDelay,
			"inuse_space": profHeap, "inuse_objects": profHeap, "space": profHeap, "alloc_space": profAllocs,
			"alloc_objects": profAllocs, "goroutine": profGoroutine, "threadcreate": profThreads}[rest]
		p.objects, p.perSample, p.typed = strings.HasSuffix(rest, "_objects"), rest == "samples", ""
		if p.kind == profOther {
			p.typed = rest
		}
	}
	if strings.HasPrefix(t, "Fetching profile ") {
		p.named(t)
	}
	if v, ok := oldTotal(t); ok {
		if p.total == 0 {
			p.total = v
		}
		f := strings.Fields(strings.Trim(t, ")"))
		share, _ := number(strings.Trim(f[len(f)-1], "(%"))
		p.shown = max(p.shown, share/100)
	}
	if m := topOf.FindStringSubmatch(t); m != nil && m[1] != m[2] {
		p.partial = true
	}
	if rest, ok := strings.CutPrefix(t, "Total: "); ok && strings.HasSuffix(rest, " samples") {
		p.kind, p.perSample = profCPU, true
		p.total, _ = number(firstWord(rest))
	}
	if rest, ok := strings.CutPrefix(t, "Duration: "); ok {
		d, total, _ := strings.Cut(rest, ", Total samples = ")
		if v, unit, isTime := amount(strings.TrimSpace(d)); isTime && unit == "ns" {
			p.duration = v / 1e9
		}
		if v, _, isAmount := amount(firstWord(total)); isAmount {
			p.total = v
		}
	}
	if sums, rest, ok := strings.Cut(t, "% of "); ok && strings.HasPrefix(t, "Showing nodes") {
		share, _ := number(strings.TrimPrefix(sums[strings.LastIndexByte(sums, ' ')+1:], "-"))
		p.shown = max(p.shown, share/100)
		p.differ = p.differ || strings.HasPrefix(t, "Showing nodes accounting for -")
		if v, _, isAmount := signed(strings.Trim(firstWord(strings.TrimPrefix(sums, "Showing nodes accounting for ")), ",")); isAmount {
			p.accounted = v
		}
		if v, _, isAmount := amount(firstWord(rest)); isAmount && p.total == 0 {
			p.total = v
		}
	}
}

// named takes the profile from the address that a person fetched, where the head is cut off.
func (p *profile) named(command string) {
	if p.kind != profOther {
		return
	}
	address, name, _ := strings.Cut(command, "debug/pprof/")
	if end := strings.IndexFunc(name, func(r rune) bool { return !inName(r) }); end >= 0 {
		name = name[:end]
	}
	name = strings.TrimRight(name, "./-_")
	p.kind = runtimeProfiles[name]
	switch {
	case p.kind != profOther:
	case strings.Contains(address[strings.LastIndexAny(address, " \t")+1:], "://"):
		p.own = name
	default: // a file in a folder of that name
		letters, _, _ := strings.Cut(strings.ReplaceAll(strings.ReplaceAll(name, "_", "."), "-", "."), ".")
		p.kind = runtimeProfiles[letters]
	}
}

// inName reports whether a profile's name in an address may have the letter.
func inName(r rune) bool {
	return r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-/", r))
}

// runtimeProfiles are the names that the runtime's profiles have as addresses.
var runtimeProfiles = map[string]profileKind{"profile": profCPU, "mutex": profMutex, "block": profBlock,
	"heap": profHeap, "allocs": profAllocs, "goroutine": profGoroutine, "threadcreate": profThreads}

// guess says which profile it is where its head is cut off: by its unit and functions.
func (p *profile) guess(unit string) {
	if p.kind == profDelay || p.kind == profOther && p.typed == "" && unit == "ns" {
		headless := p.kind == profOther
		unlocks, waits := 0.0, 0.0
		for fn, v := range p.flat {
			switch {
			case strings.HasPrefix(fn, "sync.(*") && strings.HasSuffix(fn, "nlock"),
				fn == "internal/sync.(*Mutex).Unlock", strings.HasPrefix(fn, "runtime._LostContended"):
				unlocks += v
			case waitFuncs[strings.TrimPrefix(fn, "internal/")]:
				waits += v
			}
		}
		// A CPU profile has these functions too, for the little that they compute themselves.
		shown := attach.Sum(slices.Collect(maps.Values(p.flat)))
		switch {
		case unlocks > 0 && (p.kind == profDelay || unlocks >= mostWaits*shown):
			p.kind = profMutex
		case waits > 0 && (p.kind == profDelay || waits >= mostWaits*shown):
			p.kind = profBlock
		}
		p.guessed = headless && p.kind != profOther
	}
	switch {
	case p.kind != profOther, p.typed != "":
	case unit == "B":
		p.kind, p.vague = profHeap, true
	case unit == "ns":
		p.kind, p.guessed = profCPU, true // its flat functions are no waits
	}
}

// waitFuncs are the functions that block profiles count: their time is a wait.
var waitFuncs = map[string]bool{
	"runtime.selectgo": true, "runtime.chanrecv1": true, "runtime.chanrecv2": true,
	"runtime.chansend1": true, "runtime.chanrecv": true, "runtime.chansend": true,
	"sync.(*Mutex).Lock": true, "sync.(*RWMutex).Lock": true, "sync.(*RWMutex).RLock": true,
	"sync.(*WaitGroup).Wait": true, "sync.(*Cond).Wait": true,
}

// mostWaits is the share of what a table shows that is in such functions, where it is of waits.
const mostWaits = 0.8
