package collect

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/format"
)

const (
	defaultMaxSize = 1 << 30
	defaultBudget  = 0.06 // share of the target's CPU time
)

// session is the HTTP side of one recording.
type session struct {
	o        Options
	asks     bool // there are pprof pages to ask
	addr     address
	header   http.Header
	client   *http.Client
	w        *evidence.Writer
	received atomic.Int64  // of the trace, for progress
	wrote    atomic.Int64  // bytes that local collectors wrote
	traceFor time.Duration // how long the trace lasts; 0: as long as the recording
	goMinor  atomic.Int64  // N if the trace's format is that of Go 1.N; 0: not known
}

func newSession(o Options) (*session, error) {
	var at address
	var err error
	if o.URL != "" || o.PID == 0 {
		if at, err = parseAddress(o.URL); err != nil {
			return nil, err
		}
	}
	header, err := parseHeaders(o.Headers)
	if err != nil {
		return nil, err
	}
	if o.MaxSize == 0 {
		o.MaxSize = defaultMaxSize
	}
	if o.Now == nil {
		o.Now = now
	}
	// The ticker and the recording both report progress.
	var one sync.Mutex
	report := o.Progress
	o.Progress = func(p Progress) {
		if report != nil {
			one.Lock()
			defer one.Unlock()
			report(p)
		}
	}
	o.Timing = o.Timing.filled()
	if o.Timing.Stage == 0 {
		o.Timing.Stage = stageOf(o.For)
	}
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", "whystall/"+o.Version)
	}
	if o.Budget == 0 {
		o.Budget = defaultBudget
	}
	s := &session{o: o, addr: at, header: header, asks: o.URL != ""}
	s.connect((&net.Dialer{Timeout: o.Timing.Connect}).DialContext, http.ProxyFromEnvironment)
	return s, nil
}

func (s *session) connect(dial func(context.Context, string, string) (net.Conn, error),
	proxy func(*http.Request) (*url.URL, error)) {
	s.client = &http.Client{
		// Bytes are kept as they came, so the service is not asked to compress them on the way.
		Transport: &http.Transport{Proxy: proxy, DialContext: dial,
			TLSHandshakeTimeout: s.o.Timing.Connect, DisableCompression: true, ForceAttemptHTTP2: true},
		CheckRedirect: s.redirect,
	}
}

// redirect follows only within the origin the user named: package http would send our headers
// along.
func (s *session) redirect(r *http.Request, via []*http.Request) error {
	if r.URL.Scheme != s.addr.origin.Scheme || !strings.EqualFold(r.URL.Host, s.addr.origin.Host) {
		return elsewhere{r.URL.Scheme + "://" + r.URL.Host + r.URL.Path}
	}
	if len(via) >= 5 {
		return errRedirect
	}
	return nil
}

// fetch brings one body into its member, and returns what went wrong. What came before that is
// kept.
func (s *session) fetch(ctx context.Context, f Fetch, hint string) (int64, *failure) {
	n, fail := s.fetchOne(ctx, f, hint)
	if f.Else != "" && fail != nil && fail.kind == absent {
		other := f
		other.Path, other.Else = f.Else, ""
		if m, failOther := s.fetchOne(ctx, other, hint); failOther == nil || failOther.kind != absent {
			return m, failOther
		}
		req := evidence.Request{Member: f.Member, Path: s.addr.path(f), Sent: s.o.Now(), Lost: fail.text}
		req.Ended = req.Sent
		s.enter(req)
	}
	return n, fail
}

func (s *session) fetchOne(ctx context.Context, f Fetch, hint string) (bytesKept int64, fail *failure) {
	req := evidence.Request{Member: f.Member, Path: s.addr.path(f), Sent: s.o.Now()}
	s.enter(req)
	defer func() {
		req.Ended, req.Bytes = s.o.Now(), bytesKept
		if fail != nil {
			req.Lost = fail.text
		}
		if err := s.enter(req); err != nil && fail == nil {
			fail = failf(full, "%v", err)
		}
	}()

	query := f.Query
	quiet := s.o.Timing.Quiet
	ends := time.Now()
	whole := s.o.Timing.Page
	if f.For {
		whole = s.o.Timing.Whole
		lasting := s.o.For
		if f.Member == evidence.TraceMember && s.traceFor > 0 {
			lasting = s.traceFor
		}
		query = fmt.Sprintf("seconds=%d", max(1, int(lasting.Seconds()+0.5)))
		// An idle service has nothing to send until the end, not even its header.
		ends = ends.Add(lasting)
	}
	asked := ctx // until then we want the answer
	if f.Member == evidence.TraceMember {
		var done func()
		ctx, done = hangingUp(ctx)
		defer done()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// A service that drips would keep us busy for ever.
	over := time.AfterFunc(max(0, time.Until(ends))+whole, func() { cancel(errEndless) })
	defer over.Stop()
	patience := func() time.Duration { return max(0, time.Until(ends)) + quiet }
	watch := time.AfterFunc(patience(), func() { cancel(errQuiet) })
	defer watch.Stop()

	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.addr.url(f, query), nil)
	if err != nil {
		return 0, failf(noAnswer, "%v", root(err))
	}
	r.Header = s.header.Clone()
	if h := r.Header.Get("Host"); h != "" {
		r.Host = h
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return 0, noResponse(ctx, err, quiet)
	}
	defer resp.Body.Close()
	req.Status = resp.StatusCode
	body := &watched{r: resp.Body, watch: watch, patience: patience, first: func() { req.First = s.o.Now() }}
	buf := bufio.NewReaderSize(body, format.HeadSize)
	if resp.StatusCode != http.StatusOK {
		said, _ := buf.Peek(1024)
		return 0, badStatus(resp.StatusCode, said, req.Path, hint, s.o.For)
	}
	head, err := buf.Peek(512)
	if kind := format.Identify(head); !wanted(f, kind) {
		switch {
		case err != nil && err != io.EOF && (len(head) == 0 || ctx.Err() != nil):
			return 0, broken(ctx, err, quiet)
		case kind == format.KindHTML:
			return 0, failf(absent,
				"%s answers with a web page: give the address of the service's own port, not of a page", req.Path)
		case kind == format.KindEmpty:
			return 0, failf(refused, "%s gave an empty answer", req.Path)
		}
		return 0, failf(refused, "%s answered with something that is not %s", req.Path, f.Want[0])
	}
	if n := traceMinor(head); n > 0 {
		s.goMinor.Store(n)
	}
	bytesKept, fail = s.keep(ctx, f, buf, quiet)
	if fail == nil && asked.Err() != nil {
		fail = broken(asked, asked.Err(), quiet)
	}
	return bytesKept, fail
}

