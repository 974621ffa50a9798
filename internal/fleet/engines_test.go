package fleet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/whystall/whystall/internal/need"
)

// Samples of the engines' test: so long, so often. Members are ill for the second half.
const (
	madeMinutes  = 40
	madeInterval = 15
)

// madeSamples writes the series of each rule's cases, the ill one, the one that looks alike and two
// that are healthy, in OpenMetrics and in the form that VictoriaMetrics imports.
func madeSamples(end time.Time) (open, imported []byte) {
	byMetric := map[string][]string{}
	var vm bytes.Buffer
	add := func(m Made, labels string, factor float64) {
		name, _ := m.series(labels, "", 1)
		n := madeMinutes * 60 / madeInterval
		for i := range n + 1 {
			at := end.Unix() - int64((n-i)*madeInterval)
			v := m.Level
			if m.Grow > 0 {
				slow := m.Grow / 60 * madeInterval / 1000
				v = slow*float64(i) + factor*m.Grow/60*madeInterval*math.Max(0, float64(i-n/2))
			}
			byMetric[m.Metric] = append(byMetric[m.Metric], fmt.Sprintf("%s %g %d\n", name, v, at))
			fmt.Fprintf(&vm, "%s %g %d000\n", name, v, at)
		}
	}
	for _, r := range rules {
		c := made[r.Name]
		for _, m := range c.Ill {
			add(m, member(r.Key, "a", r.Name+"-ill"), 1)
			for i := range 4 {
				if !r.Levels {
					add(m, member(r.Key, "a", fmt.Sprintf("%s-healthy%d", r.Name, i)), 0)
				}
			}
		}
		for _, m := range c.Alike {
			add(m, member(r.Key, "b", r.Name+"-alike"), 1)
		}
		for _, up := range []string{"-ill", "-alike"} {
			add(Made{Metric: "up", Level: 1}, member(ByService, "a", r.Name+up), 0)
		}
	}
	var names []string
	for n := range byMetric {
		names = append(names, n)
	}
	sort.Strings(names)
	var b bytes.Buffer
	for _, n := range names {
		// Names of vmstat have no _total: an unknown type takes any name.
		fmt.Fprintf(&b, "# TYPE %s unknown\n%s", n, strings.Join(byMetric[n], ""))
	}
	b.WriteString("# EOF\n")
	return b.Bytes(), vm.Bytes()
}

// serve starts an engine on loopback and waits until it answers.
func serve(t *testing.T, name string, args ...string) (address string) {
	t.Helper()
	return serveUntil(t, "/api/v1/query?query=1", name, args...)
}

// serveUntil starts a program on loopback and waits until it has this page.
func serveUntil(t *testing.T, page, name string, args ...string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	l.Close()
	var out bytes.Buffer
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "ADDRESS", address)
	}
	cmd := exec.Command(need.Tool(t, name), args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 300 {
		if resp, err := http.Get("http://" + address + page); err == nil {
			resp.Body.Close()
			if resp.StatusCode == 200 {
				return address
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s does not answer: %.2000s", name, out.String())
	return ""
}

// filled starts both engines with the same samples, and fills the lab's where there is one.
func filled(t *testing.T, end time.Time) (all map[string]*Engine) {
	t.Helper()
	promtool := need.Tool(t, "promtool")
	dir := t.TempDir()
	open, imported := madeSamples(end)
	file := filepath.Join(dir, "samples.om")
	if err := os.WriteFile(file, open, 0o600); err != nil {
		t.Fatal(err)
	}
	tsdb := filepath.Join(dir, "tsdb")
	if out, err := exec.Command(promtool, "tsdb", "create-blocks-from", "openmetrics", file,
		tsdb).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v: %.2000s", err, out)
	}
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all = map[string]*Engine{}
	add := func(name string, o Options) {
		o.Timeout = time.Minute
		e, err := NewEngine(o)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = e
	}
	add(reference, Options{URL: serve(t, "prometheus", "--config.file="+config,
		"--storage.tsdb.path="+tsdb, "--storage.tsdb.retention.time=100y", "--web.listen-address=ADDRESS")})
	victoria := serve(t, "victoria-metrics", "-storageDataPath="+filepath.Join(dir, "vm"),
		"-httpListenAddr=ADDRESS", "-search.latencyOffset=1s")
	resp, err := http.Post("http://"+victoria+"/api/v1/import/prometheus", "text/plain", bytes.NewReader(imported))
	if err != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("import: %v %v", err, resp)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	flush, err := http.Get("http://" + victoria + "/internal/force_flush")
	if err == nil {
		flush.Body.Close()
	}
	add("victoria-metrics", Options{URL: victoria})
	if x := extra(t, imported); x != nil {
		add(x.Name, Options{URL: x.Query, Tenant: x.Tenant})
	}
	return all
}

// reference is the engine that the others are held to.
const reference = "prometheus"

// TestEngines gives all engines the same samples: each rule finds the member that is ill, and
// nothing else, and their figures agree.
func TestEngines(t *testing.T) {
	end := samplesEnd()
	values := map[string]map[string]float64{}
	for name, e := range filled(t, end) {
		r, err := Look(context.Background(), e, Ask{Since: 30 * time.Minute, At: end, Top: 50, MaxSamples: 1e9})
		if err != nil {
			t.Fatal(err)
		}
		values[name] = found(t, name, r, end)
		t.Logf("%s is %s %s: %d questions, %v of its time, warnings %q", name, r.Engine.Name,
			r.Engine.Version, r.Cost.Questions,
			time.Duration(r.Cost.EngineNS).Round(time.Millisecond), r.Engine.Warnings)
		if name != reference && len(r.Engine.Warnings) > 0 {
			t.Errorf("%s warns of a whole answer: %q", name, r.Engine.Warnings)
		}
	}
	for name := range values {
		agree(t, name, values[reference], values[name])
	}
}

// TestMatchWithoutUp finds the scrape interval where --match leaves no series up: the ill are found
// as well.
func TestMatchWithoutUp(t *testing.T) {
	end := samplesEnd()
	matchers, err := Matchers([]string{"container=app"})
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range filled(t, end) {
		r, err := Look(context.Background(), e, Ask{Since: 30 * time.Minute, At: end, Top: 20,
			MaxSamples: 1e9, Match: matchers})
		if err != nil {
			t.Fatal(err)
		}
		if every := time.Duration(r.Coverage.IntervalNS); every != madeInterval*time.Second ||
			len(r.Coverage.Jobs) > 0 {
			t.Errorf("%s: a scrape every %v, want %d s; jobs %v", name, every, madeInterval, r.Coverage.Jobs)
		}
		if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Rule == "cpu-throttled" }) {
			t.Errorf("%s: cpu-throttled not found", name)
		}
	}
}

