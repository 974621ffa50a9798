package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// fakeEngine answers questions about two hosts: one waits for memory and reclaims it directly. What
// it is not asked for here it has not.
func fakeEngine(t *testing.T, change func(query string) (answer string, ok bool)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		query := r.Form.Get("query")
		if a, ok := change(query); ok {
			fmt.Fprint(w, a)
			return
		}
		fmt.Fprint(w, fakeAnswer(r, query))
	}))
	t.Cleanup(s.Close)
	return s
}

const fakeHost = `"cluster":"a","job":"node","instance":"h1:9100"`

func vector(series ...string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(series, ",") + `]}}`
}

func sample(labels, value string) string {
	return `{"metric":{` + labels + `},"value":[1700000000,"` + value + `"]}`
}

func fakeAnswer(r *http.Request, query string) string {
	const pressure, reclaim = "node_pressure_memory_waiting_seconds_total", "node_vmstat_allocstall_normal"
	switch {
	case strings.HasSuffix(r.URL.Path, "/buildinfo"):
		return `{"status":"success","data":{"version":"2.42.0"}}`
	case strings.HasSuffix(r.URL.Path, "/query_range"):
		start, end := r.Form.Get("start"), r.Form.Get("end")
		var from, to, step float64
		fmt.Sscan(r.Form.Get("step"), &step)
		fmt.Sscan(start, &from)
		fmt.Sscan(end, &to)
		var points []string
		for at := from; at <= to; at += max(step, 1) {
			points = append(points, fmt.Sprintf(`[%f,"0.4"]`, at))
		}
		return `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{` +
			fakeHost + `},"values":[` + strings.Join(points, ",") + `]}]}}`
	case strings.Contains(query, "__name__"):
		return vector(sample(`"__name__":"`+pressure+`"`, "2"), sample(`"__name__":"`+reclaim+`"`, "2"))
	case strings.HasPrefix(query, "count by (cluster, k8s_cluster"):
		return vector(sample(`"cluster":"a"`, "2"))
	case strings.HasPrefix(query, "quantile"):
		return vector(sample("", "0.001"))
	case strings.HasPrefix(query, "count("):
		return vector(sample("", "2"))
	case strings.Contains(query, "count by"):
		return vector(sample(`"cluster":"a","job":"node"`, "1"))
	case strings.HasPrefix(query, "topk") && strings.Contains(query, pressure):
		return vector(sample(fakeHost, "0.4"),
			sample(`"cluster":"a","job":"node","instance":"h2:9100"`, "NaN"),
			sample(`"cluster":"a","job":"node"`, "0.0001"))
	case strings.Contains(query, reclaim):
		return vector(sample(fakeHost, "9"))
	}
	return vector()
}

