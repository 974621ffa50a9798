// Tracegen writes a Go execution trace of a given size. It traces, by runtime/trace, a server under
// load in one process with its clients.
//
// It is built with the Go release whose format is wanted, so it uses nothing newer than Go 1.16,
// and nothing but std.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/trace"
	"sync/atomic"
	"time"
)

func main() {
	mb := flag.Int("mb", 50, "size of the trace in `MB` (1e6 bytes)")
	out := flag.String("o", "", "`FILE` to write")
	clients := flag.Int("clients", 64, "keep-alive connections")
	limit := flag.Duration("limit", 10*time.Minute, "give up after this long")
	flag.Parse()
	if *out == "" || *mb < 1 || *clients < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: tracegen -mb 50 -o FILE")
		os.Exit(2)
	}
	if err := run(*out, int64(*mb)*1e6, *clients, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "tracegen:", err)
		os.Exit(1)
	}
}

// run traces the server until size bytes are written. The trace is a little larger than that, as it
// includes what is buffered when tracing stops.
func run(name string, size int64, clients int, limit time.Duration) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			os.Remove(name)
		}
	}()
	srv, err := newServer()
	if err != nil {
		return err
	}
	defer srv.stop()

	buf := bufio.NewWriterSize(f, 1<<20)
	w := &counter{w: buf, size: size, full: make(chan struct{})}
	start := time.Now()
	if err := trace.Start(w); err != nil {
		return err
	}
	stop := make(chan struct{})
	done := srv.load(clients, stop)
	select {
	case <-w.full:
	case err = <-srv.failed:
	case <-time.After(limit):
		err = fmt.Errorf("write %s: %d of %d bytes after %v", name, w.written(), size, limit)
	}
	close(stop)
	<-done
	trace.Stop()
	if err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	fmt.Printf("%s: %.1f MB, %s, %d requests, %.0f s\n", name, float64(w.written())/1e6, runtime.Version(),
		atomic.LoadInt64(&srv.requests), time.Since(start).Seconds())
	return nil
}

// counter counts bytes, and closes full once there are enough.
type counter struct {
	w       io.Writer
	n, size int64
	full    chan struct{}
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	before := atomic.AddInt64(&c.n, int64(n)) - int64(n)
	if before < c.size && before+int64(n) >= c.size {
		close(c.full)
	}
	return n, err
}

func (c *counter) written() int64 { return atomic.LoadInt64(&c.n) }
