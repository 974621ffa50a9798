package request

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/http/pprof"
	"net/url"
	"regexp"
	"runtime"
	"runtime/trace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/whystall/whystall/exectrace"
)

// record traces what work does in this process and finds its activations.
func record(t *testing.T, o Options, work func()) (*Finder, []Activation) {
	t.Helper()
	return run(t, traced(t, work), o)
}

// traced traces what work does in this process. The trace ends once every goroutine has ended that
// came while work ran. A server says that it is closed before the goroutines of its connections
// have ended, and the trace would end within their last requests. Nothing says when such a
// goroutine has ended, so this asks again and again.
func traced(t *testing.T, work func()) *exectrace.Trace {
	t.Helper()
	var buf bytes.Buffer
	if err := trace.Start(&buf); err != nil {
		t.Skip(err) // somebody traces the test itself
	}
	before, _ := goroutines()
	work()
	left, stacks := []string(nil), ""
	for range 30_000 {
		var now []string
		now, stacks = goroutines()
		if left = slices.DeleteFunc(now, func(id string) bool { return slices.Contains(before, id) }); len(left) == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	trace.Stop()
	if len(left) > 0 {
		t.Fatalf("half a minute after the work goroutines %v of it are left in:\n%s", left, stacks)
	}
	tr, err := exectrace.FromBytes(buf.Bytes(), exectrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// handling marks what fn does in the trace, for handled.
func handling(fn func()) {
	trace.Log(context.Background(), "handler", "in")
	fn()
	trace.Log(context.Background(), "handler", "out")
}

// handled checks that the activations of a group enclose what was marked by handling, for all but a
// few. Where a thread is preempted between an event and its record, events that must come after it
// take its later time, as in x/exp/trace.
func handled(t *testing.T, tr *exectrace.Trace, as []Activation, id GroupID, want int64) {
	t.Helper()
	begun := map[exectrace.GoID]exectrace.Time{}
	var marked, inside int64
	for ev := range tr.Events() {
		if ev.Kind != exectrace.KindLog || tr.String(ev.Name) != "handler" {
			continue
		}
		if tr.String(exectrace.StringID(ev.Arg[1])) == "in" {
			begun[ev.G] = ev.Time
			continue
		}
		marked++
		if slices.ContainsFunc(as, func(a Activation) bool {
			return a.Group == id && a.G == ev.G && a.Begin <= begun[ev.G] && ev.Time <= a.End
		}) {
			inside++
		}
	}
	if marked != want || inside < want-want/20 {
		t.Errorf("%d handlers ran, %d of them inside a request; want %d, less 5 %%", marked, inside, want)
	}
}

var goroutineID = regexp.MustCompile(`(?m)^goroutine (\d+) `)

// goroutines are the ids of those there are, except the runtime's own, and their stacks. One that
// is gone has left its end in the trace.
func goroutines() (ids []string, stacks string) {
	buf := make([]byte, 64<<10)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	stacks = string(buf[:n])
	for _, m := range goroutineID.FindAllStringSubmatch(stacks, -1) {
		ids = append(ids, m[1])
	}
	return ids, stacks
}

// group is the group with that kind.
func group(t *testing.T, f *Finder, kind string) (GroupID, Group) {
	t.Helper()
	for i, g := range f.Groups() {
		if g.Kind == kind {
			return GroupID(i), g
		}
	}
	t.Fatalf("no group of kind %s in %+v", kind, f.Groups())
	return 0, Group{}
}

// near checks that got is within one per cent of want.
func near(t *testing.T, what string, got, want int64) {
	t.Helper()
	if d := got - want; d*100 > want || -d*100 > want {
		t.Errorf("%s: found %d, the client counted %d", what, got, want)
	} else {
		t.Logf("%s: found %d, the client counted %d", what, got, want)
	}
}

// answer is a handler with a bit of everything a handler does.
func answer(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/sleep":
		time.Sleep(time.Millisecond)
	case "/read":
		io.Copy(io.Discard, r.Body)
	case "/big":
		w.Write(make([]byte, 300_000))
		return
	case "/flushed": // leaves nothing for the end of the request to flush
		w.Header().Set("Content-Length", "2")
		w.Write([]byte("ok"))
		w.(http.Flusher).Flush()
		return
	case "/close":
		w.Header().Set("Connection", "close")
	}
	fmt.Fprintln(w, "hello", r.URL.Path)
}

func serve(t *testing.T, h http.HandlerFunc, set func(*httptest.Server)) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	if set != nil {
		set(s)
	}
	if s.TLS != nil || s.EnableHTTP2 {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// load sends n requests to each path from clients goroutines and returns how many were answered.
func load(t *testing.T, s *httptest.Server, clients, n int, paths ...string) int64 {
	var count atomic.Int64
	var wg sync.WaitGroup
	tp := s.Client().Transport.(*http.Transport)
	tp.MaxIdleConnsPerHost = clients
	for range clients {
		wg.Go(func() {
			for i := range n {
				for _, p := range paths {
					method, body := "GET", io.Reader(nil)
					if strings.HasPrefix(p, "/read") {
						method, body = "POST", strings.NewReader(strings.Repeat("x", 5000))
					}
					if strings.HasPrefix(p, "/ignore") {
						method, body = "POST", strings.NewReader("ignored")
					}
					req, _ := http.NewRequestWithContext(context.Background(), method, fmt.Sprintf("%s%s?%d", s.URL, p, i), body)
					resp, err := s.Client().Do(req)
					if err != nil {
						t.Error(err)
						return
					}
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					count.Add(1)
				}
			}
		})
	}
	wg.Wait()
	tp.CloseIdleConnections()
	return count.Load()
}

func TestHTTP(t *testing.T) {
	for _, tc := range []struct {
		name, kind string
		set        func(*httptest.Server)
		clients, n int
		paths      []string
	}{
		{"keep-alive", "net/http", nil, 8, 200, []string{"/"}},
		{"one connection", "net/http", nil, 1, 300, []string{"/"}},
		{"mixed", "net/http", nil, 8, 30, []string{"/", "/sleep", "/read", "/ignore", "/big", "/flushed"}},
		{"flushed", "net/http", nil, 8, 100, []string{"/flushed"}},
		{"close", "net/http", nil, 4, 50, []string{"/close"}},
		{"no keep-alive", "net/http", func(s *httptest.Server) { s.Config.SetKeepAlivesEnabled(false) }, 4, 50, []string{"/", "/flushed"}},
		{"TLS", "net/http", func(s *httptest.Server) { s.TLS = &tls.Config{NextProtos: []string{"http/1.1"}} }, 4, 50, []string{"/", "/sleep", "/read", "/big"}},
		{"TLS close", "net/http", func(s *httptest.Server) { s.TLS = &tls.Config{NextProtos: []string{"http/1.1"}} }, 2, 20, []string{"/close"}},
		{"HTTP/2", "http2", func(s *httptest.Server) { s.EnableHTTP2 = true }, 8, 60, []string{"/", "/sleep", "/read", "/big"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var want int64
			tr := traced(t, func() {
				s := serve(t, func(w http.ResponseWriter, r *http.Request) { handling(func() { answer(w, r) }) }, tc.set)
				want = load(t, s, tc.clients, tc.n, tc.paths...)
				s.Close()
			})
			f, as := run(t, tr, Options{})
			report(t, f, as)
			id, g := group(t, f, tc.kind)
			near(t, "requests", g.Count, want)
			wellFormed(t, as)
			if !g.Listed {
				t.Error("not listed")
			}
			handled(t, tr, as, id, want)
			for i, o := range f.Groups() {
				if GroupID(i) != id && o.Listed {
					t.Errorf("listed beside the server: %+v", o)
				}
			}
		})
	}
}

// The next request is there before the last is answered: no wait for work divides the two.
func TestPipelined(t *testing.T) {
	const conns, batch, rounds = 4, 20, 25
	var count atomic.Int64
	f, as := record(t, Options{}, func() {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/sleep" {
				time.Sleep(time.Millisecond)
			}
			io.WriteString(w, "hello")
		}, nil)
		var wg sync.WaitGroup
		for c := range conns {
			path := []string{"/", "/sleep"}[c%2]
			wg.Go(func() {
				conn, err := net.Dial("tcp", s.Listener.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				r := bufio.NewReader(conn)
				for range rounds {
					io.WriteString(conn, strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n", batch))
					for range batch {
						resp, err := http.ReadResponse(r, nil)
						if err != nil {
							t.Error(err)
							return
						}
						io.Copy(io.Discard, resp.Body)
						count.Add(1)
					}
				}
			})
		}
		wg.Wait()
		s.Close()
	})
	report(t, f, as)
	wellFormed(t, as)
	_, g := group(t, f, "net/http")
	near(t, "requests", g.Count, count.Load())
}

// A body of which each piece is sent only when the one before was read is one request, which
// encloses its handler.
func TestSlowBody(t *testing.T) {
	const n, chunks, chunk = 10, 5, "chunk"
	for _, h2 := range []bool{false, true} {
		got := make(chan bool) // the handler has a piece
		tr := traced(t, func() {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				handling(func() {
					for range chunks {
						io.CopyN(io.Discard, r.Body, int64(len(chunk)))
						got <- true
					}
					io.WriteString(w, "ok")
				})
			}, func(s *httptest.Server) { s.EnableHTTP2 = h2 })
			for range n {
				pr, pw := io.Pipe()
				go func() {
					for range chunks {
						io.WriteString(pw, chunk)
						<-got
					}
					pw.Close()
				}()
				resp, err := s.Client().Post(s.URL, "text/plain", pr)
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			s.Close()
		})
		f, as := run(t, tr, Options{})
		report(t, f, as)
		wellFormed(t, as)
		kind := map[bool]string{false: "net/http", true: "http2"}[h2]
		id, g := group(t, f, kind)
		near(t, kind, g.Count, n)
		handled(t, tr, as, id, n)
	}
}

// Streams and hijacked connections are counted, not explained; so are the recorder's own requests.
func TestLeftOut(t *testing.T) {
	const n = 6
	handler := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/events":
			for range 4 {
				time.Sleep(time.Millisecond)
				fmt.Fprint(w, "data: x\n\n")
				w.(http.Flusher).Flush()
			}
		case "/hijack":
			c, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
			rw.Flush()
			time.Sleep(time.Millisecond)
			c.Close()
		case "/debug/pprof/heap":
			pprof.Handler("heap").ServeHTTP(w, r)
		default:
			fmt.Fprintln(w, "plain")
		}
	}
	for _, h2 := range []bool{false, true} {
		paths := []string{"/plain", "/events", "/debug/pprof/heap"}
		if !h2 {
			paths = append(paths, "/hijack")
		}
		f, as := record(t, Options{}, func() {
			s := serve(t, handler, func(s *httptest.Server) { s.EnableHTTP2 = h2 })
			load(t, s, 1, n, paths...)
			s.Close()
		})
		report(t, f, as)
		wellFormed(t, as)
		_, g := group(t, f, map[bool]string{false: "net/http", true: "http2"}[h2])
		if g.Count != n || g.LeftOut[Stream] != n || g.LeftOut[Ours] != n || !h2 && g.LeftOut[Hijacked] != n {
			t.Errorf("HTTP/2 %v: kept %d, left out %v; want %d of each", h2, g.Count, g.LeftOut, n)
		}
	}
}

