package collect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/whystall/whystall/internal/evidence"
)

// listener serves raw TCP: what is not HTTP, or not all of it.
func listener(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	return l.Addr().String()
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// hold waits until the other side is gone, at most for the test's life.
func hold(c net.Conn) { io.Copy(io.Discard, c) }

// Nothing comes of these: one line, status and no trace. ADDR stands for the server's address.
func TestNothingRecorded(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	closed.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	plain := serve(t, http.NotFoundHandler())
	reply := func(status int, body string) string {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status); w.Write([]byte(body)) }))
	}
	other := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect to another host was followed, with header %q", r.Header.Get("X-Api-Key"))
	}))
	loop := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }))

	for name, tc := range map[string]struct{ url, want string }{
		"nobody":    {nobody, "connection refused: nothing listens there; check host and port"},
		"ssh":       {listener(t, func(c net.Conn) { c.Write([]byte("SSH-2.0-OpenSSH_9.2\r\n")); hold(c) }), "it does not speak HTTP there: give the port that serves /debug/pprof"},
		"closes":    {listener(t, func(c net.Conn) { c.Read(make([]byte, 4096)) }), "it closed the connection without an answer: it may have ended, or may not speak HTTP there"},
		"mute":      {listener(t, hold), "it accepted the connection but did not answer for 300ms: it may be stopped or overloaded; try again"},
		"plain":     {"https" + strings.TrimPrefix(plain, "http"), "it does not speak TLS there: use http://"},
		"secure":    {"http" + strings.TrimPrefix(secure.URL, "https"), "it speaks TLS there: use https://"},
		"stranger":  {secure.URL, "x509: certificate signed by unknown authority; use the host name that its certificate is for, or set SSL_CERT_FILE to the certificate of its authority"},
		"no pprof":  {plain, "the service has no /debug/pprof/trace (404): import net/http/pprof in the service, or give the address where it serves it"},
		"page":      {reply(200, "<!DOCTYPE html><title>x</title>"), "/debug/pprof/trace answers with a web page: give the address of the service's own port, not of a page"},
		"empty":     {reply(200, ""), "/debug/pprof/trace gave an empty answer"},
		"json":      {reply(200, `{"status":"ok"}`), "/debug/pprof/trace answered with something that is not a Go execution trace"},
		"login":     {reply(401, "who are you"), "/debug/pprof/trace asks for credentials (401): give them with --header 'Authorization: ...'"},
		"forbidden": {reply(403, "no"), "/debug/pprof/trace asks for credentials (403): give them with --header 'Authorization: ...'"},
		"gateway":   {reply(502, "upstream is gone\nat line 2"), "/debug/pprof/trace answered 502 Bad Gateway: upstream is gone"},
		"redirect":  {serve(t, http.RedirectHandler(other+"/elsewhere?token="+secret, http.StatusFound)), "it redirects to " + other + "/elsewhere: give that address if it is the right one"},
		"loop":      {loop, "it redirects endlessly"},
		"taken": {serve(t, service(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			w.Write([]byte("Could not enable tracing: tracing is already enabled"))
		})), "another client is taking a trace or profile at the moment: try again when it has ended"},
		"refused": {reply(400, "profile duration exceeds server's WriteTimeout"), "the service's WriteTimeout is shorter than 1s: use a shorter --for"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := record(t, t.Context(), tc.url, func(o *Options) {
				if name == "mute" {
					o.Timing.Quiet = 300 * time.Millisecond
				}
			})
			var e *Error
			if !errors.As(r.err, &e) {
				t.Fatalf("got %v, want an Error", r.err)
			}
			if e.Why != tc.want {
				t.Errorf("got  %s\nwant %s", e.Why, tc.want)
			}
			if !strings.HasPrefix(e.What, "record http") || !strings.HasSuffix(e.What, "/debug/pprof/") {
				t.Errorf("operation is %q", e.What)
			}
			if r.has(evidence.TraceMember) {
				t.Error("a trace was kept")
			}
		})
	}
}

// Names are not looked up in a test: there may be no resolver.
func TestNoSuchHost(t *testing.T) {
	err := fmt.Errorf("Get: %w", &net.OpError{Op: "dial", Err: &net.DNSError{Name: "nosuch.example", IsNotFound: true}})
	if got := noResponse(t.Context(), err, 0).text; got != "nosuch.example: no such host; check the host's name" {
		t.Error(got)
	}
	err = &net.OpError{Op: "dial", Err: errTimeout{}}
	if got := noResponse(t.Context(), err, 0).text; got != "no answer to the connection attempt: check the address, and firewalls on the way" {
		t.Error(got)
	}
	var alert error = tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}
	if got := noResponse(t.Context(), alert, 0).text; got != "it does not speak TLS there: use http://" {
		t.Error(got)
	}
}

type errTimeout struct{}

func (errTimeout) Error() string { return "i/o timeout" }
func (errTimeout) Timeout() bool { return true }

