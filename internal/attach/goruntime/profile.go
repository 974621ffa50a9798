package goruntime

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format"
)

// profileKind is which of the runtime's profiles something is.
type profileKind string

const (
	profCPU       profileKind = "CPU"
	profMutex     profileKind = "mutex"
	profBlock     profileKind = "block"
	profHeap      profileKind = "heap"
	profAllocs    profileKind = "allocation"
	profGoroutine profileKind = "goroutine"
	profThreads   profileKind = "threadcreate"
	profDelay     profileKind = "contention" // mutex or block
	profOther     profileKind = ""
)

// profile is what a text or a file of pprof says: sums by function, whoever printed them.
type profile struct {
	kind     profileKind
	total    float64 // ns, bytes or goroutines; 0: not printed
	duration float64 // s that it covers; 0: since the start, or not printed
	events   float64 // contentions, objects; 0: not printed
	// perSample: CPU is counted in samples of unknown length.
	perSample bool
	threads   bool    // of a program without goroutines
	objects   bool    // of a heap: counts of objects, no bytes
	own       string  // its name in its address, which is none of the runtime's
	unit      string  // of a table: "ns", "B"; "": none is printed
	typed     string  // what its head says that it counts, which is none of what is read
	vague     bool    // of a heap: live or allocated is not said
	differ    bool    // from another profile: what is negative is less
	accounted float64 // what the rows of a difference add up to, by its head
	shown     float64 // the share of the total that a table shows; 0: all, or not printed
	partial   bool    // a table shows the first rows only
	lacking   bool    // rows that its head counts are not in the text
	headless  bool    // its title and the rows above are cut off
	byCum     bool    // these are sorted by the sum with what a function calls
	flat      map[string]float64
	cum       map[string]float64
	stacks    []sampled // empty: only the sums above are printed
	least     float64   // what is shown comes to, where the rest is cut off and total is not printed
	guessed   bool      // which profile it is: by its functions, since its head is cut off
	unsummed  bool      // total is the sum of what is shown: the text would not tell where it is cut
	unseen    bool      // rows of locks would not be among those that are shown
}

// sampled is one stack, innermost first.
type sampled struct {
	funcs []string
	value float64
	n     float64
}

// add books a stack's value.
func (p *profile) add(s sampled) {
	if len(s.funcs) == 0 {
		return
	}
	p.stacks = append(p.stacks, s)
	p.flat[s.funcs[0]] += s.value
	for i, fn := range s.funcs {
		if !slices.Contains(s.funcs[:i], fn) {
			p.cum[fn] += s.value
		}
	}
}

// sum adds up all stacks.
func (p *profile) sum() (v float64) {
	for _, s := range p.stacks {
		v += s.value
	}
	return v
}

func newProfile(kind profileKind) *profile {
	return &profile{kind: kind, flat: map[string]float64{}, cum: map[string]float64{}}
}

// ReadProfile reads a pprof file, packed or not: CPU, heap, mutex, block, goroutine or
// threadcreate. The name of the file only says of an empty one whether it is of mutexes.
func ReadProfile(name string, data []byte) (attach.Reading, error) {
	raw, err := format.ParseProfile(data)
	if err != nil {
		return attach.Reading{}, err
	}
	return readRaw(name, raw, "pprof file")
}

