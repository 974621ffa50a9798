package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// question is what was asked once: what the engine's process and the wire took for it.
type question struct {
	Query string        `json:"query"`
	Rule  string        `json:"rule,omitempty"` // of the first stage: whose it is
	First bool          `json:"first_stage"`
	CPU   time.Duration `json:"cpu_ns"`
	Wall  time.Duration `json:"wall_ns"`
	Bytes int64         `json:"bytes"`
}

// proxy passes questions on and measures them. whystall asks one after the other, so the CPU time
// of the engine between a question and its answer is the question's, and the engine's housekeeping.
type proxy struct {
	address, engine string
	pid             int
	huge            atomic.Bool // answer the first question of each rule with 2 GB
	listener        net.Listener
	mu              sync.Mutex
	asked           []question
}

func newProxy(engine string, pid int) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{address: "http://" + l.Addr().String(), engine: engine, pid: pid, listener: l}
	go func() { _ = http.Serve(l, p) }()
	return p, nil
}

func (p *proxy) close() { _ = p.listener.Close() }

// take gives what was asked since it was last called.
func (p *proxy) take() []question {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.asked
	p.asked = nil
	return a
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	form, _ := url.ParseQuery(string(body))
	query := form.Get("query")
	if p.huge.Load() && strings.HasPrefix(query, "topk(") && !strings.Contains(query, "count by") {
		answerHuge(w)
		return
	}
	q, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+p.engine+
		r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return
	}
	q.Header.Set("Content-Type", r.Header.Get("Content-Type"))
	before, start := cpuOf(p.pid), time.Now()
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.WriteHeader(resp.StatusCode)
	answer, _ := io.ReadAll(resp.Body)
	if query != "" {
		p.mu.Lock()
		p.asked = append(p.asked, question{Query: query, CPU: cpuOf(p.pid) - before,
			Wall: time.Since(start), Bytes: int64(len(answer))})
		p.mu.Unlock()
	}
	_, _ = w.Write(answer)
}

// answerHuge answers with 2 GB of series that are well formed.
func answerHuge(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if _, err := io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[`); err != nil {
		return
	}
	var b bytes.Buffer
	for i := range 1 << 14 {
		fmt.Fprintf(&b, `{"metric":{"cluster":"c0","job":"node","instance":"host-%d:9100"},"value":[1700000000,"0.5"]},`, i)
	}
	for n := 0; n < 2<<30; n += b.Len() {
		if _, err := w.Write(b.Bytes()); err != nil {
			return
		}
	}
	_, _ = io.WriteString(w, `{"metric":{},"value":[1700000000,"0.5"]}]}}`)
}

// cpuOf is the CPU time of a process so far, user and system. /proc counts it in hundredths of a
// second.
func cpuOf(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}
