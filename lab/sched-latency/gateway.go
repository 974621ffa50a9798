package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"sync"
)

// storeClient is the gateway's only connection to the store. All requests share it. The sender
// takes the calls which wait and sends them as one batch; the receiver hands the answers out.
type storeClient struct {
	calls chan *call
	conn  net.Conn

	mu      sync.Mutex
	pending map[uint64]*call
	next    uint64
}

type call struct {
	key    []byte
	answer chan []byte
}

func newStoreClient(addr string) (*storeClient, error) {
	conn, err := dial(addr)
	if err != nil {
		return nil, err
	}
	c := &storeClient{calls: make(chan *call, maxBatch), conn: conn, pending: map[uint64]*call{}}
	go c.batchSendLoop()
	go c.batchRecvLoop()
	return c, nil
}

func (c *storeClient) get(ctx context.Context, key []byte) ([]byte, error) {
	// One place in the channel, so that the receiver never waits for a caller which has left.
	call := &call{key: key, answer: make(chan []byte, 1)}
	select {
	case c.calls <- call:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case v := <-call.answer:
		return v, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *storeClient) batchSendLoop() {
	w := bufio.NewWriter(c.conn)
	batch := make([]entry, 0, maxBatch)
	for first := range c.calls {
		batch = c.add(batch[:0], first)
	more:
		for len(batch) < maxBatch {
			select {
			case next := <-c.calls:
				batch = c.add(batch, next)
			default:
				break more
			}
		}
		if err := writeBatch(w, batch); err != nil {
			panic(err) // the store has ended, so the gateway ends too
		}
	}
}

func (c *storeClient) add(batch []entry, call *call) []entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	c.pending[c.next] = call
	return append(batch, entry{id: c.next, data: call.key})
}

func (c *storeClient) batchRecvLoop() {
	r := bufio.NewReader(c.conn)
	var batch []entry
	for {
		var err error
		if batch, err = readBatch(r, batch); err != nil {
			panic(err)
		}
		for _, e := range batch {
			c.mu.Lock()
			call := c.pending[e.id]
			delete(c.pending, e.id)
			c.mu.Unlock()
			call.answer <- e.data
		}
	}
}

// startGateway serves requests at url, and net/http/pprof on another loopback port.
func startGateway(storeAddr string, procs int) (url, profURL string, err error) {
	if procs > 0 {
		runtime.GOMAXPROCS(procs)
	}
	store, err := newStoreClient(storeAddr)
	if err != nil {
		return "", "", err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /value/{key}", func(w http.ResponseWriter, r *http.Request) {
		v, err := store.get(r.Context(), []byte(r.PathValue("key")))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(v)))
		w.Write(v)
	})
	if url, err = serve(mux); err != nil {
		return "", "", err
	}
	prof := http.NewServeMux()
	prof.HandleFunc("/debug/pprof/", pprof.Index)
	prof.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	prof.HandleFunc("/debug/pprof/profile", pprof.Profile)
	prof.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	prof.HandleFunc("/debug/pprof/trace", pprof.Trace)
	base, err := serve(prof)
	return url, base + "/debug/pprof", err
}

func serve(h http.Handler) (url string, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go http.Serve(ln, h)
	return "http://" + ln.Addr().String(), nil
}