func lookAt(t *testing.T, o Options, a Ask) *Result {
	t.Helper()
	e, err := NewEngine(o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Look(context.Background(), e, a)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var fakeAsk = Ask{Since: time.Hour, At: time.Unix(1_700_000_000, 0).UTC(), Top: 20, MaxSamples: 1e6}

// TestReplay explains recorded answers as they were explained at first. No file of the recording
// has a secret or the engine's address.
func TestReplay(t *testing.T) {
	s := fakeEngine(t, func(string) (string, bool) { return "", false })
	dir := filepath.Join(t.TempDir(), "answers")
	o := Options{URL: strings.Replace(s.URL, "http://", "http://me:"+secretWord+"@", 1) +
		"?token=" + secretWord, Bearer: secretWord, Timeout: time.Second, Record: dir,
		Headers: http.Header{"X-Key": {secretWord}}}
	first := lookAt(t, o, fakeAsk)
	if len(first.Findings) != 1 || first.Findings[0].Rule != "direct-reclaim-host" ||
		len(first.Findings[0].Members) != 1 {
		t.Fatalf("%+v", first.Findings)
	}
	asked, err := Recorded(dir)
	if err != nil || !reflect.DeepEqual(asked, fakeAsk) {
		t.Fatalf("asked %+v, %v", asked, err)
	}
	s.Close()
	again := lookAt(t, Options{URL: "http://replayed", Timeout: time.Second, Replay: dir}, asked)
	for _, r := range []*Result{first, again} {
		r.Engine.URL, r.Cost = "", Cost{}
	}
	if !reflect.DeepEqual(first, again) {
		a, _ := json.Marshal(first)
		b, _ := json.Marshal(again)
		t.Errorf("replayed\n%s\nat first\n%s", b, a)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 10 {
		t.Fatal(err, files)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || bytes.Contains(b, []byte(secretWord)) || bytes.Contains(b, []byte("127.0.0.1")) {
			t.Errorf("%s: %v: a secret or an address in %s", f, err, b)
		}
		if st, err := os.Stat(f); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: others may read it", f)
		}
	}
}

// TestBadTapes refuses folders that hold something else, in one line.
func TestBadTapes(t *testing.T) {
	for name, ask := range map[string]string{"nothing": "", "not JSON": "x", "no time": `{"top":1}`,
		"huge": `{"since_ns":1,"at":"2026-01-01T00:00:00Z","top":100000,"max_samples":1}`} {
		dir := t.TempDir()
		if ask != "" {
			if err := os.WriteFile(filepath.Join(dir, askFile), []byte(ask), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Recorded(dir); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPartial says what an engine did not see itself, and a question that is refused is one not
// checked: neither is quiet.
func TestPartial(t *testing.T) {
	s := fakeEngine(t, func(query string) (string, bool) {
		if strings.HasPrefix(query, "topk(20, max by") {
			return `{"status":"success","isPartial":true,"data":{"resultType":"vector","result":[]},"warnings":["store b is down"]}`, true
		}
		return "", false
	})
	r := lookAt(t, Options{URL: s.URL, Timeout: time.Second}, fakeAsk)
	if len(r.Engine.Warnings) != 2 || len(r.Findings) != 0 {
		t.Errorf("warnings %q, findings %+v", r.Engine.Warnings, r.Findings)
	}
	s = fakeEngine(t, func(query string) (string, bool) {
		if strings.HasPrefix(query, "topk(20, max by") {
			return `{"status":"error","errorType":"execution","error":"too many samples"}`, true
		}
		return "", false
	})
	if r = lookAt(t, Options{URL: s.URL, Timeout: time.Second}, fakeAsk); len(r.NotChecked) == 0 ||
		len(r.RuledOut) > 0 {
		t.Errorf("ruled out %+v", r.RuledOut)
	}
}

// TestSplit asks by cluster, and by the last letter of names, where a question would read too much.
func TestSplit(t *testing.T) {
	l := &look{o: Ask{MaxSamples: 100}, clusters: []Labels{{"cluster": "a"}, {"cluster": `b"`}},
		p: Profile{Cluster: []string{"cluster"}}}
	host := &Rule{Key: ByHost}
	for _, c := range []struct {
		samples int64
		want    int
	}{{100, 1}, {150, 2}, {1500, 16}, {5000, 0}} {
		if got := l.parts(host, c.samples); len(got) != c.want {
			t.Errorf("%d samples in %d parts, want %d: %q", c.samples, len(got), c.want, got)
		}
	}
	if got := l.parts(host, 150); got[1][0] != `cluster="b\""` {
		t.Errorf("%q", got)
	}
}

// FuzzAnswer gives the client any answer: no panic, no value that is none, errors of one line.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{vector(sample(fakeHost, "1")), vector(sample("", "NaN")),
		`{"status":"success","data":{"resultType":"matrix","result":[]}}`,
		`{"status":"success","data":{"resultType":"scalar","result":[1,"+Inf"]}}`,
		`{"status":"error","errorType":"x","error":"a\nb"}`, "{", `{"status":"success","data":null}`} {
		f.Add([]byte(s), 200)
	}
	f.Fuzz(func(t *testing.T, answer []byte, status int) {
		if status < 200 || status > 599 {
			return
		}
		e, err := NewEngine(Options{URL: "http://x", Timeout: time.Second, Transport: fixed{answer, status}})
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(1, 0)
		got, err := e.Instant(context.Background(), "up", at)
		for _, s := range got {
			if s.Value-s.Value != 0 {
				t.Errorf("%v", s)
			}
		}
		_, rerr := e.Range(context.Background(), "up", at, at.Add(time.Hour), time.Minute)
		for _, err := range []error{err, rerr} {
			if err != nil && strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("two lines: %q", err)
			}
		}
	})
}

// fixed answers everything alike.
type fixed struct {
	answer []byte
	status int
}

func (f fixed) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: f.status, Header: http.Header{}, Request: r,
		Body: io.NopCloser(bytes.NewReader(f.answer))}, nil
}
