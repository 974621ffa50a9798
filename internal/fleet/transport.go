package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// maxAnswer bounds one answer: they are top lists of some kilobytes.
const maxAnswer = 4 << 20

var errTooLarge = fmt.Errorf("the answer has more than %d MiB", maxAnswer>>20)

// wire carries questions. It adds credentials for the engine's own host only, bounds answers, and
// drops what an engine says about a query that is no warning.
type wire struct {
	base *url.URL // without credentials, query and fragment
	o    Options
	next http.RoundTripper
	tape *tape // nil: answers are neither kept nor replayed

	mu          sync.Mutex
	noPartial   bool   // partial_response=false met an error once: it is asked for with true
	any         bool   // it answered something
	application string // what /api/v1/status/buildinfo calls itself; "" nothing
}

// wireCost is what one question met on the wire.
type wireCost struct {
	bytes    int64
	status   int
	kind     string // Content-Type
	head     string // the first bytes of an answer that is no JSON
	redirect string // where it was sent to
}

type costKey struct{}

func withCost(ctx context.Context, c *wireCost) context.Context {
	return context.WithValue(ctx, costKey{}, c)
}

// apiPaths are the ends of addresses that people copy from a browser or a configuration.
var apiPaths = []string{"/api/v1/query", "/api/v1/query_range", "/api/v1", "/graph", "/query",
	"/classic/graph", "/vmui", "/targets"}