// What came before it went wrong is kept, and the manifest and a note say what is missing.
func TestPartKept(t *testing.T) {
	part := func(w http.ResponseWriter) {
		w.Write(fakeTrace)
		w.(http.Flusher).Flush()
	}
	for name, tc := range map[string]struct {
		trace http.HandlerFunc
		opt   func(*Options)
		bytes int64
		lost  string
	}{
		"dies":   {func(w http.ResponseWriter, r *http.Request) { part(w); panic(http.ErrAbortHandler) }, nil, 10016, "the service closed the connection before the end"},
		"stalls": {func(w http.ResponseWriter, r *http.Request) { part(w); <-r.Context().Done() }, func(o *Options) { o.Timing.Quiet = 3 * time.Second }, 10016, "the service sent nothing for 3s"},
		"drips": {func(w http.ResponseWriter, r *http.Request) {
			for part(w); r.Context().Err() == nil; time.Sleep(5 * time.Millisecond) {
				w.Write([]byte("y"))
				w.(http.Flusher).Flush()
			}
		}, func(o *Options) { o.Timing.Whole = 3 * time.Second }, -1, "the service's answer did not end in time"},
		"large": {sendTrace, func(o *Options) { o.MaxSize = 5000 }, 5000, "cut at --max-size 4.9 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := record(t, t.Context(), serve(t, service(tc.trace)), tc.opt)
			if r.err != nil {
				t.Fatal(r.err)
			}
			if got := r.c.Size(evidence.TraceMember); got != tc.bytes && (tc.bytes >= 0 || got < 10016) {
				t.Errorf("kept %d bytes, want %d", got, tc.bytes)
			}
			if got := r.c.Manifest.Lost(evidence.TraceMember); got != tc.lost {
				t.Errorf("lost: %s, want %s", got, tc.lost)
			}
			if len(r.notes) != 1 || !strings.HasPrefix(r.notes[0], "trace: "+tc.lost+"; the ") {
				t.Errorf("said %q", r.notes)
			}
			if got := r.state("trace"); got != "broken: "+tc.lost {
				t.Errorf("state %s", got)
			}
			if !r.has("mutex.begin.pb.gz") || !r.has("block.begin.pb.gz") {
				t.Errorf("members %v", r.c.Names())
			}
		})
	}
}

// Pages that drip cost one page's patience before the trace and one after it, not that of each.
func TestPagesDrip(t *testing.T) {
	var asked atomic.Int32
	trace := service(sendTrace)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/trace") {
			trace.ServeHTTP(w, r)
			return
		}
		for asked.Add(1); r.Context().Err() == nil; time.Sleep(5 * time.Millisecond) {
			w.Write([]byte("y"))
			w.(http.Flusher).Flush()
		}
	}))
	r := record(t, t.Context(), s, func(o *Options) { o.Timing.Page = 200 * time.Millisecond })
	if r.err != nil {
		t.Fatal(r.err)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("%d pages were asked for, want 2", n)
	}
	if got := r.state("trace"); got != "ready" {
		t.Errorf("the trace is %s", got)
	}
	if got := r.state("mutex"); got != "broken: the service's answer did not end in time" {
		t.Errorf("the first page is %s", got)
	}
}

// The whole service may go in the middle: what is asked of it afterwards is asked once, not nine
// times.
func TestServiceEnds(t *testing.T) {
	var gone atomic.Bool
	var after atomic.Int32
	var s *httptest.Server
	mux := service(func(w http.ResponseWriter, r *http.Request) {
		w.Write(fakeTrace)
		w.(http.Flusher).Flush()
		gone.Store(true)
		panic(http.ErrAbortHandler)
	})
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			after.Add(1)
			panic(http.ErrAbortHandler)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	r := record(t, t.Context(), s.URL, nil)
	if r.err != nil || !r.has(evidence.TraceMember) {
		t.Errorf("%v, members %v", r.err, r.c.Names())
	}
	// Package http itself tries again once where a kept connection was closed.
	if n := after.Load(); n > 2 {
		t.Errorf("asked %d times after the end", n)
	}
}

func TestSomeoneElsesTraceEnds(t *testing.T) {
	var n atomic.Int32
	r := record(t, t.Context(), serve(t, service(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) < 3 {
			http.Error(w, "Could not enable tracing: tracing is already enabled", 500)
			return
		}
		w.Write(fakeTrace)
	})), func(o *Options) { o.Timing.Busy = time.Minute })
	if r.err != nil || !r.has(evidence.TraceMember) || r.state("trace") != "ready" {
		t.Errorf("%v, trace %s", r.err, r.state("trace"))
	}
	if want := "trace: another client is taking one: waiting up to 1m0s for it to end"; len(r.notes) != 1 || r.notes[0] != want {
		t.Errorf("said %q", r.notes)
	}
}

// Metrics and profiles are worth having where there is no trace.
func TestNoTrace(t *testing.T) {
	r := record(t, t.Context(), serve(t, service(http.NotFound)), nil)
	if r.err != nil {
		t.Fatal(r.err)
	}
	if !strings.HasPrefix(r.state("trace"), "unavailable: the service has no /debug/pprof/trace (404)") || !r.has("vars.end.json") {
		t.Errorf("trace %s, members %v", r.state("trace"), r.c.Names())
	}
	if len(r.notes) != 1 {
		t.Errorf("said %q", r.notes)
	}
	if r.state("metrics") != "unavailable: the service has no /metrics (404)" {
		t.Errorf("metrics %s", r.state("metrics"))
	}
}