// A proxy waits for the pieces of a long answer and writes each: that is a slow body. An answer of
// unknown length is pushed on piece by piece: that is a stream.
func TestProxy(t *testing.T) {
	const n, pieces, size = 5, 8, 40_000
	got := make(chan bool, pieces) // the client has a piece
	f, as := record(t, Options{}, func() {
		back := serve(t, func(w http.ResponseWriter, r *http.Request) {
			known := r.URL.Path == "/known"
			if known {
				w.Header().Set("Content-Length", strconv.Itoa(pieces*size))
			}
			for range pieces {
				time.Sleep(time.Millisecond)
				w.Write(make([]byte, size))
				w.(http.Flusher).Flush()
				if !known {
					<-got
				}
			}
		}, nil)
		u, _ := url.Parse(back.URL)
		s := serve(t, httputil.NewSingleHostReverseProxy(u).ServeHTTP, nil)
		for range n {
			for _, path := range []string{"/known", "/unknown"} {
				resp, err := s.Client().Get(s.URL + path)
				if err != nil {
					t.Error(err)
					return
				}
				for range pieces {
					if _, err := io.CopyN(io.Discard, resp.Body, size); err != nil {
						t.Error(err)
					}
					if path == "/unknown" {
						got <- true
					}
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}
		s.Close()
		back.Close()
	})
	report(t, f, as)
	wellFormed(t, as)
	// The proxied server's own handlers wait and push in both.
	_, g := group(t, f, "net/http")
	if g.Count != n || g.LeftOut[Stream] != 3*n {
		t.Errorf("kept %d, left out %v; want %d and %d streams", g.Count, g.LeftOut, n, 3*n)
	}
}

// wellFormed checks that each activation begins before it ends, and that a goroutine has one at a
// time.
func wellFormed(t testing.TB, as []Activation) {
	t.Helper()
	last := map[exectrace.GoID]exectrace.Time{}
	for _, a := range as {
		if a.End < a.Begin || a.PrevEnd > a.End {
			t.Errorf("malformed: %+v", a)
		}
		if a.Hops[0] != 0 {
			continue // the goroutine has others to answer meanwhile
		}
		if a.Begin < last[a.G] {
			t.Errorf("overlaps the one before on its goroutine, which ended at %d: %+v", last[a.G], a)
		}
		last[a.G] = a.End
	}
}