// readRaw says what a profile with all its stacks says. The form is how it was written.
func readRaw(name string, raw *format.Profile, form string) (attach.Reading, error) {
	at := func(t string) int { return slices.Index(raw.Types, t) }
	value, n := -1, -1
	kind := profOther
	switch raw.Which(name) {
	case format.ProfileCPU:
		kind, value, n = profCPU, at("cpu/nanoseconds"), at("samples/count")
	case format.ProfileMutex:
		kind, value, n = profMutex, at("delay/nanoseconds"), at("contentions/count")
	case format.ProfileBlock:
		kind, value, n = profBlock, at("delay/nanoseconds"), at("contentions/count")
	case format.ProfileHeap:
		kind, value, n = profHeap, at("inuse_space/bytes"), at("inuse_objects/count")
	case format.ProfileGoroutine:
		kind, value, n = profGoroutine, at("goroutine/count"), at("goroutine/count")
	case format.ProfileOther:
		switch {
		case at("threadcreate/count") >= 0:
			kind, value = profThreads, at("threadcreate/count")
		case at("inuse_space/bytes") >= 0: // not of Go
			kind, value, n = profHeap, at("inuse_space/bytes"), at("inuse_objects/count")
		case at("space/bytes") >= 0: // of C++
			kind, value, n = profHeap, at("space/bytes"), at("objects/count")
		case at("delay/nanoseconds") >= 0:
			kind, value, n = profDelay, at("delay/nanoseconds"), at("contentions/count")
		}
	}
	if value < 0 {
		return attach.Reading{}, fmt.Errorf("read profile: it has %v, and is not one of the Go runtime's", raw.Types)
	}
	p := newProfile(kind)
	p.duration = float64(raw.DurationNS) / 1e9
	for _, s := range raw.Stacks {
		v := sampled{funcs: s.Funcs, value: float64(s.Values[value])}
		if n >= 0 {
			v.n = float64(s.Values[n])
		}
		p.total += v.value
		p.events += v.n
		p.add(v)
	}
	if kind == profBlock && !hasNames(p.flat) {
		kind, p.kind = profDelay, profDelay // an unlock's name would tell
	}
	r := p.read(fmt.Sprintf("%s profile (%s)", kind, form))
	if len(p.stacks) > 0 && !hasNames(p.flat) {
		r.Flaws = append(r.Flaws, "it has addresses and no names of functions: go tool pprof PROGRAM PROFILE finds them")
	}
	return r, nil
}

// hasNames reports whether functions have names, and not only addresses.
func hasNames(funcs map[string]float64) bool {
	for fn := range funcs {
		if !strings.HasPrefix(fn, "0x") && fn != "?" {
			return true
		}
	}
	return false
}

// read says what a profile says.
func (p *profile) read(title string) attach.Reading {
	// What used the CPU or holds the memory is no word on health.
	r := attach.Reading{Title: title, State: attach.Context}
	if p.differ {
		p.readDifference(&r)
		return r
	}
	if p.kind == profOther && p.flat["runtime.gopark"] > p.total/2 && p.total > 0 {
		p.kind = profGoroutine // only that one counts goroutines where they are parked
		if p.readGoroutines(&r); len(r.Signs) == 0 && len(r.Next) == 0 {
			r.State = attach.CannotTell
			r.Means += "; whether their number grows is not in it, and its first lines are cut off"
		}
		return r
	}
	switch p.kind {
	case profCPU:
		p.readCPU(&r)
	case profMutex, profBlock, profDelay:
		p.readDelay(&r)
	case profHeap, profAllocs:
		p.readHeap(&r)
	case profGoroutine:
		p.readGoroutines(&r)
	case profThreads:
		r.Figures = []string{fmt.Sprintf("%.0f threads were made", p.total)}
		r.Means, r.Not = "threads that the runtime made since the start", "how many threads run: blocked ones cost no CPU"
	default:
		p.readUnnamed(&r)
	}
	return r
}

// readUnnamed reads sums of which the text does not say what they count.
func (p *profile) readUnnamed(r *attach.Reading) {
	digits, what := 0, ": objects, goroutines or events, for their unit is not printed"
	for _, v := range p.flat {
		if v != math.Trunc(v) {
			digits, what = 1, ", in a unit that is not printed"
		}
	}
	if p.own != "" {
		what = ", of what " + p.own + " counts"
	}
	if p.typed != "" {
		p.readTyped(r)
		return
	}
	plain := func(v float64) string { return strconv.FormatFloat(v, 'f', digits, 64) }
	if p.total > 0 && len(p.flat) > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%.0f in all", p.total)+what)
	}
	p.figures(r, plain)
	r.State, r.Means = attach.CannotTell, "the output does not say which profile it is, so nothing follows from its sums"
	if p.own != "" {
		r.Means = "its address names the profile, " + p.own + "; what that counts, the output does not say"
	}
	if fn := most(p.cum, resolves); fn != "" && p.cum[fn] >= 0.25*p.total && p.total > 0 {
		r.Means += fmt.Sprintf("; %s of it is in the C library's resolution of names (getaddrinfo), which asks a name server and keeps a thread each time", percent(p.cum[fn]/p.total))
	}
	if p.own == "" {
		r.Next = []attach.Next{{Command: "go tool pprof -top FILE", Why: "with its first lines (Type, Duration)"}}
	}
}

