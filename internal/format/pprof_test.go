package format

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// theirs sums a profile's stacks as ours does, with the pprof project's own decoder.
func theirs(t *testing.T, data []byte) map[string][]int64 {
	t.Helper()
	p, err := profile.ParseData(data)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]int64{}
	for _, s := range p.Sample {
		var names []string
		for _, l := range s.Location {
			for _, line := range l.Line {
				names = append(names, cmp.Or(line.Function.Name, "?"))
			}
		}
		key := strings.Join(names, "\n")
		if out[key] == nil {
			out[key] = make([]int64, len(s.Value))
		}
		for i, v := range s.Value {
			out[key][i] += v
		}
	}
	return out
}

func ours(p *Profile) map[string][]int64 {
	out := map[string][]int64{}
	for _, s := range p.Stacks {
		key := strings.Join(s.Funcs, "\n")
		if out[key] == nil {
			out[key] = make([]int64, len(s.Values))
		}
		for i, v := range s.Values {
			out[key][i] += v
		}
	}
	return out
}

// Our decoder agrees with the pprof project's, on every sample and on generated profiles.
func TestProfileLikeTheirs(t *testing.T) {
	var all [][]byte
	for _, name := range allSamples(t) {
		if strings.HasPrefix(name, "pprof/") {
			all = append(all, testdata(t, name))
		}
	}
	if len(all) < 8 {
		t.Fatalf("%d profiles", len(all))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		all = append(all, madeProfile(t, r))
	}
	for i, data := range all {
		p, err := ParseProfile(data)
		if err != nil {
			t.Fatal(err)
		}
		got, want := ours(p), theirs(t, data)
		if len(got) != len(want) {
			t.Errorf("profile %d: %d stacks, want %d", i, len(got), len(want))
		}
		for k, v := range want {
			if !slices.Equal(got[k], v) {
				t.Errorf("profile %d: %s: %v, want %v", i, k, got[k], v)
			}
		}
	}
}

// madeProfile has inlined calls, repeated stacks, labels and negative values.
func madeProfile(t *testing.T, r *rand.Rand) []byte {
	t.Helper()
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "contentions", Unit: "count"},
		{Type: "delay", Unit: "nanoseconds"}}, TimeNanos: 5}
	for i := range 20 {
		p.Function = append(p.Function, &profile.Function{ID: uint64(i + 1), Name: "main.f" + string(rune('a'+i))})
	}
	for i := range 30 {
		l := &profile.Location{ID: uint64(i + 1), Address: uint64(i)}
		for range 1 + r.IntN(3) {
			l.Line = append(l.Line, profile.Line{Function: p.Function[r.IntN(20)], Line: 7})
		}
		p.Location = append(p.Location, l)
	}
	for range 40 {
		s := &profile.Sample{Value: []int64{r.Int64N(100), r.Int64N(1e12) - 10}, Label: map[string][]string{"k": {"v"}}}
		for range r.IntN(5) {
			s.Location = append(s.Location, p.Location[r.IntN(30)])
		}
		p.Sample = append(p.Sample, s)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestProfilePairs(t *testing.T) {
	stack := func(v, n int64, f ...string) ProfileStack { return ProfileStack{Funcs: f, Values: []int64{n, v}} }
	reading := func(at int64, s ...ProfileStack) *Profile {
		return &Profile{Types: []string{"contentions/count", "delay/nanoseconds"}, Stacks: s, TimeNS: at}
	}
	first := reading(100, stack(50, 5, "sync.(*Mutex).Unlock", "a"), stack(9, 1, "sync.(*Mutex).Unlock", "b"))
	last := reading(1e9+100, stack(80, 7, "sync.(*Mutex).Unlock", "a"),
		stack(9, 1, "sync.(*Mutex).Unlock", "b"), stack(900, 2, "sync.(*RWMutex).RUnlock", "c"))
	restarted := reading(2e9+100, stack(1, 1, "sync.(*Mutex).Unlock", "a"))
	of := reading(1e9, stack(4, 2, "sync.(*Mutex).Unlock", "a"))
	of.DurationNS = 3e9
	for name, tc := range map[string]struct {
		readings []*Profile
		want     string
	}{
		"pair": {[]*Profile{last, first}, `/pprof/mutex/delay:ns sample t=7 v=900 n=2 at="sync.(*RWMutex).RUnlock" at="c"
/pprof/mutex/delay:ns sample t=7 v=30 n=2 at="sync.(*Mutex).Unlock" at="a"
/pprof/mutex/scope:ns fact t=7 v=1000000000 text="1s"
`},
		"alone": {[]*Profile{first}, `/pprof/mutex/delay:ns sample t=7 v=50 n=5 at="sync.(*Mutex).Unlock" at="a"
/pprof/mutex/delay:ns sample t=7 v=9 n=1 at="sync.(*Mutex).Unlock" at="b"
/pprof/mutex/scope:ns fact t=7 text="since the program started"
`},
		"restarted": {[]*Profile{first, restarted}, `/pprof/mutex/delay:ns gap t=7 end=7 text="the last reading is below the first: the program was restarted between them"
/pprof/mutex/scope:ns fact t=7 v=2000000000 text="2s"
`},
		"a delta already": {[]*Profile{of}, `/pprof/mutex/delay:ns sample t=7 v=4 n=2 at="sync.(*Mutex).Unlock" at="a"
/pprof/mutex/scope:ns fact t=7 v=3000000000 text="3s"
`},
	} {
		records, err := Profiles(ProfileMutex, tc.readings, 7)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range records {
			got += r.String() + "\n"
		}
		if got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tc.want)
		}
	}
}

