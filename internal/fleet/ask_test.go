package fleet

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/whystall/whystall/internal/finding"
)

const secretWord = "s3cr3t-t0ken"

// TestRefusals holds what each refusal means to one line without secrets, and to whether anything
// else is worth asking.
func TestRefusals(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		name string
		h    http.HandlerFunc
		want string
		kind RefusalKind
	}{
		{"login page", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<!doctype html><title>Log in</title>") }, "web page", Unreachable},
		{"another API", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"hello":"world"}`) }, "no JSON of a query API", Unreachable},
		{"TLS", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Client sent an HTTP request to an HTTPS server.", http.StatusBadRequest)
		}, "https://", Unreachable},
		{"hangs up", func(w http.ResponseWriter, _ *http.Request) {
			if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
				c.Close()
			}
		}, "https://", Unreachable},
		{"fails", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) }, "its own log", Unreachable},
		{"empty", func(http.ResponseWriter, *http.Request) {}, "nothing", Unreachable},
		{"unauthorized", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }, "--bearer-file", Unreachable},
		{"tenant", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no org id", http.StatusUnauthorized) }, "--tenant", Unreachable},
		{"forbidden", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }, "403", Unreachable},
		{"no API", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotFound) }, "/prometheus", Unreachable},
		{"too many", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTooManyRequests) }, "429", Slow},
		{"gateway", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) }, "502", Slow},
		{"limit", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"status":"error","errorType":"execution","error":"query processing would load too many samples"}`)
		}, "too many samples", TooMuch},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://evil.example/?a="+secretWord, http.StatusFound)
		}, "http://evil.example", Unreachable},
		{"huge", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"status":"success","data":"`)
			for range 20 {
				fmt.Fprint(w, huge)
			}
		}, "more than 4 MiB", TooMuch},
		{"drips", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"status":`)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "--timeout", Slow},
		{"dies", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"status":`)
		}, "broke", Slow},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(c.h)
			defer s.Close()
			o := Options{URL: strings.Replace(s.URL, "http://", "http://me:"+secretWord+"@", 1) + "/graph?token=" + secretWord, Bearer: secretWord, Timeout: time.Second}
			e, err := NewEngine(o)
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.Instant(context.Background(), "up", time.Unix(1, 0))
			r, ok := err.(*Refusal)
			if !ok || r.Kind != c.kind || !strings.Contains(r.Text, c.want) {
				t.Errorf("got %#v, want %s with %q", err, c.kind, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), secretWord) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("a secret or a second line in %q", err)
			}
		})
	}
}

// TestCredentials sends them to the engine, and never to where it redirects.
func TestCredentials(t *testing.T) {
	var got http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1,"NaN"]},{"metric":{"a":"c"},"value":[1,"2"]}]},"warnings":["PromQL info: x","a store is down"]}`)
	}))
	defer s.Close()
	e, err := NewEngine(Options{URL: s.URL, Bearer: secretWord, Tenant: "a|b", Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	v, err := e.Instant(context.Background(), "up", time.Unix(1, 0))
	if err != nil || len(v) != 1 || v[0].Value != 2 {
		t.Errorf("%v %v: NaN is no value", v, err)
	}
	if got.Get("Authorization") != "Bearer "+secretWord || got.Get("X-Scope-OrgID") != "a|b" {
		t.Errorf("sent %v", got)
	}
	if _, warned := e.spent(); len(warned) != 1 || warned[0] != "a store is down" {
		t.Errorf("warnings %q", warned)
	}
}

func TestRules(t *testing.T) {
	names := map[string]bool{}
	for _, r := range rules {
		switch {
		case names[r.Name]:
			t.Errorf("%s: twice", r.Name)
		case len(r.Needs) == 0 || r.Loss == nil || r.Least <= 0 || r.Why == "" || r.Sure == "":
			t.Errorf("%s: not whole", r.Name)
		case r.And != nil && len(r.AndNeeds) > 0 && r.Alone == "" && !r.AloneNot:
			t.Errorf("%s: says nothing of the loss alone", r.Name)
		case r.Sure == "proven":
			t.Errorf("%s: metrics prove nothing", r.Name)
		}
		names[r.Name] = true
	}
}

func TestBouts(t *testing.T) {
	at := func(i int) time.Time { return time.Unix(int64(i)*60, 0) }
	var points []Point
	for i := range 60 {
		v := 0.0
		if i >= 10 && i < 17 || i >= 40 {
			v = 1
		}
		points = append(points, Point{at(i), v})
	}
	w := bouts(points, 0.5, time.Minute, false, time.Hour)
	if !w.ill || w.bouts != 2 || !w.start.Equal(at(40)) || w.gaps {
		t.Errorf("%+v", w)
	}
	if w := bouts(points[:13], 0.5, time.Minute, false, time.Hour); w.ill {
		t.Errorf("three minutes are no bout: %+v", w)
	}
	if w := bouts(append(points[:12:12], points[40:]...), 0.5, time.Minute, false, time.Hour); !w.gaps || !w.start.Equal(at(40)) {
		t.Errorf("a gap is not seen: %+v", w)
	}
}

func TestForeignNames(t *testing.T) {
	evil := Labels{"instance": `h"} or vector(1) #`, "pod": "a'; rm -rf /", "namespace": "$(x)"}
	if m := among([]Labels{evil}, "instance"); m != `instance=~"h\"\\} or vector\\(1\\) #"` {
		t.Errorf("matcher %s", m)
	}
	if s := finding.ShellWord(evil["pod"]); s != `'a'\''; rm -rf /'` {
		t.Errorf("word %s", s)
	}
}