func newWire(o Options) (*wire, error) {
	if !strings.Contains(o.URL, "://") {
		o.URL = "http://" + o.URL
	}
	u, err := url.Parse(o.URL)
	if err != nil {
		// The error quotes the address, which may hold a password.
		return nil, errors.New("--prom: not an address: want http://HOST:PORT")
	}
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("--prom %s: want http://HOST:PORT, with the engine's path where it has one", redacted(u))
	}
	if p, ok := u.User.Password(); ok && o.Password == "" {
		o.User, o.Password = u.User.Username(), p
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	for _, end := range apiPaths {
		if rest, ok := strings.CutSuffix(strings.TrimRight(u.Path, "/"), end); ok {
			u.Path = rest
			break
		}
	}
	w := &wire{base: u, o: o, next: o.Transport}
	if w.next == nil {
		w.next = http.DefaultTransport
	}
	if o.Record != "" || o.Replay != "" {
		if w.tape, err = newTape(o.Record, o.Replay); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func redacted(u *url.URL) string {
	if u == nil {
		return ""
	}
	c := *u
	c.RawQuery, c.Fragment = "", ""
	return c.Redacted()
}

func (w *wire) shown() string { return w.base.String() }

// RoundTrip sends one request. It follows no redirect to another host: the credentials are not for
// it, and neither are the questions.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	seen, _ := r.Context().Value(costKey{}).(*wireCost)
	if seen == nil {
		seen = &wireCost{}
	}
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	if w.tape != nil && w.tape.replay != "" {
		return w.tape.play(r, body)
	}
	resp, err := w.send(r, body)
	if err != nil {
		return nil, err
	}
	seen.status, seen.kind = resp.StatusCode, resp.Header.Get("Content-Type")
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	resp.Body.Close()
	seen.bytes += int64(len(answer))
	if err != nil {
		return nil, err
	}
	if len(answer) > maxAnswer {
		return nil, errTooLarge
	}
	if resp.StatusCode/100 == 3 {
		seen.redirect = resp.Header.Get("Location")
		return nil, errRedirect
	}
	if t := bytes.TrimSpace(answer); len(t) == 0 || t[0] != '{' {
		seen.head = string(t[:min(len(t), 200)])
		if resp.StatusCode/100 == 2 {
			return nil, errNotJSON
		}
	} else if resp.StatusCode/100 == 2 && !bytes.Contains(answer, []byte(`"status"`)) {
		seen.head = "{"
		return nil, errNotJSON
	}
	w.mu.Lock()
	w.any = true
	w.mu.Unlock()
	answer = w.warnings(r, answer)
	if w.tape != nil {
		if err := w.tape.keep(r, body, resp.StatusCode, answer); err != nil {
			return nil, err
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	resp.ContentLength = int64(len(answer))
	return resp, nil
}

// answered reports whether the engine has answered anything yet.
func (w *wire) answered() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.any
}

var (
	errRedirect = errors.New("redirected")
	errNotJSON  = errors.New("not an answer of the API")
)

func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

// send asks, without partial answers first: an engine that has some says so, and then they are
// asked for, with its warnings.
func (w *wire) send(r *http.Request, body []byte) (*http.Response, error) {
	w.mu.Lock()
	partial := w.noPartial
	w.mu.Unlock()
	resp, err := w.once(r, body, partial)
	if err != nil || partial || resp.StatusCode != http.StatusUnprocessableEntity &&
		resp.StatusCode/100 != 5 || !strings.Contains(r.URL.Path, "/query") {
		return resp, err
	}
	again, err := w.once(r, body, true)
	if err != nil || again.StatusCode/100 != 2 {
		if err == nil {
			again.Body.Close()
		}
		return w.once(r, body, false)
	}
	resp.Body.Close()
	w.mu.Lock()
	w.noPartial = true
	w.mu.Unlock()
	return again, nil
}

func (w *wire) once(r *http.Request, body []byte, partial bool) (*http.Response, error) {
	q := r.Clone(r.Context())
	q.Body = io.NopCloser(bytes.NewReader(body))
	q.ContentLength = int64(len(body))
	if strings.Contains(q.URL.Path, "/query") {
		args := q.URL.Query()
		args.Set("partial_response", fmt.Sprint(partial)) // Thanos; others ignore it
		args.Set("dedup", "true")
		args.Set("max_source_resolution", "0s")
		q.URL.RawQuery = args.Encode()
	}
	for k, v := range w.o.Headers {
		q.Header[k] = v
		if http.CanonicalHeaderKey(k) == "Host" && len(v) > 0 {
			q.Host = v[0]
		}
	}
	switch {
	case w.o.Bearer != "":
		q.Header.Set("Authorization", "Bearer "+w.o.Bearer)
	case w.o.User != "" || w.o.Password != "":
		q.SetBasicAuth(w.o.User, w.o.Password)
	}
	if w.o.Tenant != "" {
		q.Header.Set("X-Scope-OrgID", w.o.Tenant)
	}
	resp, err := w.next.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 3 && len(body) == 0 {
		if to, err := resp.Location(); err == nil && to.Host == w.base.Host && to.Scheme == w.base.Scheme {
			resp.Body.Close()
			q.URL = to
			return w.next.RoundTrip(q)
		}
	}
	return resp, nil
}

// warnings keeps what an engine says of an answer that may be incomplete. "PromQL info" is about
// names of metrics, and Thanos puts it among the warnings; some answers of VictoriaMetrics are
// partial without a warning.
func (w *wire) warnings(r *http.Request, answer []byte) []byte {
	var a struct {
		Status    string          `json:"status"`
		IsPartial bool            `json:"isPartial,omitempty"`
		Data      json.RawMessage `json:"data,omitempty"`
		ErrorType string          `json:"errorType,omitempty"`
		Error     string          `json:"error,omitempty"`
		Warnings  []string        `json:"warnings,omitempty"`
	}
	if json.Unmarshal(answer, &a) != nil || a.Status == "" {
		return answer
	}
	if strings.HasSuffix(r.URL.Path, "/status/buildinfo") {
		var b struct {
			Application string `json:"application"`
		}
		if json.Unmarshal(a.Data, &b) == nil {
			w.mu.Lock()
			w.application = b.Application
			w.mu.Unlock()
		}
	}
	kept := a.Warnings[:0]
	for _, s := range a.Warnings {
		if !strings.HasPrefix(s, "PromQL info") {
			kept = append(kept, s)
		}
	}
	if a.IsPartial {
		kept = append(kept, "the engine says that its answer is partial: some of its storage did not answer")
	}
	a.Warnings = kept
	out, err := json.Marshal(a)
	if err != nil {
		return answer
	}
	return out
}
