package format

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/evidence"
)

// KindPprof is a profile as protocol buffer, whichever it is, or a legacy CPU profile.
const KindPprof Kind = "a pprof profile"

const rankPprof = rankProfile + 1

// In its records Value is the sum, N the number of samples, and Stack is innermost first.
var _ = register(&row{
	kind: KindPprof, name: "pprof", rank: rankPprof,
	looks: looksProfile,
	parse: parsePprof,
	streams: []evidence.Stream{
		{Name: "/pprof/mutex/delay:ns",
			Doc: "Sample with Stack, where a mutex was unlocked that others waited for. N contentions."},
		{Name: "/pprof/mutex/scope:ns",
			Doc: "Fact. Value: time the samples cover, Text the same in words; 0: since the program started."},
		{Name: "/pprof/block/delay:ns",
			Doc: "Sample with Stack, where a goroutine was blocked. N events. The profile's rate cannot be read anywhere: an empty profile may be switched off."},
		{Name: "/pprof/block/scope:ns", Doc: "Fact, as for mutex."},
		{Name: "/pprof/heap/allocs:bytes", Doc: "Sample with Stack, where bytes were allocated. N objects."},
		{Name: "/pprof/heap/allocs/profiling:bytes",
			Doc: "Sample. What taking profiles and traces allocated; allocs is without it."},
		{Name: "/pprof/heap/inuse:bytes", Doc: "Sample with Stack, where live bytes were allocated. N objects."},
		{Name: "/pprof/heap/scope:ns",
			Doc: "Fact, as for mutex, about allocs; inuse is of the last GC before the last reading."},
		{Name: "/pprof/goroutine/count:goroutines", Doc: "Sample with Stack. Value and N: goroutines there."},
		{Name: "/pprof/cpu/time:ns", Doc: "Sample with Stack, where the CPU was used. N samples."},
		{Name: "/pprof/cpu/profiling:ns", Doc: "Sample. What taking profiles and traces used; time is without it."},
		{Name: "/pprof/cpu/scope:ns", Doc: "Fact. Value: time the profile covers."},
	},
})

// ProfileKind is which of the runtime's profiles one is.
type ProfileKind string

// The runtime's profiles.
const (
	ProfileMutex     ProfileKind = "mutex"
	ProfileBlock     ProfileKind = "block"
	ProfileHeap      ProfileKind = "heap"
	ProfileGoroutine ProfileKind = "goroutine"
	ProfileCPU       ProfileKind = "cpu"
	ProfileOther     ProfileKind = ""
)

// Which says which profile it is. Mutex and block profiles have the same sample types: a mutex
// profile's stacks stand in an unlock, a block profile's never do. Of an empty one only the file's
// name may say it.
func (p *Profile) Which(name string) ProfileKind {
	has := func(t string) bool { return slices.Contains(p.Types, t) }
	switch {
	case has("delay/nanoseconds") && has("contentions/count"):
		for _, s := range p.Stacks {
			if len(s.Funcs) > 0 && isUnlock(s.Funcs[0]) {
				return ProfileMutex
			}
		}
		if len(p.Stacks) > 0 {
			return ProfileBlock
		}
		for _, k := range []ProfileKind{ProfileMutex, ProfileBlock} {
			if strings.Contains(strings.ToLower(name), string(k)) {
				return k
			}
		}
	case has("alloc_space/bytes"):
		return ProfileHeap
	case has("goroutine/count"):
		return ProfileGoroutine
	case has("cpu/nanoseconds"):
		return ProfileCPU
	}
	return ProfileOther
}

func isUnlock(f string) bool {
	return strings.HasPrefix(f, "sync.") && strings.HasSuffix(f, "nlock") || f == "internal/sync.(*Mutex).Unlock" ||
		strings.HasPrefix(f, "runtime.unlock") || strings.HasPrefix(f, "runtime._LostContended")
}

// profileValue is a value of a profile that becomes a stream.
type profileValue struct {
	stream     string
	value, n   string // sample types of Value and N
	cumulative bool
	profiling  string // stream for the sum of stacks that take profiles: our requests, or another's
}

var profileValues = map[ProfileKind][]profileValue{
	ProfileMutex: {{"/pprof/mutex/delay:ns", "delay/nanoseconds", "contentions/count", true, ""}},
	ProfileBlock: {{"/pprof/block/delay:ns", "delay/nanoseconds", "contentions/count", true, ""}},
	ProfileHeap: {
		{"/pprof/heap/allocs:bytes", "alloc_space/bytes", "alloc_objects/count", true,
			"/pprof/heap/allocs/profiling:bytes"},
		{"/pprof/heap/inuse:bytes", "inuse_space/bytes", "inuse_objects/count", false, ""},
	},
	ProfileGoroutine: {{"/pprof/goroutine/count:goroutines", "goroutine/count", "goroutine/count", false, ""}},
	ProfileCPU:       {{"/pprof/cpu/time:ns", "cpu/nanoseconds", "samples/count", false, "/pprof/cpu/profiling:ns"}},
}