// figures adds the functions with most of it.
func (p *profile) figures(r *attach.Reading, unit func(float64) string) {
	named := func(fn string) bool { return !softFloat(fn) } // these have a figure of their own
	own, all := p.busiest()
	if fn := most(p.flat, named); fn != "" && fn == own {
		where := "most"
		if p.lacking {
			where = "most of what is shown"
		}
		if p.softFloat() > 0 {
			where = "most outside the runtime"
		}
		r.Figures = append(r.Figures, fmt.Sprintf("%s: %s, %s%s in itself, %s%s with what it calls", where, fn, unit(p.flat[fn]), p.of(p.flat[fn]), unit(p.cum[fn]), p.of(p.cum[fn]))+
			p.next("; next in itself: ", p.flat, fn, named, unit))
		if caller := p.above(fn); caller != "" {
			r.Figures = append(r.Figures, fmt.Sprintf("most with what it calls, outside the standard library: %s, %s%s", caller, unit(p.cum[caller]), p.of(p.cum[caller])))
		}
		return
	}
	if fn := most(p.flat, named); fn != "" && p.flat[fn] == 0 {
		if fn = most(p.cum, nil); own == "" {
			r.Figures = append(r.Figures, fmt.Sprintf("the rows that are shown use nothing themselves; most with what it calls: %s, %s%s", fn, unit(p.cum[fn]), p.of(p.cum[fn])))
		}
	} else if fn != "" {
		of := ""
		if p.headless || p.lacking || p.partial && p.byCum {
			of = ", of what is shown"
		}
		r.Figures = append(r.Figures, fmt.Sprintf("most in itself%s: %s, %s%s", of, fn, unit(p.flat[fn]), p.of(p.flat[fn]))+
			p.next("; next: ", p.flat, fn, named, unit))
	}
	if own != "" && p.cum[own] >= worthNaming*p.total {
		outside := "outside the runtime"
		if p.headless || p.lacking || p.partial && !p.byCum {
			outside = "of what is shown, outside the runtime"
		}
		if p.cum[most(p.cum, func(fn string) bool { return strings.HasPrefix(fn, "net/http.") })] > p.cum[own] {
			outside += " and net/http"
		}
		if of := most(p.cum, func(fn string) bool { return library(fn) && !strings.HasPrefix(fn, "runtime") }); p.cum[of] > p.cum[own] {
			outside += " and what the system and locks have" // syscall, sync, os
		}
		if all != "" {
			outside += fmt.Sprintf(" (nearly all is below %s)", all)
		}
		r.Figures = append(r.Figures, fmt.Sprintf("most with what it calls, %s: %s, %s%s", outside, own, unit(p.cum[own]), p.of(p.cum[own]))+
			p.next("; next: ", p.cum, own, func(fn string) bool { return ownFunction(fn) && fn != all }, unit))
	}
}

// nextShown is how many functions are named behind the first.
const nextShown = 2

