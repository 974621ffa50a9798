package goruntime

import (
	"fmt"
	"slices"
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
	vague     bool    // of a heap: live or allocated is not said
	differ    bool    // from another profile: what is negative is less
	shown     float64 // the share of the total that a table shows; 0: all, or not printed
	flat      map[string]float64
	cum       map[string]float64
	stacks    []sampled // empty: only the sums above are printed
	least     float64   // what is shown comes to, where the rest is cut off and total is not printed
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
	r := attach.Reading{Title: title, State: attach.Healthy}
	if p.differ {
		p.readDifference(&r)
		return r
	}
	if p.kind == profOther && p.flat["runtime.gopark"] > p.total/2 && p.total > 0 {
		p.kind = profGoroutine // only that one counts goroutines where they are parked
		if p.readGoroutines(&r); r.State == attach.Healthy {
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
		p.figures(&r, func(v float64) string { return fmt.Sprintf("%.4g", v) })
		r.State, r.Means = attach.CannotTell, "which profile it is was cut off, so nothing follows from its sums"
		if fn := most(p.cum, resolves); fn != "" && p.cum[fn] >= 0.25*p.total && p.total > 0 {
			r.Means += fmt.Sprintf("; %s of it is in the C library's resolution of names (getaddrinfo), which asks a name server and keeps a thread each time", percent(p.cum[fn]/p.total))
		}
		r.Next = []attach.Next{{Command: "go tool pprof -top FILE", Why: "with its first lines (Type, Duration)"}}
	}
	return r
}

// figures adds the functions with most of it.
func (p *profile) figures(r *attach.Reading, unit func(float64) string) {
	if fn := most(p.flat, nil); fn != "" && fn == most(p.cum, ownFunction) {
		r.Figures = append(r.Figures, fmt.Sprintf("most: %s, %s%s in itself, %s%s with what it calls", fn, unit(p.flat[fn]), p.of(p.flat[fn]), unit(p.cum[fn]), p.of(p.cum[fn])))
		return
	}
	if fn := most(p.flat, nil); fn != "" {
		of := ""
		if p.shown > 0 && p.shown < 0.5 {
			of = ", of what is shown"
		}
		r.Figures = append(r.Figures, fmt.Sprintf("most in itself%s: %s, %s%s", of, fn, unit(p.flat[fn]), p.of(p.flat[fn])))
	}
	if fn := most(p.cum, ownFunction); fn != "" {
		outside := "outside the runtime"
		if p.cum[most(p.cum, func(fn string) bool { return strings.HasPrefix(fn, "net/http.") })] > p.cum[fn] {
			outside += " and net/http"
		}
		r.Figures = append(r.Figures, fmt.Sprintf("most with what it calls, %s: %s, %s%s", outside, fn, unit(p.cum[fn]), p.of(p.cum[fn])))
	}
}

// runtimeShare says which of the runtime's services took much of the CPU with all that it calls:
// allocation, maps, copies, stacks that are walked, the search for work. Functions that only start
// others are none.
func (p *profile) runtimeShare(unit func(float64) string) string {
	fn := most(p.cum, func(fn string) bool {
		return strings.HasPrefix(fn, "runtime.") && p.cum[fn] > 1.2*p.flat[fn] && !slices.Contains(gcRoots, fn) && !slices.Contains(runtimeStarts, fn) && !strings.HasPrefix(fn, "runtime.gcDrain") && !strings.Contains(fn, ".func")
	})
	if fn == "" || p.total <= 0 || p.cum[fn] < 0.2*p.total {
		return ""
	}
	text := fmt.Sprintf("most with what it calls, in the runtime: %s, %s%s", fn, unit(p.cum[fn]), p.of(p.cum[fn]))
	if fn == "runtime.findRunnable" || fn == "runtime.findrunnable" {
		text += ", the scheduler's search for goroutines to run"
	}
	if slices.Contains(runtimeLocks, fn) {
		text += ", the runtime's own locks, for which threads spin and sleep"
	}
	return text
}

// runtimeLocks take the locks of the runtime itself, which are no sync.Mutex.
var runtimeLocks = []string{"runtime.lock", "runtime.lock2", "runtime.lockWithRank"}

// locksShare is the share of the CPU below the runtime's own locks.
func (p *profile) locksShare() (share float64) {
	for _, fn := range runtimeLocks {
		share = max(share, ratio(p.cum[fn], p.total))
	}
	return share
}

// runtimeStarts are below or above all others, so that their sums say nothing.
var runtimeStarts = []string{"runtime.goexit", "runtime.main", "runtime.mcall", "runtime.systemstack", "runtime.mstart", "runtime.mstart0", "runtime.mstart1",
	"runtime.morestack", "runtime._ExternalCode", "runtime._System", "runtime._GC", "runtime.rt0_go", "runtime.park_m", "runtime.schedule"}

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

// poolFunction reports whether a function only waits where a pool of connections has none free.
func poolFunction(fn string) bool {
	return fn == "database/sql.(*DB).conn" || strings.HasPrefix(fn, "github.com/jackc/puddle") && strings.Contains(fn, ".Acquire") ||
		strings.Contains(fn, "/pool.(*ConnPool).waitTurn")
}

// innermost is the function with the smallest sum that is still most of the waiting: those above it
// only call it. Where none has half, it is the one with the largest.
func innermost(cum map[string]float64, total float64, ok func(string) bool) (best string) {
	top := most(cum, ok)
	for _, v := range cum {
		total = max(total, v)
	}
	for k, v := range cum {
		if !ok(k) || v < total/2 || v > cum[top] {
			continue
		}
		if best == "" || v < cum[best] || v == cum[best] && k < best {
			best = k
		}
	}
	if best == "" {
		return top
	}
	return best
}

// gcRoots are below which all work of GC is done; workers of idle priority give way and are taken
// off.
var gcRoots = []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge"}

// gcInside are functions of marking, for outputs that show only the largest.
var gcInside = []string{"runtime.scanobject", "runtime.scanObject", "runtime.scanSpan", "runtime.greyobject", "runtime.findObject", "runtime.markBits", "runtime.(*gcWork)", "runtime.gcDrain", "runtime.scanblock",
	"runtime.gcmarknewobject", "runtime.tryDeferToSpanScan", "runtime.(*gcBits)", "runtime.heapBits", "runtime.(*lfstack)", "runtime.gcMarkDone", "runtime.wbBufFlush", "runtime.spanClass.sizeclass", "runtime.(*mspan).moveInlineMarks",
	"runtime.typePointers", "runtime.getempty", "runtime.trygetfull", "runtime.spanOf", "runtime.(*spanInlineMarkBits)", "internal/runtime/gc/scan."}

// gcShare is GC's share of a CPU profile, at least.
func (p *profile) gcShare() float64 {
	if p.total <= 0 {
		return 0
	}
	var ns float64
	for _, s := range p.stacks {
		if hasAny(s.funcs, gcRoots) && !hasAny(s.funcs, []string{"runtime.gcDrainMarkWorkerIdle"}) {
			ns += s.value
		}
	}
	if len(p.stacks) == 0 {
		for _, fn := range gcRoots {
			ns += p.cum[fn]
		}
		ns -= p.cum["runtime.gcDrainMarkWorkerIdle"]
		var inside float64
		for fn, v := range p.flat {
			if hasPrefix(fn, gcInside) {
				inside += v
			}
		}
		ns = max(ns, inside-p.cum["runtime.gcDrainMarkWorkerIdle"])
	}
	return max(0, min(1, ns/p.total))
}

func hasAny(funcs, roots []string) bool {
	return slices.ContainsFunc(funcs, func(fn string) bool { return slices.Contains(roots, fn) })
}

func hasPrefix(fn string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(fn, p) })
}