// Profiles gives the records of all readings of one kind. Of cumulative ones the first is
// subtracted from the last; of others the last counts. One that covers a time of its own
// (?seconds=10) is taken as it is. t is the time of the last.
func Profiles(kind ProfileKind, readings []*Profile, t int64) ([]evidence.Record, error) {
	values := profileValues[kind]
	if len(readings) == 0 || len(values) == 0 {
		return nil, errors.New("read profile: of no kind that is known here")
	}
	slices.SortStableFunc(readings, byTime)
	first, last := readings[0], readings[len(readings)-1]
	covers := last.DurationNS
	if covers > 0 || first == last {
		first = nil
	} else if covers = last.TimeNS - first.TimeNS; covers < 0 {
		covers = 0
	}
	var out []evidence.Record
	for _, v := range values {
		base := first
		if !v.cumulative {
			base = nil
		}
		records, err := v.records(last, base, t)
		if err != nil {
			return nil, fmt.Errorf("read %s profile: %w", kind, err)
		}
		out = append(out, records...)
	}
	if kind != ProfileGoroutine {
		words := "since the program started"
		if covers > 0 {
			words = time.Duration(covers).Round(time.Millisecond).String()
		}
		out = append(out, evidence.Record{Stream: "/pprof/" + string(kind) + "/scope:ns",
			Shape: evidence.Fact, Time: t, Value: float64(covers), Text: words})
	}
	return out, nil
}

// profilePairs holds the profiles of one gathering: of each kind the first and the last reading.
type profilePairs struct {
	readings map[ProfileKind][]*Profile
	time     map[ProfileKind]int64 // of the last that came
	item     map[ProfileKind]int   // likewise
}

func newProfilePairs() *profilePairs {
	return &profilePairs{readings: map[ProfileKind][]*Profile{}, time: map[ProfileKind]int64{},
		item: map[ProfileKind]int{}}
}

func parsePprof(g *gatherer, it Item) ([]evidence.Record, error) {
	p, err := ParseProfile(it.Data)
	if err != nil {
		return nil, err
	}
	kind := p.Which(it.Name)
	if kind == ProfileOther {
		return nil, fmt.Errorf("read profile: it has %v, and is not one that is used here", p.Types)
	}
	s := jointOf(g, rankPprof, newProfilePairs)
	s.readings[kind] = firstAndLast(append(s.readings[kind], p))
	s.time[kind], s.item[kind] = it.Time, g.item
	return nil, nil
}

// firstAndLast drops the readings between the first and the last, which are not used.
func firstAndLast(p []*Profile) []*Profile {
	slices.SortStableFunc(p, byTime)
	if len(p) > 2 {
		p = []*Profile{p[0], p[len(p)-1]}
	}
	return p
}

func (s *profilePairs) finish() (out []evidence.Record, problems map[int]error) {
	problems = map[int]error{}
	for _, kind := range slices.Sorted(maps.Keys(s.readings)) {
		records, err := Profiles(kind, s.readings[kind], s.time[kind])
		if err != nil {
			problems[s.item[kind]] = err
		}
		out = append(out, records...)
	}
	return out, problems
}

func byTime(a, b *Profile) int { return cmp.Compare(a.TimeNS, b.TimeNS) }

// records gives a stream's records, largest first; base is subtracted.
func (v profileValue) records(p, base *Profile, t int64) ([]evidence.Record, error) {
	sums := map[string]*evidence.Record{}
	var order []*evidence.Record
	add := func(p *Profile, sign int64) error {
		vi, ni := slices.Index(p.Types, v.value), slices.Index(p.Types, v.n)
		if vi < 0 || ni < 0 {
			return fmt.Errorf("has no %s and %s", v.value, v.n)
		}
		for _, s := range p.Stacks {
			key := strings.Join(s.Funcs, "\x00")
			r := sums[key]
			if r == nil {
				r = &evidence.Record{Stream: v.stream, Shape: evidence.Sample, Time: t, Stack: s.Funcs}
				sums[key] = r
				order = append(order, r)
			}
			r.Value += float64(sign * s.Values[vi])
			r.N += sign * s.Values[ni]
		}
		return nil
	}
	if err := add(p, 1); err != nil {
		return nil, err
	}
	if base != nil {
		if err := add(base, -1); err != nil {
			return nil, err
		}
	}
	var total, fell float64
	profiling := evidence.Record{Stream: v.profiling, Shape: evidence.Sample, Time: t}
	out := make([]evidence.Record, 0, len(order))
	for _, r := range order {
		switch {
		case v.profiling != "" && takesProfiles(r.Stack):
			profiling.Value += max(0, r.Value)
			profiling.N += max(0, r.N)
		case r.Value > 0 || r.N > 0:
			total += r.Value
			out = append(out, *r)
		case r.Value < 0:
			fell -= r.Value
		}
	}
	// A cumulative profile only grows. A little less is rounding: a heap profile's values are
	// scaled up from samples.
	if fell > total {
		return []evidence.Record{{Stream: v.stream, Shape: evidence.GapShape, Time: t, End: t,
			Text: "the last reading is below the first: the program was restarted between them"}}, nil
	}
	slices.SortStableFunc(out, func(a, b evidence.Record) int { return cmp.Compare(b.Value, a.Value) })
	if profiling.N > 0 {
		out = append(out, profiling)
	}
	return out, nil
}

// takesProfiles reports whether a stack takes a profile or writes a trace: it is there because
// somebody looks.
func takesProfiles(stack []string) bool {
	return slices.ContainsFunc(stack, func(f string) bool {
		return strings.HasPrefix(f, "net/http/pprof.") || strings.HasPrefix(f, "runtime/pprof.") ||
			strings.HasPrefix(f, "runtime/trace.(*traceMultiplexer)")
	})
}
