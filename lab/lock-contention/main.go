// Lock-contention is a service that counts what its users do in one table under one mutex. Now and then somebody asks for the
// statistics of it, and how that is done decides about everybody's latency.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/whystall/whystall/lab/witness"
)

type usage struct {
	ID    int
	Calls int
	Bytes int64
}

type table struct {
	mu   sync.Mutex
	rows []usage
}

func (t *table) record(id, bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[id].Calls++
	t.rows[id].Bytes += int64(bytes)
}

// heaviest sorts the table, or a copy of it, and gives the ten rows with most bytes.
func (t *table) heaviest(outside bool) []usage {
	t.mu.Lock()
	rows := slices.Clone(t.rows)
	if outside {
		t.mu.Unlock()
	} else {
		defer t.mu.Unlock()
	}
	slices.SortFunc(rows, func(a, b usage) int { return int(b.Bytes - a.Bytes) })
	return rows[:10]
}

// report writes the statistics to a slow place, such as a log that another machine takes.
func (t *table) report(outside bool, takes time.Duration) []usage {
	if outside {
		t.mu.Lock()
		rows := slices.Clone(t.rows[:10])
		t.mu.Unlock()
		go time.Sleep(takes) // who sends it is nobody's caller
		return rows
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := slices.Clone(t.rows[:10])
	time.Sleep(takes)
	return rows
}

func main() {
	rows := flag.Int("rows", 20000, "of the table")
	outside := flag.Bool("outside", false, "sort and report outside the lock")
	sleeps := flag.Duration("sleeps", 0, "a report waits this long for somebody else, instead of sorting")
	downstream := flag.Duration("downstream", 0, "one call in 50 waits this long for another service")
	flag.Parse()
	t := &table{rows: make([]usage, *rows)}
	for i := range t.rows {
		t.rows[i] = usage{ID: i, Bytes: rand.Int64N(1 << 30)}
	}
	slow := slowService(*downstream)
	http.HandleFunc("/call", func(w http.ResponseWriter, r *http.Request) {
		t.record(rand.IntN(*rows), rand.IntN(1000))
		if rand.IntN(50) == 0 {
			switch {
			case *downstream > 0:
				resp, err := http.Get(slow)
				if err == nil {
					resp.Body.Close()
				}
			case *sleeps > 0:
				json.NewEncoder(w).Encode(t.report(*outside, *sleeps))
			default:
				json.NewEncoder(w).Encode(t.heaviest(*outside))
			}
		}
		fmt.Fprintln(w, "ok")
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "lock-contention:", err)
		os.Exit(1)
	}
	go http.Serve(ln, nil)
	witness.Ready(os.Stdout, "url", "http://"+ln.Addr().String()+"/call")
	io.Copy(io.Discard, os.Stdin)
}

// slowService is another service, which takes its time. It lives here so that the case needs no third program; what its
// caller waits for is the network all the same.
func slowService(takes time.Duration) string {
	if takes == 0 {
		return ""
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return ""
	}
	go http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { time.Sleep(takes) }))
	return "http://" + ln.Addr().String()
}