// Floors of a CPU profile, as frequent-gc has them for a process.
const (
	gcOfUsed  = 0.40 // of the CPU that is used, from which GC is too much
	gcUnclear = 0.25
	gcSome    = 0.10 // from which it comes before what functions used
	gcLeast   = 0.05 // of one CPU

	runtimeLocked = 0.25 // of the CPU used, for locks that take no time in a program that is well
)

func (p *profile) readCPU(r *attach.Reading) {
	unit := func(v float64) string { return finding.Duration(int64(v)) }
	if p.perSample {
		unit = func(v float64) string { return fmt.Sprintf("%.0f samples", v) }
	}
	cpus := ratio(p.total/1e9, p.duration)
	switch {
	case p.duration > 0:
		r.Figures = append(r.Figures, fmt.Sprintf("%s of CPU in %s: %.2f CPUs on average", unit(p.total), seconds(p.duration), cpus))
	case p.total > 0:
		r.Figures = append(r.Figures, fmt.Sprintf("%s of CPU; over which time is not printed", unit(p.total)))
	case p.least > 0:
		r.Figures = append(r.Figures, fmt.Sprintf("%s of CPU in the samples that are shown, the rest of which are cut off", unit(p.least)))
	}
	p.tell(r)
	gc := p.gcShare()
	some := fmt.Sprintf("garbage collection used %s of it, as far as it is shown", percent(gc))
	if gc >= gcSome {
		r.Figures = append(r.Figures, some)
	}
	unwound := p.unwinding()
	if unwound >= muchUnwound {
		r.Figures = append(r.Figures, fmt.Sprintf("unwinding of stacks used %s of it", percent(unwound)))
	}
	if text := p.runtimeShare(unit); text != "" {
		r.Figures = append(r.Figures, text)
	}
	p.figures(r, unit)
	if gc > 0 {
		r.Facts = append(r.Facts, attach.Fact{Name: FactGCOfUsed, Value: gc})
	}
	if gc > 0 && gc < gcSome {
		r.Figures = append(r.Figures, some)
	}
	r.Means = "it shows what the CPU was used for"
	r.Not = "what requests waited for"
	if p.flat["runtime._ExternalCode"] > 0.3*p.total && p.total > 0 {
		r.Not += "; and _ExternalCode is samples outside of Go's code, no cause"
	}
	switch {
	case gc >= gcOfUsed && cpus >= gcLeast:
		r.State = attach.Ill
		r.Means = fmt.Sprintf("GC takes %s of the CPU that the process uses", percent(gc))
		r.Signs = []attach.Sign{{Cause: "frequent-gc", Grade: attach.Found, Sure: finding.Possible, Share: gc, Proof: r.Figures[:2]}}
		r.Next = []attach.Next{{Command: "GODEBUG=gctrace=1 for a minute under load", Why: "says how often cycles come, and how much room the heap has"}}
	case gc >= gcUnclear:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("GC takes %s of the CPU used: much, though a program that does little but allocate has that", percent(gc))
		r.Next = []attach.Next{{Command: "GODEBUG=gctrace=1 for a minute under load", Why: "says how often cycles come, and how much room the heap has"}}
	case unwound >= muchUnwound:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s of the CPU used is for unwinding stacks, %s", percent(unwound), p.unwinder(unwound))
		r.Next = []attach.Next{{Command: "go tool pprof -peek 'runtime.(gentraceback|callers|.*unwinder.*next)' FILE", Why: "says who asks for stacks"}}
	case p.wakes() >= futexMuch && gc < gcSome && p.locksShare() < runtimeLocked && p.runtimeShare(unit) == "":
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s of the CPU used puts threads to sleep and wakes them (futex): goroutines come and go in short waits; for what, is not in it", percent(p.wakes()))
		r.Not = "that a lock is contended: Go's scheduler calls futex whenever a P runs out of work or gets some; nor what requests waited for"
		r.Next = []attach.Next{{Command: "go tool pprof -peek 'runtime.futex$' FILE", Why: "who calls it: the scheduler, timers, or locks of the runtime"}}
	case p.locksShare() >= runtimeLocked && cpus >= 1:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s of the CPU used is for the runtime's own locks: its threads meet at one of them; which one, its callers say", percent(p.locksShare()))
		r.Not = "that a sync.Mutex is held for long: these locks are the runtime's own; nor what requests waited for"
		r.Next = []attach.Next{{Command: "go tool pprof -peek 'runtime.lock' FILE", Why: "the callers of the lock: stacks, timers, the scheduler, the heap"}}
	}
}