// next names the functions that follow the first one, where they have enough of the whole.
func (p *profile) next(words string, sums map[string]float64, first string, ok func(string) bool,
	unit func(float64) string) string {
	var out []string
	for _, fn := range attach.Largest(sums) {
		if len(out) == nextShown || sums[fn] < worthNaming*p.total || sums[fn] <= 0 {
			break
		}
		if fn != first && ok(fn) && sums[fn] <= sums[first] {
			out = append(out, fmt.Sprintf("%s, %s%s", fn, unit(sums[fn]), p.of(sums[fn])))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return words + strings.Join(out, "; ")
}

// A function that has nearly all with what it calls, and hardly anything itself, only starts what
// the others do. Another one is named, unless it has too little.
const (
	nearlyAll   = 0.9
	hardlyAny   = 0.1
	worthNaming = 0.02 // of the total; with less a function says nothing of the whole
)

// busiest is the program's own function with most, with what it calls, and the one that starts
// nearly all; "": none does.
func (p *profile) busiest() (own, all string) {
	own = most(p.cum, ownFunction)
	starts := func(fn string) bool { return p.cum[fn] >= nearlyAll*p.total && p.flat[fn] < hardlyAny*p.total }
	if own == "" || p.total <= 0 || !starts(own) {
		return own, ""
	}
	below := most(p.cum, func(fn string) bool { return ownFunction(fn) && !starts(fn) })
	if below == "" || p.cum[below] < hardlyAny*p.total {
		return own, ""
	}
	return below, own
}

func (p *profile) of(v float64) string {
	if p.total <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%s)", percent(v/p.total))
}

// ownFunction reports whether a function is likely the program's own.
func ownFunction(fn string) bool {
	return !library(fn) && !strings.HasPrefix(fn, "net/http.") && fn != "runtime.main"
}

// most is the key with the largest value.
func most(m map[string]float64, ok func(string) bool) (best string) {
	for k, v := range m {
		if ok != nil && !ok(k) {
			continue
		}
		if best == "" || v > m[best] || v == m[best] && k < best {
			best = k
		}
	}
	return best
}

func (p *profile) readHeap(r *attach.Reading) {
	unit := func(v float64) string { return finding.Bytes(int64(v)) }
	if p.objects {
		unit = func(v float64) string { return fmt.Sprintf("%.0f objects", v) }
	}
	what := "live"
	switch {
	case p.kind == profAllocs:
		what = "allocated since the start"
	case p.vague:
		what = "live, or allocated since the start: the line that says which (Type) is cut off"
	}
	if p.total > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%s %s", unit(p.total), what))
	} else if p.least > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%s in the samples that are shown, the rest of which are cut off; %s", unit(p.least), what))
	}
	p.tell(r)
	p.figures(r, unit)
	r.Means = "it shows which code allocated the memory"
	r.Not = "anything about latency"
	if p.kind == profAllocs {
		r.Not = "how much memory is in use, for what is garbage by now is counted too; nor anything about latency"
	}
}

// readRows reads one row of a table, or two, that a person quotes.
func (p *profile) readRows(unit string) attach.Reading {
	r := attach.Reading{Title: "a row of a table that pprof printed", State: attach.Context,
		Means: "it says what one function has of a profile", Not: "that others have less: the rest of the table is not here"}
	if len(p.flat) > 1 {
		r.Title = fmt.Sprintf("%d rows of a table that pprof printed", len(p.flat))
		r.Means = "they say what some functions have of a profile"
	}
	write := func(v float64) string { return finding.Duration(int64(v)) }
	if unit == "B" {
		write = func(v float64) string { return finding.Bytes(int64(v)) }
	}
	for _, fn := range slices.Sorted(maps.Keys(p.flat)) {
		r.Figures = append(r.Figures, fmt.Sprintf("%s: %s%s in itself, %s%s with what it calls", fn, write(p.flat[fn]), p.of(p.flat[fn]), write(p.cum[fn]), p.of(p.cum[fn])))
	}
	return r
}

// tellMissing says that the text has few of a table's rows, so that nothing follows from them.
func (p *profile) tellMissing(r *attach.Reading) {
	if !p.lacking || r.State != attach.Healthy && r.State != attach.Context {
		return
	}
	r.State = attach.CannotTell
	r.Means = fmt.Sprintf("the rows that are shown have %s of the whole; what has the rest is cut off, or was not asked for", percent(p.shown))
}

// tell adds to the first figure how much of the whole a table shows, where that is little.
func (p *profile) tell(r *attach.Reading) {
	if n := len(r.Figures); n > 0 && p.shown > 0 && p.shown < 0.5 {
		r.Figures[n-1] += fmt.Sprintf("; the table shows %s of it", percent(p.shown))
	}
}
