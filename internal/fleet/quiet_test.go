package fleet

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestDepth looks at no more time than there are samples of, and says so.
func TestDepth(t *testing.T) {
	const held = 11 * time.Minute
	s := fakeEngine(t, func(query string) (string, bool) { return "", false })
	s.Config.Handler = olderThan(s.Config.Handler, fakeAsk.At.Add(-held))
	r := lookAt(t, Options{URL: s.URL, Timeout: time.Second}, fakeAsk)
	oldest := r.Coverage.Oldest
	if oldest == nil || r.Coverage.AskedNS != int64(time.Hour) || (time.Duration(r.SinceNS)-held).Abs() > time.Minute || (fakeAsk.At.Sub(*oldest)-held).Abs() > time.Minute {
		t.Errorf("oldest %v, looked at %v", oldest, time.Duration(r.SinceNS))
	}
	month := fakeAsk
	month.Since = 30 * 24 * time.Hour
	if r := lookAt(t, Options{URL: s.URL, Timeout: time.Second}, month); (time.Duration(r.SinceNS) - held).Abs() > time.Minute {
		t.Errorf("of a month looked at %v", time.Duration(r.SinceNS))
	}
	whole := lookAt(t, Options{URL: fakeEngine(t, func(string) (string, bool) { return "", false }).URL, Timeout: time.Second}, fakeAsk)
	if whole.Coverage.Oldest != nil || whole.SinceNS != int64(time.Hour) {
		t.Errorf("oldest %v of an engine that has all of it", whole.Coverage.Oldest)
	}
}

// olderThan answers that there was no target before a time.
func olderThan(h http.Handler, oldest time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		var at float64
		fmt.Sscan(r.Form.Get("time"), &at)
		if r.Form.Get("query") == "count(up)" && at < float64(oldest.Unix()) {
			fmt.Fprint(w, vector())
			return
		}
		h.ServeHTTP(w, r)
	})
}

// TestConstantZeros takes zeros that nothing counts for no all-clear.
func TestConstantZeros(t *testing.T) {
	const pressure = "container_pressure_memory_waiting_seconds_total"
	for total, want := range map[string]string{"0": "not checked", "3": "ruled out"} {
		s := fakeEngine(t, func(query string) (string, bool) {
			switch {
			case strings.Contains(query, "__name__"):
				return vector(sample(`"__name__":"`+pressure+`"`, "2"), sample(`"__name__":"container_cpu_cfs_throttled_seconds_total"`, "2"), sample(`"__name__":"go_sched_gomaxprocs_threads"`, "1")), true
			case strings.HasPrefix(query, "topk"):
				return vector(sample(`"id":"/a","name":"a","instance":"h1:8080"`, "0")), true
			case strings.HasPrefix(query, "max("):
				return vector(sample("", total)), true
			}
			return "", false
		})
		r := lookAt(t, Options{URL: s.URL, Timeout: time.Second}, fakeAsk)
		got := ""
		for _, n := range r.NotChecked {
			if n.Rule == "direct-reclaim-cgroup" && n.Lacks == nil {
				got = "not checked"
			}
		}
		for _, o := range r.RuledOut {
			if o.Rule == "direct-reclaim-cgroup" {
				got = "ruled out"
			}
		}
		if got != want {
			t.Errorf("counters of %s: %q, want %q", total, got, want)
		}
	}
}

// TestGoOfWhom joins no Go program to a container by the host's name: cAdvisor is one itself.
func TestGoOfWhom(t *testing.T) {
	s := fakeEngine(t, func(query string) (string, bool) {
		switch {
		case strings.Contains(query, "__name__"):
			return vector(sample(`"__name__":"container_cpu_usage_seconds_total"`, "2"), sample(`"__name__":"container_cpu_cfs_throttled_seconds_total"`, "2"), sample(`"__name__":"go_sched_gomaxprocs_threads"`, "1")), true
		case strings.Contains(query, `container!=""`):
			return vector(), true // no Kubernetes
		case strings.HasPrefix(query, "topk"):
			return vector(sample(`"instance":"h1:8080"`, "0.9")), true
		}
		return "", false
	})
	r := lookAt(t, Options{URL: s.URL, Timeout: time.Second}, fakeAsk)
	for _, f := range r.Findings {
		if f.Rule == "gomaxprocs-over-quota" {
			t.Errorf("found at %v", f.Members)
		}
	}
	for _, n := range r.NotChecked {
		if n.Rule == "gomaxprocs-over-quota" && n.Lacks == nil {
			return
		}
	}
	t.Errorf("not said: %+v", r.NotChecked)
}

// TestRefusedHalfWay has an engine answer what there is and then no more: that is not quiet.
func TestRefusedHalfWay(t *testing.T) {
	for status, hopeless := range map[int]bool{http.StatusBadGateway: false, http.StatusForbidden: true} {
		s := fakeEngine(t, func(string) (string, bool) { return "", false })
		whole := s.Config.Handler
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm()
			if strings.HasPrefix(r.Form.Get("query"), "topk") && strings.Contains(r.Form.Get("query"), "increase") {
				http.Error(w, "no", status)
				return
			}
			whole.ServeHTTP(w, r)
		})
		e, err := NewEngine(Options{URL: s.URL, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Look(context.Background(), e, fakeAsk)
		if (err != nil) != hopeless || r.Refused() == 0 || hopeless && len(r.NotChecked)+len(r.RuledOut)+len(r.Findings) < len(rules) {
			t.Errorf("%d: %v, %d refused, %d of %d rules told", status, err, r.Refused(), len(r.NotChecked)+len(r.RuledOut)+len(r.Findings), len(rules))
		}
	}
}