// futexMuch is the share of the CPU from which sleeping and waking is much of what a program does.
const futexMuch = 0.25

// wakes is the share of the CPU in the call that puts threads to sleep and wakes them.
func (p *profile) wakes() float64 {
	ns := 0.0
	for _, fn := range []string{"runtime.futex", "runtime.semasleep", "runtime.semawakeup", "runtime.pthread_cond_wait", "runtime.pthread_cond_signal"} {
		ns += p.flat[fn]
	}
	return ratio(ns, p.total)
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
		r.Not = "how much memory is in use: most of it is garbage by now; nor anything about latency"
	}
}

// tell adds to the first figure how much of the whole a table shows, where that is little.
func (p *profile) tell(r *attach.Reading) {
	if n := len(r.Figures); n > 0 && p.shown > 0 && p.shown < 0.5 {
		r.Figures[n-1] += fmt.Sprintf("; the table shows %s of it", percent(p.shown))
	}
}

// switchOn is how a program switches the profile on.
func (p *profile) switchOn() (out []attach.Next) {
	if p.kind != profMutex {
		out = append(out, attach.Next{Command: "runtime.SetBlockProfileRate(1000000) in the program", Why: "without it the profile of blocking stays empty; it samples one wait for each ms waited"})
	}
	if p.kind != profBlock {
		out = append(out, attach.Next{Command: "runtime.SetMutexProfileFraction(100) in the program", Why: "without it the profile of mutexes stays empty"})
	}
	return out
}

