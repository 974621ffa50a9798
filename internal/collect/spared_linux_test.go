package collect

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/toll"
)

func tollOf(quota bool, limit float64, cpu, idle int64, counters ...evidence.Counted) *evidence.Toll {
	return &evidence.Toll{LimitCPUs: limit, Quota: quota, Counters: counters, Stages: []evidence.Stage{
		{Name: evidence.StageCounters,
			Slices: []evidence.Slice{{NS: 1e9, CPUNS: cpu / 2, IdleNS: idle / 2},
				{NS: 1e9, CPUNS: cpu / 2, IdleNS: idle / 2}}},
		{Name: evidence.StageKernel, Slices: []evidence.Slice{{NS: 1e9, CPUNS: 9e9}}},
	}}
}

func TestBusyShare(t *testing.T) {
	for _, c := range []struct {
		name  string
		toll  *evidence.Toll
		want  float64
		known bool
	}{
		{"the machine, whoever uses it", tollOf(false, 2, 1e8, 1e9, evidence.CountedIdle), 0.75, true},
		{"idle time is not known", tollOf(false, 2, 1e8, 0), 0, false},
		{"a quota", tollOf(true, 0.5, 8e8, 4e9), 0.8, true},
		{"nothing counted", nil, 0, false},
	} {
		if got, _, known := busyShare(c.toll); got != c.want || known != c.known {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, got, known, c.want, c.known)
		}
	}
}

// The start of the kernel's recorder takes its time where few CPUs are idle.
func TestStartCPUs(t *testing.T) {
	cpus := float64(runtime.NumCPU())
	for _, c := range []struct {
		name string
		idle float64 // share of the machine
		want float64 // CPUs
	}{
		{"half is idle", 0.5, 0},
		{"a fifth is idle", 0.2, 0.05 * cpus},
		{"nothing is idle", 0, 0.03 * cpus},
	} {
		stage := evidence.Stage{Name: evidence.StageCounters,
			Slices: []evidence.Slice{{NS: 1e9, IdleNS: int64(c.idle * cpus * 1e9)}}}
		r := &run{session: &session{},
			tally: &tally{toll: evidence.Toll{Stages: []evidence.Stage{stage}},
				seen: map[evidence.Counted]bool{evidence.CountedIdle: true}}}
		if got := r.startCPUs(); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: %v CPUs, want %v", c.name, got, c.want)
		}
		r.o.Alone = &stage
		if got := r.startCPUs(); got != 0 {
			t.Errorf("%s: a segment of many waits: %v CPUs", c.name, got)
		}
	}
}

// A target that needs evicted pages again is recorded without stacks, from a slower start on.
func TestThrashing(t *testing.T) {
	for _, c := range []struct {
		name    string
		before  int64 // refaults when the recording started: the test's own group has 0 or more
		counted int64 // ns
		want    bool
	}{
		{"many pages a second", -1e6, 1e9, true},
		{"few", groupRefaults(os.Getpid()), 1e12, false},
	} {
		r := &run{session: &session{}, tally: &tally{}, refaults: c.before}
		r.o.PID = os.Getpid()
		r.beforeThrashing(evidence.Slice{NS: c.counted})
		if eased := r.tally.toll.Eased; r.thrashes != c.want || (len(eased) == 1) != c.want {
			t.Errorf("%s: %v, eased %+v", c.name, r.thrashes, eased)
		}
	}
}

// stageOfCPU is a stage, in which a KB of work takes cpu ns.
func stageOfCPU(name evidence.StageName, cpu int64) evidence.Stage {
	s := evidence.Stage{Name: name}
	for i := range int64(10) {
		s.Slices = append(s.Slices, evidence.Slice{EndNS: i * 2e8, NS: 2e8, CPUNS: 100 * cpu,
			ReadBytes: 100 << 10, Reads: 100})
	}
	return s
}