// TestCaptureOfForeignNames: no shell, here or on the host, finds anything to carry out in a label.
// No program finds an option there.
func TestCaptureOfForeignNames(t *testing.T) {
	l := &look{nodes: map[string]string{}}
	for _, c := range []struct {
		key    Key
		labels Labels
		want   string
	}{
		{ByHost, Labels{"instance": "db1:9100"}, "ssh db1 sudo whystall diagnose --pid PID --for 60s -o swap-db1.case"},
		{ByContainer, Labels{"instance": "db1:9100", "name": "$(reboot)"}, `ssh db1 'sudo whystall diagnose '\''container:$(reboot)'\'' --for 60s'`},
		{ByHost, Labels{"instance": "-oProxyCommand=reboot"}, "# no command: the label instance starts with -, as an option does"},
		{ByHost, Labels{"instance": "[-oProxyCommand=reboot]:9100"}, "# no command: the label instance starts with -, as an option does"},
		{ByContainer, Labels{"namespace": "ns", "pod": "--kubeconfig=x"}, "# no command: the label pod starts with -, as an option does"},
	} {
		if got := l.capture(t.Context(), &Rule{Cause: "swap", Key: c.key}, c.labels); got[0] != c.want {
			t.Errorf("%v:\n got %s\nwant %s", c.labels, got[0], c.want)
		}
	}
}

// TestMatchers takes one label at a time, and no pattern that engines would refuse each question
// for.
func TestMatchers(t *testing.T) {
	for m, want := range map[string]string{
		"job=node": `job="node"`, `job="node"`: `job="node"`, "job=": `job=""`, "pod=~a|b": `pod=~"a|b"`, "pod!~x.*": `pod!~"x.*"`, "job != node": `job!="node"`,
		"job=a=b": `job="a=b"`,
		"foo":     "", `{job="node"}`: "", `job="a",instance="b"`: "", "pod=~[": "", "__name__=~.+": "", "job==node": "", "1a=b": "",
	} {
		got, err := Matchers([]string{m})
		if want == "" && err == nil || want != "" && (err != nil || got[0] != want) {
			t.Errorf("%s: %q, %v; want %q", m, got, err, want)
		}
	}
}

// TestEngineNames tells engines apart by their builds, as each answers.
func TestEngineNames(t *testing.T) {
	for want, answer := range map[string]string{
		"Prometheus 2.42.0":            `{"version":"2.42.0","revision":"x","branch":"HEAD","goVersion":"go1.19.8"}`,
		"Prometheus-compatible ":       `{"version":"","revision":"unknown","branch":"","buildUser":"","buildDate":"","goVersion":"go1.26.8"}`, // Prometheus 3, built by hand
		"VictoriaMetrics ":             `{}`,
		"VictoriaMetrics  of Grafana":  `{"version":"2.24.0"}`,
		"Grafana Mimir 3.0.0":          `{"application":"Grafana Mimir","version":"3.0.0","goVersion":"go1.25.9"}`,
		"Thanos 0.42.0":                `{"version":"0.42.0","revision":"x","goVersion":"go1.26.0"}`,
		"Prometheus-compatible 3.13.1": `{"version":"3.13.1"}`,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"status":"success","data":%s}`, answer)
		}))
		e, err := NewEngine(Options{URL: s.URL, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		got := e.info(context.Background())
		s.Close()
		if want, _, _ := strings.Cut(want, "  of"); strings.TrimSpace(got.Name+" "+got.Version) != strings.TrimSpace(want) {
			t.Errorf("%s: %s %s, want %s", answer, got.Name, got.Version, want)
		}
	}
}