// eachWait says how long a wait takes. Where most of the time is of few waits, the
// mean of all is one that nobody waited.
func (p *profile) eachWait(unit func(float64) string) string {
	mean, n := p.total/p.events, 0.0
	var top sampled
	for _, s := range p.stacks {
		n += s.n
		if s.value > top.value {
			top = s
		}
	}
	one := ratio(top.value, top.n)
	if len(p.stacks) < 2 || one <= 0 || one < twoModes*mean && mean < twoModes*one {
		return fmt.Sprintf(", %s each", unit(mean))
	}
	return fmt.Sprintf("; at the place with most of it %.0f times, %s each", p.events*top.n/n, unit(one))
}

// readDelay reads profiles of mutexes and of blocking. Those of a time of their own have a rate.
func (p *profile) readDelay(r *attach.Reading) {
	unit := func(v float64) string { return finding.Duration(int64(v)) }
	r.State = attach.CannotTell
	if p.total <= 0 && p.least <= 0 {
		r.Means = "it holds no wait: nobody waited, or the profile is switched off in the program"
		switch p.kind {
		case profBlock:
			r.Means += " (runtime.SetBlockProfileRate)"
		case profMutex:
			r.Means += " (runtime.SetMutexProfileFraction)"
		}
		r.Next = p.switchOn()
		return
	}
	line := unit(p.total) + " waited in all"
	if p.least > 0 {
		line = unit(p.least) + " waited at the places that are shown, the rest of which are cut off"
	}
	if p.events > 0 {
		line += fmt.Sprintf(", %.0f times%s", p.events, p.eachWait(unit))
	}
	switch {
	case p.duration > 0:
		line += fmt.Sprintf(", in %s: %.2g s a second", seconds(p.duration), max(p.total, p.least)/1e9/p.duration)
	default:
		line += ", since the program started"
	}
	r.Figures = append(r.Figures, line)
	site := p.delaySite()
	if site != "" {
		r.Figures = append(r.Figures, fmt.Sprintf("most of it at %s: %s%s", site, unit(p.cum[site]), p.of(p.cum[site])))
		r.Facts = append(r.Facts, attach.Fact{Name: FactMutexDelay, Value: p.cum[site], Of: site})
	}
	share := ratio(max(p.total, p.least)/1e9, p.duration)
	switch {
	case p.kind == profBlock || p.kind == profDelay:
		r.Means = "it adds up waits at channels, selects and locks"
		r.Not = "that something is ill: goroutines that wait for work are in the sum as well"
		if fn := most(p.cum, poolFunction); fn != "" && p.total > 0 && p.cum[fn] >= 0.1*p.total {
			line := fmt.Sprintf("waits for a connection of the pool (%s): %s%s", fn, unit(p.cum[fn]), p.of(p.cum[fn]))
			r.Figures = append(r.Figures, line)
			r.Means = "much of the waiting is for a connection of a pool: all of them were in use"
			r.Signs = []attach.Sign{{Cause: "pool-exhaustion", Grade: attach.Candidate, Share: ratio(p.cum[fn], p.total), Proof: []string{line}}}
		}
	case p.duration > 0 && share >= 0.25:
		cause := "lock-contention"
		if hasPrefix(site, loggerParts) {
			cause = "logger-lock"
		}
		r.State = attach.Ill
		r.Means = fmt.Sprintf("%s wait %.2g s in each second for mutexes", p.waiters(), share)
		if site != "" {
			r.Means += ", most for what " + site + " unlocks"
		}
		r.Signs = []attach.Sign{{Cause: cause, Grade: attach.Found, Sure: finding.Possible, Share: min(1, share), Proof: r.Figures}}
	case p.duration > 0 && p.least == 0:
		r.State = attach.Healthy
		r.Means = p.waiters() + " hardly wait for mutexes"
		r.Signs = []attach.Sign{{Cause: "lock-contention", Grade: attach.Against, Share: share}}
	default:
		r.Means = "it names the code that held mutexes while others waited: the stack is of the unlock"
		r.Not = "how much requests lose now: the sum is since the start, so it is no rate"
		if p.least > 0 {
			r.Not = "how much is waited in all: the end is cut off; nor how much requests lose now"
		}
	}
	if r.State == attach.CannotTell {
		r.Next = []attach.Next{{Command: "curl 'http://HOST:PORT/debug/pprof/mutex?debug=1&seconds=10'", Why: "gives a rate; or whystall diagnose --pid PID"}}
	}
}

