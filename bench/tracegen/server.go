package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/trace"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// server makes the events. One request does what a usual service does: a socket, a lock, a cache, a
// pool of workers, a fan-out, some garbage. Their shares are chosen for many events a second, so
// that a large trace is made soon.
type server struct {
	ln       net.Listener
	http     *http.Server
	jobs     chan job
	failed   chan error
	requests int64

	mu    sync.Mutex // contended on purpose: every request takes it
	hits  map[string]int
	cache struct {
		sync.RWMutex
		m map[string][]byte
	}
}

type job struct {
	key    int
	answer chan int
}

const (
	workers = 16
	fanout  = 8
)

func newServer() (*server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{ln: ln, jobs: make(chan job), failed: make(chan error, 1), hits: map[string]int{}}
	s.cache.m = map[string][]byte{}
	for i := 0; i < workers; i++ {
		go s.worker()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/item/", s.item)
	mux.HandleFunc("/report", s.report)
	s.http = &http.Server{Handler: mux}
	go s.http.Serve(ln)
	return s, nil
}

func (s *server) stop() {
	s.http.Close()
	close(s.jobs)
}

func (s *server) worker() {
	for j := range s.jobs {
		s.count(strconv.Itoa(j.key % 7))
		j.answer <- j.key * 2
	}
}

func (s *server) count(key string) {
	s.mu.Lock()
	s.hits[key]++
	s.mu.Unlock()
}

// item asks several workers at once, as a service asks its shards.
func (s *server) item(w http.ResponseWriter, r *http.Request) {
	n := atomic.AddInt64(&s.requests, 1)
	ctx, task := trace.NewTask(r.Context(), "item")
	defer task.End()
	body := s.lookup(ctx, int(n%512))
	var wg sync.WaitGroup
	for i := 0; i < fanout; i++ {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			trace.WithRegion(ctx, "shard", func() {
				answer := make(chan int)
				for k := 0; k < 3; k++ {
					s.jobs <- job{i + k, answer}
					<-answer
				}
			})
		}(i)
	}
	wg.Wait()
	if n%16 == 0 {
		time.Sleep(200 * time.Microsecond)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

func (s *server) lookup(ctx context.Context, n int) []byte {
	defer trace.StartRegion(ctx, "lookup").End()
	key := strconv.Itoa(n)
	s.cache.RLock()
	b := s.cache.m[key]
	s.cache.RUnlock()
	if b == nil {
		b = bytes.Repeat([]byte(key+" "), 64)
		s.cache.Lock()
		if len(s.cache.m) > 256 { // so that some requests always miss
			s.cache.m = map[string][]byte{}
		}
		s.cache.m[key] = b
		s.cache.Unlock()
	}
	return b
}

// report makes garbage and burns CPU, so that the collector and preemption are in the trace.
func (s *server) report(w http.ResponseWriter, r *http.Request) {
	atomic.AddInt64(&s.requests, 1)
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	s.mu.Lock()
	for k, v := range s.hits {
		for i := 0; i < 200; i++ {
			fmt.Fprintf(z, "%s %d %d\n", k, v, i)
		}
	}
	s.mu.Unlock()
	z.Close()
	w.Write(out.Bytes())
}

// load sends requests over keep-alive connections until stop is closed; done is closed when the
// last client has ended.
func (s *server) load(clients int, stop chan struct{}) (done chan struct{}) {
	done = make(chan struct{})
	var wg sync.WaitGroup
	for i := 0; i < clients; i++ {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			if err := s.client(i, stop); err != nil {
				select {
				case s.failed <- err:
				default:
				}
			}
		}(i)
	}
	go func() {
		wg.Wait()
		close(done)
	}()
	return done
}

// client writes and reads HTTP itself: the goroutines of the standard client would be half of the
// trace.
func (s *server) client(i int, stop chan struct{}) error {
	c, err := net.Dial("tcp", s.ln.Addr().String())
	if err != nil {
		return err
	}
	defer c.Close()
	r := bufio.NewReader(c)
	for n := i; ; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		path := "/item/" + strconv.Itoa(n)
		if n%200 == 0 {
			path = "/report"
		}
		if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		resp.Body.Close()
	}
}