// etcd 3.4 registers its trace as "/debug/pprof/trace ".
func TestTraceWithBlank(t *testing.T) {
	r := record(t, t.Context(), serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/debug/pprof/trace " || r.FormValue("seconds") != "1" {
			http.NotFound(w, r)
			return
		}
		w.Write(fakeTrace)
	})), nil)
	if r.err != nil || !r.has(evidence.TraceMember) || r.state("trace") != "ready" {
		t.Errorf("%v, trace %s", r.err, r.state("trace"))
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := record(t, ctx, serve(t, service(func(w http.ResponseWriter, r *http.Request) {
		w.Write(fakeTrace)
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	})), func(o *Options) { o.For = time.Hour })
	if r.err != nil {
		t.Fatal(r.err)
	}
	if r.c.Manifest.Stopped != "by the user" || r.c.Manifest.Ended.UTC.IsZero() {
		t.Errorf("stopped %q", r.c.Manifest.Stopped)
	}
	if r.c.Manifest.Lost(evidence.TraceMember) != "stopped" || !r.has("mutex.end.pb.gz") {
		t.Errorf("lost %q, members %v", r.c.Manifest.Lost(evidence.TraceMember), r.c.Names())
	}
	if len(r.notes) != 0 {
		t.Errorf("said %q", r.notes)
	}

	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	r = record(t, ctx, serve(t, service(sendTrace)), nil)
	if r.err == nil || !strings.HasSuffix(r.err.Error(), ": stopped before anything was recorded") {
		t.Errorf("stopped at once: %v", r.err)
	}
}

// What a tracer writes when its client hangs up is kept: before Go 1.22 these are the stacks.
func TestHungUp(t *testing.T) {
	const tail = "what is written last"
	ctx, cancel := context.WithCancel(t.Context())
	r := record(t, ctx, serve(t, service(func(w http.ResponseWriter, r *http.Request) {
		w.Write(fakeTrace)
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
		io.WriteString(w, tail)
	})), func(o *Options) { o.For = time.Hour })
	if r.err != nil {
		t.Fatal(r.err)
	}
	if got, want := r.c.Size(evidence.TraceMember), int64(len(fakeTrace)+len(tail)); got != want {
		t.Errorf("kept %d bytes, want %d", got, want)
	}
	if got := r.c.Manifest.Lost(evidence.TraceMember); got != "stopped" {
		t.Errorf("lost %q", got)
	}
}

func TestRedirectWithin(t *testing.T) {
	mux := service(sendTrace)
	r := record(t, t.Context(), serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p, ok := strings.CutPrefix(r.URL.Path, "/old"); ok {
			http.Redirect(w, r, p+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
			return
		}
		if r.Header.Get("X-Api-Key") != secret || r.UserAgent() != "whystall/test" {
			t.Errorf("%s without its header, or as %s", r.URL.Path, r.UserAgent())
		}
		mux.ServeHTTP(w, r)
	}))+"/old", nil)
	if r.err != nil || !r.has(evidence.TraceMember) {
		t.Errorf("%v, members %v", r.err, r.c.Names())
	}
}

// A full disk ends the recording and keeps what came.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	mountSmall(t, dir)
	r := recordIn(t, t.Context(), dir, serve(t, service(func(w http.ResponseWriter, r *http.Request) {
		w.Write(fakeTrace)
		for range 100 {
			w.Write(make([]byte, 100<<10))
		}
	})), nil)
	var e *Error
	if !errors.As(r.err, &e) || !e.Full || e.Error() != "record: write trace.out: no space left on device" {
		t.Errorf("got %v", r.err)
	}
	if n := r.c.Size(evidence.TraceMember); n < 100<<10 {
		t.Errorf("kept %d bytes of the trace", n)
	}
}

// Before Go 1.19 a goroutine profile stops the world for as long as there are goroutines to copy:
// there it is not asked for.
func TestGoroutinesOfOldGo(t *testing.T) {
	for _, c := range []struct {
		head, want string
	}{
		{"go 1.11 trace\x00\x00\x00", "unavailable: not asked for"},
		{"go 1.19 trace\x00\x00\x00", "ready"},
		{"go 1.26 trace\x00\x00\x00", "ready"},
	} {
		var asked atomic.Int32
		r := record(t, t.Context(), serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/debug/pprof/trace":
				w.Write(append([]byte(c.head), fakeTrace[16:]...))
			case "/debug/pprof/goroutine":
				asked.Add(1)
				w.Write([]byte("\x1f\x8b\x08\x00"))
			default:
				http.NotFound(w, r)
			}
		})), func(o *Options) { o.Profiles = true })
		if got := r.state("goroutine"); r.err != nil || !strings.HasPrefix(got, c.want) || (asked.Load() > 0) != (c.want == "ready") {
			t.Errorf("%q: %v, goroutine %s, asked %d times", c.head[:8], r.err, got, asked.Load())
		}
	}
}