func (p *profile) waiters() string {
	if p.threads {
		return "threads"
	}
	return "goroutines"
}

// delaySite is the program's own function with most of the waiting.
func (p *profile) delaySite() string {
	sums := map[string]float64{}
	for _, s := range p.stacks {
		for _, fn := range s.funcs {
			if !library(fn) {
				sums[fn] += s.value
				break
			}
		}
	}
	if len(p.stacks) == 0 {
		return innermost(p.cum, p.total, ownFunction)
	}
	site := most(sums, nil)
	if site != "" {
		p.cum[site] = max(p.cum[site], sums[site])
	}
	return site
}

// readGoroutines reads a goroutine profile as the dump that it is.
func (p *profile) readGoroutines(r *attach.Reading) {
	d := &dump{counts: true}
	for _, s := range p.stacks {
		st := &stack{count: int(min(s.value, 1e9))}
		for _, fn := range s.funcs {
			st.frames = append(st.frames, frame{fn: fn})
		}
		st.parked = slices.Contains(s.funcs, "runtime.gopark")
		d.stacks = append(d.stacks, st)
	}
	if len(p.stacks) > 0 {
		title := r.Title
		*r = readDump(&attach.Part{}, d)
		r.Title = title
		return
	}
	p.readGoroutineSums(r)
}

// readGoroutineSums is the same where only sums by function are printed.
func (p *profile) readGoroutineSums(r *attach.Reading) {
	var lock float64
	for fn, v := range p.cum {
		if fn == "sync.(*Mutex).Lock" || fn == "internal/sync.(*Mutex).lockSlow" || fn == "sync.(*Mutex).lockSlow" || fn == "sync.(*RWMutex).RLock" || fn == "sync.(*RWMutex).Lock" {
			lock = max(lock, v)
		}
	}
	r.Glance = true
	cut := lock == 0 && p.unseen
	if cut {
		r.Figures = append(r.Figures, fmt.Sprintf("%.0f goroutines", p.total))
	} else {
		r.Figures = append(r.Figures, fmt.Sprintf("%.0f goroutines, %.0f of them at a lock", p.total, lock))
	}
	if fn := most(p.flat, nil); fn != "" && p.flat[fn] > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%.0f in %s%s", p.flat[fn], fn, p.of(p.flat[fn])))
	}
	r.Means, r.Not = "hardly a goroutine waits for a lock", "how long each has waited: it is one moment"
	if cut {
		r.State = attach.CannotTell
		r.Means = "goroutines that wait are all parked in one function of the runtime; the rows that would say how many wait for a lock are not shown"
		r.Next = []attach.Next{{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=1'", Why: "all stacks, each with how many have it"}}
	}
	if lock < manyWaiters {
		fn := most(p.cum, ownFunction)
		if fn == "" || p.cum[fn] < p.total/2 {
			return
		}
		r.Figures = append(r.Figures, fmt.Sprintf("%.0f in %s%s or below it", p.cum[fn], fn, p.of(p.cum[fn])))
		if p.cum[fn] >= manyLeaked {
			r.State = attach.CannotTell
			r.Means = "so many goroutines alike are a leak, or a crowd behind one that serves them; a leak costs memory and work of GC, and is no cause of latency by itself"
			r.Next = []attach.Next{{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=1' a minute later", Why: "a number that only grows is a leak"}}
		}
		return
	}
	site := ""
	for fn, v := range p.cum {
		if ownFunction(fn) && v <= lock && (site == "" || v > p.cum[site] || v == p.cum[site] && fn < site) {
			site = fn
		}
	}
	r.State = attach.Ill
	r.Means = "goroutines queue for a lock"
	cause := "lock-contention"
	if hasPrefix(site, loggerParts) {
		cause = "logger-lock"
	}
	if site != "" {
		r.Figures = append(r.Figures, fmt.Sprintf("%.0f in %s", p.cum[site], site))
		r.Means += ", most likely in " + site
	}
	r.Signs = []attach.Sign{{Cause: cause, Grade: attach.Found, Sure: finding.Possible, Share: ratio(lock, p.total), Proof: r.Figures}}
	r.Next = []attach.Next{{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=2'", Why: "says who likely holds it"}}
}