// The kernel's recorder gives up a step where its records alone did harm, and the trace ends where
// all parts do.
func TestSpared(t *testing.T) {
	counters := []evidence.Counted{evidence.CountedCPU, evidence.CountedRead}
	r := &run{session: &session{},
		tally: &tally{toll: evidence.Toll{Budget: 0.06,
			Stages: []evidence.Stage{stageOfCPU(evidence.StageCounters, 1e6),
				stageOfCPU(evidence.StageKernel, 1.01e6)}}}}
	r.tally.seen = map[evidence.Counted]bool{counters[0]: true, counters[1]: true}
	if r.sparedKernel() || r.ease.Load() != 0 {
		t.Error("thinned, though it did no harm")
	}
	r.tally.toll.Stages[1] = stageOfCPU(evidence.StageKernel, 1.2e6)
	if !r.sparedKernel() || r.ease.Load() != 1 {
		t.Error("not thinned")
	}
	if e := r.tally.toll.Eased; len(e) != 1 || e[0].Did != evidence.Thinned ||
		e[0].Why != evidence.WhyCPU || e[0].Part != "kernel" {
		t.Errorf("eased %+v", e)
	}
	ended := 0
	g := guard{r: r, stage: evidence.StageAll, endTrace: func() { ended++ }, mayThin: true}
	if !g.look(r.tally.sum()) || ended > 0 {
		t.Error("all parts do harm before they run")
	}
	dear := stageOfCPU(evidence.StageAll, 1.5e6)
	r.tally.toll.Stages[1] = stageOfCPU(evidence.StageKernel, 1.4e6)
	r.tally.toll.Stages = append(r.tally.toll.Stages, dear)
	if !g.look(r.tally.sum()) || r.ease.Load() != 2 || ended > 0 {
		t.Error("the kernel's records are not thinned first")
	}
	if !g.look(r.tally.sum()) || r.ease.Load() != 2 {
		t.Error("judged again by the same slices")
	}
	g.since = -1e9
	if g.look(r.tally.sum()); r.ease.Load() != 3 || ended > 0 {
		t.Error("not thinned to the end")
	}
	g.since, g.enough = -1e9, time.Minute
	r.tally.toll.Stages[1] = stageOfCPU(evidence.StageKernel, 1.19e6)
	r.tally.toll.Stages[2] = stageOfCPU(evidence.StageAll, 1.2e6)
	if !g.look(r.tally.sum()) || ended != 0 {
		t.Error("the trace ends before there is enough of it")
	}
	r.tally.toll.Stages[2] = dear
	if g.look(r.tally.sum()) || ended != 1 {
		t.Error("the trace goes on")
	}
	if e := r.tally.toll.Eased; len(e) != 4 || e[3].Part != "trace" || e[3].Did != evidence.Shortened {
		t.Errorf("eased %+v", e)
	}
}

