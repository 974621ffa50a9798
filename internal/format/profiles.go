package format

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/evidence"
)

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

// Which tells which profile it is. Mutex and block profiles have the same sample types: a mutex profile's stacks
// stand in an unlock, a block profile's never do. An empty one is told by its file's name, if that says so.
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
	own        string // stream for the sum of stacks that take profiles: our requests, or another's
}

var profileValues = map[ProfileKind][]profileValue{
	ProfileMutex: {{"/pprof/mutex/delay:ns", "delay/nanoseconds", "contentions/count", true, ""}},
	ProfileBlock: {{"/pprof/block/delay:ns", "delay/nanoseconds", "contentions/count", true, ""}},
	ProfileHeap: {
		{"/pprof/heap/allocs:bytes", "alloc_space/bytes", "alloc_objects/count", true, "/pprof/heap/allocs/profiling:bytes"},
		{"/pprof/heap/inuse:bytes", "inuse_space/bytes", "inuse_objects/count", false, ""},
	},
	ProfileGoroutine: {{"/pprof/goroutine/count:goroutines", "goroutine/count", "goroutine/count", false, ""}},
	ProfileCPU:       {{"/pprof/cpu/time:ns", "cpu/nanoseconds", "samples/count", false, "/pprof/cpu/profiling:ns"}},
}

// Profiles gives the records of all readings of one kind. Cumulative ones are subtracted, the last less the first;
// of others the last counts. One that covers a time of its own (?seconds=10) is taken as it is. t is the time of the last.
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
		words := "since the program began"
		if covers > 0 {
			words = time.Duration(covers).Round(time.Millisecond).String()
		}
		out = append(out, evidence.Record{Stream: "/pprof/" + string(kind) + "/scope:ns", Shape: evidence.Fact, Time: t, Value: float64(covers), Text: words})
	}
	return out, nil
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
	own := evidence.Record{Stream: v.own, Shape: evidence.Sample, Time: t}
	out := make([]evidence.Record, 0, len(order))
	for _, r := range order {
		switch {
		case v.own != "" && takesProfiles(r.Stack):
			own.Value += max(0, r.Value)
			own.N += max(0, r.N)
		case r.Value > 0 || r.N > 0:
			total += r.Value
			out = append(out, *r)
		case r.Value < 0:
			fell -= r.Value
		}
	}
	// A cumulative profile only grows. A little less is rounding: a heap profile's values are scaled up from samples.
	if fell > total {
		return []evidence.Record{{Stream: v.stream, Shape: evidence.GapShape, Time: t, End: t,
			Text: "the last reading is below the first: the program was restarted between them"}}, nil
	}
	slices.SortStableFunc(out, func(a, b evidence.Record) int { return cmp.Compare(b.Value, a.Value) })
	if own.N > 0 {
		out = append(out, own)
	}
	return out, nil
}

// takesProfiles tells a stack that takes a profile or writes a trace: it is there because somebody looks.
func takesProfiles(stack []string) bool {
	return slices.ContainsFunc(stack, func(f string) bool {
		return strings.HasPrefix(f, "net/http/pprof.") || strings.HasPrefix(f, "runtime/pprof.") || strings.HasPrefix(f, "runtime/trace.(*traceMultiplexer)")
	})
}

// MutexText gives the sampling rate that the text form of a mutex profile (debug=1) tells in its third line, and no other form does. Only
// the first lines are needed.
func MutexText(text []byte, t int64) ([]evidence.Record, error) {
	head := string(text[:min(len(text), 512)])
	for i, line := range strings.SplitN(head, "\n", 4) {
		v, ok := strings.CutPrefix(line, "sampling period=")
		if !ok || i > 2 {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("read mutex profile as text: line %d: sampling period %.20q", i+1, v)
		}
		return []evidence.Record{{Stream: "/pprof/mutex/fraction:events", Shape: evidence.Fact, Time: t, Value: float64(n)}}, nil
	}
	return nil, errors.New("read mutex profile as text: no sampling period in its first lines")
}