// A small file must not need much memory.
func TestProfileBombs(t *testing.T) {
	head := []byte{0x0a, 4, 0x08, 1, 0x10, 2} // one sample type
	bomb := func(field ...byte) []byte { return append(slices.Clone(head), bytes.Repeat(field, 8<<20)...) }
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(make([]byte, maxUnpacked+1))
	z.Close()
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"unpacks": {packed.Bytes(), "read profile: unpack: more than 64 MiB"},
		"strings": {bomb(0x32, 0), "read profile: more than 1048576 strings"},
		"samples": {bomb(0x12, 0), "read profile: sample: want 1 values, got 0"},
		"lines": {append(slices.Clone(head), append([]byte{0x22, 0x80, 0x80, 0x80, 8},
			bytes.Repeat([]byte{0x22, 0}, 8<<20)...)...), "read profile: more than 1048576 lines"},
		"locations": {bomb(0x22, 0), ""}, // all of them location 0
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ParseProfile(tc.data)
		runtime.ReadMemStats(&after)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || err.Error() != tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 600<<20 {
			t.Errorf("%s: allocated %d MiB", name, used>>20)
		}
	}
}

// Thousands of readings, each packed small, are not all kept.
func TestGatherBounded(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte{0x0a, 4, 0x08, 1, 0x10, 2})
	z.Write(bytes.Repeat([]byte{0x7a, 0}, maxUnpacked/2-100)) // field 15: none of ours
	z.Close()
	items := make([]Item, 40)
	for i := range items {
		items[i] = Item{Name: "x", Data: packed.Bytes()}
	}
	_, _, problems := Gather(items)
	if err := problems[len(items)-1]; err == nil ||
		!strings.Contains(err.Error(), "unpack: with the files before it more than 1024 MiB") {
		t.Errorf("the last of %d bombs of 64 MiB: %v", len(items), err)
	}
	log := bytes.Repeat([]byte("gc 1 @0s 0%: 0+0+0 ms clock\n"), maxCycles+1)
	if r, err := GCTrace(log); err == nil || len(r) != 4*maxCycles {
		t.Errorf("%d records, %v", len(r), err)
	}
}

func TestMutexText(t *testing.T) {
	for in, want := range map[string]string{
		"--- mutex:\ncycles/second=3\nsampling period=0\n": "",
		"--- mutex:\ncycles/second=3\nsampling period=x\n": `read mutex profile as text: line 3: sampling period "x"`,
		"--- mutex:\ncycles/second=3\n1 2 @ 0x1":           "read mutex profile as text: no sampling period in its first lines",
		"":                                                 "read mutex profile as text: no sampling period in its first lines",
	} {
		_, err := MutexText([]byte(in), 0)
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

func FuzzProfile(f *testing.F) {
	for _, n := range []string{"pprof/mutex.2.pb.gz", "pprof/heap.1.pb.gz", "pprof/cpu.pb.gz"} {
		b, err := Gunzip(testdata(f, n), 1<<20)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseProfile(data)
		if err != nil {
			return
		}
		kind := p.Which("mutex")
		Profiles(kind, []*Profile{p, p}, 1)
		for _, s := range p.Stacks {
			if len(s.Values) != len(p.Types) || len(s.Funcs) > maxDepth {
				t.Fatalf("%d values, %d frames", len(s.Values), len(s.Funcs))
			}
		}
	})
}

func FuzzGCTrace(f *testing.F) {
	f.Add(testdata(f, "gctrace/damaged.log"))
	f.Fuzz(func(t *testing.T, log []byte) {
		records, _ := GCTrace(log)
		for _, r := range records {
			if r.Time < 0 || r.End < 0 || r.Value != r.Value {
				t.Fatal(r)
			}
		}
	})
}

func FuzzMetrics(f *testing.F) {
	f.Add(testdata(f, "metrics/default.txt"))
	f.Fuzz(func(t *testing.T, page []byte) { Metrics(page, 1) })
}

func FuzzVars(f *testing.F) {
	f.Add(testdata(f, "vars/memstats.json"))
	f.Fuzz(func(t *testing.T, page []byte) { Vars(page, 1) })
}

func FuzzHeapText(f *testing.F) {
	f.Add(testdata(f, "heap-text/whole.txt"))
	f.Add(testdata(f, "heap-text/memstats.txt"))
	f.Fuzz(func(t *testing.T, page []byte) {
		part, partErr := HeapTextMemStats(page)
		if len(part) > maxMemStats {
			t.Fatalf("kept %d bytes", len(part))
		}
		all, err := HeapText(page, 1)
		kept, _ := HeapText(part, 1)
		if partErr == nil && len(all) != len(kept) || len(all) > 0 && partErr != nil {
			t.Fatalf("the whole page gives %d records, its kept part %d: %v", len(all), len(kept), err)
		}
	})
}