// Where CPUs are idle, a cost that is a large share of little is not felt.
func TestFelt(t *testing.T) {
	for _, c := range []struct {
		name    string
		idle    int64 // of 2 CPUs, in a second
		measure toll.Measure
		growth  float64
		want    bool
	}{
		{"half as much again of a tenth of a CPU, 1.8 are idle", 1.8e9, toll.CPU, 0.5, false},
		{"the same, but a third of a CPU is idle", 0.3e9, toll.CPU, 0.5, true},
		{"three times as much", 1.8e9, toll.CPU, 2, true},
		{"throttled", 1.8e9, toll.Throttled, 0.03, true},
	} {
		in := &evidence.Toll{LimitCPUs: 2, Counters: []evidence.Counted{evidence.CountedCPU,
			evidence.CountedIdle}, Stages: []evidence.Stage{
			{Name: evidence.StageCounters, Slices: []evidence.Slice{{NS: 1e9, CPUNS: 1e8, IdleNS: c.idle}}},
			{Name: evidence.StageAll, Slices: []evidence.Slice{{NS: 1e9, CPUNS: 15e7, IdleNS: c.idle}}},
		}}
		if got := felt(in, toll.Weigh(in), toll.Effect{Measure: c.measure, Growth: c.growth}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A busy target at its GOMEMLIMIT is not traced. An idle one is, and one that is far below.
func TestWithoutTrace(t *testing.T) {
	here := anonymousMemory(os.Getpid())
	less := here * 3 / 4 // the runtime may give memory back meanwhile
	for _, c := range []struct {
		name  string
		limit int64
		idle  int64 // ns of 2 CPUs in 2 s
		want  bool
	}{
		{"at its limit", less, 5e8, true},
		{"at its limit, and idle", less, 3e9, false},
		{"far below", 4 * here, 5e8, false},
		{"no limit", 0, 5e8, false},
	} {
		m := evidence.Manifest{}
		if c.limit > 0 {
			m.Target.Env = map[string]string{"GOMEMLIMIT": strconv.FormatInt(c.limit, 10)}
		}
		w, err := evidence.Create(filepath.Join(t.TempDir(), "x.case"), false, m)
		if err != nil {
			t.Fatal(err)
		}
		r := &run{session: &session{o: Options{PID: os.Getpid(), For: 20 * time.Second}, w: w,
			asks: true}, outcomes: map[string]*outcome{}}
		r.tally = &tally{toll: *tollOf(false, 2, 3e9, c.idle),
			seen: map[evidence.Counted]bool{evidence.CountedIdle: true}}
		r.beforeTrace()
		if r.untraced != c.want || (r.outcomes[lead().Name] != nil) != c.want || len(r.tally.toll.Eased) > 0 != c.want {
			t.Errorf("%s: untraced %v, outcomes %v, eased %+v", c.name, r.untraced, r.outcomes, r.tally.toll.Eased)
		}
		w.Discard()
	}
}

// What allocates in the target is told from what does not.
func TestPagesThatAllocate(t *testing.T) {
	for _, c := range All() {
		want := map[string]bool{"heap": true, "goroutine": true, "memstats": true, "vars": true}[c.Name]
		if c.Allocates != want {
			t.Errorf("%s: allocates is %v", c.Name, c.Allocates)
		}
	}
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func TestNextDrain(t *testing.T) {
	for _, c := range []struct {
		full     float64
		took, to int64
	}{{0, 100, 100}, {0.01, 100, 100}, {0.125, 40, 40}, {0.25, 40, 20}, {1, 20, 20}, {0.07, 90, 100}} {
		if got := nextDrain(c.full, ms(c.took)); got != ms(c.to) {
			t.Errorf("%v full after %d ms: read again after %s, want %d ms", c.full, c.took, got, c.to)
		}
	}
}

// Where little is idle and the threads switch much, the kernel's recorder starts with less detail.
func TestBeforeKernel(t *testing.T) {
	for _, c := range []struct {
		name     string
		switches int64 // a second
		idle     int64 // of 2 CPUs, in a second
		want     int32
	}{
		{"busy, many switches", 60_000, 2e8, 2},
		{"busy, few switches", 2_000, 2e8, 0},
		{"idle, many switches", 60_000, 1.5e9, 0},
	} {
		r := &run{session: &session{}, tally: &tally{}}
		r.tally.seen = map[evidence.Counted]bool{evidence.CountedIdle: true, evidence.CountedSwitches: true}
		r.tally.toll = evidence.Toll{LimitCPUs: 2,
			Stages: []evidence.Stage{{Name: evidence.StageCounters,
				Slices: []evidence.Slice{{NS: 1e9, IdleNS: c.idle, Switches: c.switches}}}}}
		r.beforeKernel()
		if got := r.ease.Load(); got != c.want || len(r.tally.toll.Eased) != min(1, int(c.want)) {
			t.Errorf("%s: %d steps, %+v", c.name, got, r.tally.toll.Eased)
		}
	}
}