// agree holds figures of an engine to those of the reference: at most a tenth apart.
func agree(t *testing.T, name string, want, got map[string]float64) {
	t.Helper()
	most, at := 0.0, ""
	for key, a := range want {
		b, ok := got[key]
		if !ok || math.Abs(a-b) > 0.1*math.Max(math.Abs(a), math.Abs(b)) {
			t.Errorf("%s: %g by %s, %g by %s (there: %t)", key, a, reference, b, name, ok)
		} else if apart := math.Abs(a-b) / math.Max(math.Abs(a), 1e-12); apart > most {
			most, at = apart, key
		}
	}
	if len(want) != len(got) {
		t.Errorf("%s: %d figures, %s has %d", name, len(got), reference, len(want))
	}
	t.Logf("%s: %d figures, at most %.2f %% from those of %s %s", name, len(got), 100*most, reference, at)
}

// TestEngineValues asks all engines for each expression of each rule, over the whole time and over
// the last minutes, of all members, healthy ones included.
func TestEngineValues(t *testing.T) {
	end := samplesEnd()
	values, queries := map[string]map[string]float64{}, ruleQueries()
	for name, e := range filled(t, end) {
		values[name] = map[string]float64{}
		for query, key := range queries {
			got, err := e.Instant(context.Background(), query, end)
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, query)
			}
			for _, s := range got {
				values[name][key+" of "+
					s.Labels.only([]string{"cluster", "job", "namespace", "pod", "container",
						"instance"}).String()] = s.Value
			}
		}
	}
	for name := range values {
		agree(t, name, values[reference], values[name])
	}
}

// ruleQueries are the expressions of all rules, and what each is; rules share some.
func ruleQueries() map[string]string {
	p := &Profile{Cluster: []string{"cluster"}}
	first, close := &env{p: p, window: 30 * time.Minute, first: true}, &env{p: p, window: leastWindow}
	all := map[string]string{}
	for _, r := range rules {
		for n, e := range map[string]*env{"first": first, "close": close} {
			all[r.Loss(e)] = r.Name + " loss, " + n
			if r.And != nil {
				all[r.And(e)] = r.Name + " and, " + n
			}
			for i, f := range r.Proof {
				all[f.Expr(e)] = fmt.Sprintf("%s proof %d, %s", r.Name, i, n)
			}
		}
	}
	return all
}

// samplesEnd is the time of the newest sample, the same for all tests: the lab's engine is filled
// once.
var samplesEnd = sync.OnceValue(func() time.Time { return time.Now().Add(-fleetAge).Truncate(time.Second) })

// fleetAge is how old the newest sample is: VictoriaMetrics hides the last seconds.
const fleetAge = 35 * time.Second

// found checks what was found on one engine, and returns the figures.
func found(t *testing.T, engine string, r *Result, end time.Time) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	for _, f := range r.Findings {
		for _, m := range f.Members {
			if !strings.Contains(m.Name, "-ill") {
				t.Errorf("%s: %s found at %s, %s: %s", engine, f.Rule, m.Name, f.Confidence, f.Why)
			}
			got[f.Rule+" at "+m.Name] = m.Value
		}
		// The bout began in the middle; the error that is said has to hold.
		start := end.Add(-madeMinutes * time.Minute / 2)
		share := f.Unit == Share // of two rates, which grow alike from the first sample on
		if !ruleNamed(f.Rule).Levels && !share && f.Since != nil &&
			f.Since.Sub(start).Abs() > time.Duration(f.SinceErrNS)+2*madeInterval*time.Second {
			t.Errorf("%s: %s: since %v (+-%v), it was %v", engine, f.Rule, f.Since, time.Duration(f.SinceErrNS), start)
		}
	}
	for _, rule := range rules {
		seen := false
		for key := range got {
			seen = seen || strings.HasPrefix(key, rule.Name+" at ") && strings.Contains(key, rule.Name+"-ill")
		}
		if !seen {
			t.Errorf("%s: %s not found", engine, rule.Name)
		}
	}
	return got
}
