package fleet

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Engine asks one Prometheus-compatible engine. Its methods may be called from several goroutines.
type Engine struct {
	o      Options
	api    v1.API
	wire   *wire
	slots  chan struct{} // at most atOnce questions at a time
	mu     sync.Mutex
	cost   Cost
	warned []string
}

// Options are how to reach an engine, and the bounds of what may be asked.
type Options struct {
	URL       string
	Headers   http.Header
	User      string
	Password  string
	Bearer    string
	Tenant    string // X-Scope-OrgID
	Transport http.RoundTripper
	Timeout   time.Duration // of one question
	Record    string        // folder that keeps the answers; "" none
	Replay    string        // folder whose answers are given instead; "" none
	Insecure  bool
}

// atOnce is how many questions are under way at once: an engine has other askers.
const atOnce = 2

// Sample is one value of an answer.
type Sample struct {
	Labels Labels
	Value  float64
}

// Point is one value of a series.
type Point struct {
	At    time.Time
	Value float64
}

// Series is the values of one series over time.
type Series struct {
	Labels Labels
	Points []Point
}

// NewEngine makes an engine of the options. It asks nothing yet.
func NewEngine(o Options) (*Engine, error) {
	w, err := newWire(o)
	if err != nil {
		return nil, err
	}
	client, err := api.NewClient(api.Config{Address: w.base.String(), RoundTripper: w})
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", w.base.Redacted(), err)
	}
	return &Engine{o: o, api: v1.NewAPI(client), wire: w, slots: make(chan struct{}, atOnce)}, nil
}

// Instant asks for the values at one moment. NaN and Inf are left out: they are 0 by 0.
func (e *Engine) Instant(ctx context.Context, query string, at time.Time) ([]Sample, error) {
	var out []Sample
	err := e.ask(ctx, query, func(ctx context.Context) (v1.Warnings, error) {
		v, warnings, _, err := e.api.Query(ctx, query, at, v1.WithTimeout(e.o.Timeout))
		switch v := v.(type) {
		case model.Vector:
			for _, s := range v {
				out = appendSample(out, labelsOf(s.Metric), float64(s.Value))
			}
		case *model.Scalar:
			out = appendSample(out, Labels{}, float64(v.Value))
		case nil:
		default:
			err = fmt.Errorf("want a vector, got %s", v.Type())
		}
		return warnings, err
	})
	return out, err
}

func appendSample(to []Sample, l Labels, v float64) []Sample {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return to
	}
	return append(to, Sample{l, v})
}

// Range asks for values over time.
func (e *Engine) Range(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]Series, error) {
	var out []Series
	err := e.ask(ctx, query, func(ctx context.Context) (v1.Warnings, error) {
		v, warnings, _, err := e.api.QueryRange(ctx, query,
			v1.Range{Start: from, End: to, Step: step}, v1.WithTimeout(e.o.Timeout))
		m, ok := v.(model.Matrix)
		if err == nil && !ok {
			err = fmt.Errorf("want a matrix, got %T", v)
		}
		for _, s := range m {
			series := Series{Labels: labelsOf(s.Metric)}
			for _, p := range s.Values {
				if x := float64(p.Value); !math.IsNaN(x) && !math.IsInf(x, 0) {
					series.Points = append(series.Points, Point{p.Timestamp.Time().UTC(), x})
				}
			}
			out = append(out, series)
		}
		return warnings, err
	})
	return out, err
}

// ask holds a question to the bounds and books its cost.
func (e *Engine) ask(ctx context.Context, query string, do func(context.Context) (v1.Warnings, error)) error {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	// The engine ends a question by itself; one that does not, or drips, is ended here.
	ctx, cancel := context.WithTimeout(ctx, e.o.Timeout+e.o.Timeout/4)
	defer cancel()
	var seen wireCost
	start := time.Now()
	warnings, err := do(withCost(ctx, &seen))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cost.Questions++
	e.cost.EngineNS += int64(time.Since(start))
	e.cost.Bytes += seen.bytes
	e.cost.Largest = max(e.cost.Largest, seen.bytes)
	for _, w := range warnings {
		e.warn(w)
	}
	return e.wire.explain(err, &seen, query)
}

// mostWarnings is how many different warnings are kept: an engine may warn of each of its stores.
const mostWarnings = 20

func (e *Engine) warn(s string) {
	for _, w := range e.warned {
		if w == s {
			return
		}
	}
	if len(e.warned) < mostWarnings {
		e.warned = append(e.warned, s)
	}
}

// reads books samples that a question makes the engine read, by estimate.
func (e *Engine) reads(samples int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cost.Samples += samples
}

// spent is what was asked so far, and what the engine warned of.
func (e *Engine) spent() (Cost, []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cost, append([]string{}, e.warned...)
}

// info says who answers. Not knowing is no error: some engines say nothing.
func (e *Engine) info(ctx context.Context) EngineInfo {
	i := EngineInfo{URL: e.wire.shown(), Name: "Prometheus-compatible", Insecure: e.o.Insecure, Warnings: []string{}}
	ctx, cancel := context.WithTimeout(ctx, e.o.Timeout)
	defer cancel()
	b, err := e.api.Buildinfo(ctx)
	if err != nil {
		return i
	}
	i.Name, i.Version = engineName(b, e.wire.application), b.Version
	if i.Name == victoriaName {
		i.Version = "" // it gives one of Prometheus, for Grafana
	}
	return i
}

const victoriaName = "VictoriaMetrics"

// engineName tells engines apart by what they say of their build. Those that somebody has built by
// hand may have no version.
func engineName(b v1.BuildinfoResult, application string) string {
	switch {
	case application != "":
		return application // Mimir's
	case b.GoVersion == "" && (b.Version == "" || b.Version == "2.24.0"):
		return victoriaName // nothing in it until 1.95, and then this
	case strings.HasPrefix(b.Version, "0."):
		return "Thanos" // Prometheus left these behind in 2016
	case b.GoVersion != "" && b.Version != "":
		return "Prometheus"
	}
	return "Prometheus-compatible"
}

func labelsOf(m model.Metric) Labels {
	l := Labels{}
	for k, v := range m {
		l[string(k)] = string(v)
	}
	return l
}