// traceMinor returns N for a trace that starts with "go 1.N trace", 0 for anything else.
func traceMinor(head []byte) int64 {
	after, ok := bytes.CutPrefix(head, []byte("go 1."))
	n, rest := leadingNumber(after)
	if !ok || !bytes.HasPrefix(rest, []byte(" trace")) {
		return 0
	}
	return n
}

// wanted reports whether a body of that kind is what the fetch asks for.
func wanted(f Fetch, kind format.Kind) bool {
	if kind == format.KindGzip { // profiles come packed; their parser looks inside
		kind = format.KindPprof
	}
	return slices.Contains(f.Want, kind)
}

// keep copies a body into its member.
func (s *session) keep(ctx context.Context, f Fetch, body io.Reader, quiet time.Duration) (int64, *failure) {
	limit := f.Max
	if limit == 0 || limit > s.o.MaxSize {
		limit = s.o.MaxSize
	}
	if f.Keep != nil {
		b, err := io.ReadAll(io.LimitReader(body, limit+1))
		if err != nil {
			return 0, broken(ctx, err, quiet)
		}
		if int64(len(b)) > limit {
			return 0, failf(refused, "it is larger than %s", size(limit))
		}
		if b, err = f.Keep(b); err != nil {
			return 0, failf(refused, "%s: %v", s.addr.path(f), err)
		}
		body = bytes.NewReader(b)
	}
	out, err := s.w.Member(f.Member)
	if err != nil {
		return 0, failf(full, "create %s: %v", f.Member, root(err))
	}
	n, fail := s.copy(ctx, out, body, limit, f, quiet)
	if err := out.Close(); err != nil && fail == nil {
		fail = failf(full, "write %s: %v", f.Member, root(err))
	}
	if n == 0 {
		s.w.Remove(f.Member)
	}
	return n, fail
}

func (s *session) copy(ctx context.Context, out *os.File, body io.Reader, limit int64, f Fetch,
	quiet time.Duration) (n int64, fail *failure) {
	b := make([]byte, 64<<10)
	for {
		got, err := body.Read(b[:min(int64(len(b)), limit-n+1)])
		if over := n + int64(got) - limit; over > 0 {
			got -= int(over)
			if fail = failf(cut, "cut at --max-size %s", size(limit)); f.Head {
				fail = nil
			}
			err = io.EOF
		}
		wrote, writeErr := out.Write(b[:got])
		n += int64(wrote)
		if f.Member == evidence.TraceMember {
			s.received.Store(n)
		}
		switch {
		case writeErr != nil:
			return n, failf(full, "write %s: %v", f.Member, root(writeErr))
		case errors.Is(err, io.EOF):
			return n, fail
		case err != nil:
			return n, broken(ctx, err, quiet)
		}
	}
}

// watched puts off the watchdog with every byte that comes.
type watched struct {
	r        io.Reader
	watch    *time.Timer
	patience func() time.Duration
	first    func()
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		w.watch.Reset(w.patience())
		if w.first != nil {
			w.first()
			w.first = nil
		}
	}
	return n, err
}

// enter puts a request into the manifest, in place of its earlier entry.
func (s *session) enter(r evidence.Request) error {
	return s.w.Update(func(m *evidence.Manifest) {
		for i := range m.Requests {
			if m.Requests[i].Member == r.Member {
				m.Requests[i] = r
				return
			}
		}
		m.Requests = append(m.Requests, r)
	})
}

func size(n int64) string {
	for _, u := range []struct {
		n    int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.n {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(u.n)), ".0") + " " + u.name
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
