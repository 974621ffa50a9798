// Lock-contention is a service which counts, in one table under one mutex, what its users do. Now
// and then a user asks for statistics. How these are made decides about the latency of all users.
package main

import (
	"bytes"
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
	"strconv"
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

// lock takes the lock, and gives how long that took: the witness of this case. Only the client gets
// it.
func (t *table) lock() time.Duration {
	begin := time.Now()
	t.mu.Lock()
	return time.Since(begin)
}

func (t *table) record(id, bytes int) (waited time.Duration) {
	waited = t.lock()
	defer t.mu.Unlock()
	t.rows[id].Calls++
	t.rows[id].Bytes += int64(bytes)
	return waited
}

// heaviest sorts a copy of the table, under the lock or outside it, and gives the ten rows with
// most bytes.
func (t *table) heaviest(outside bool) (ten []usage, waited time.Duration) {
	waited = t.lock()
	rows := slices.Clone(t.rows)
	if outside {
		t.mu.Unlock()
	} else {
		defer t.mu.Unlock()
	}
	slices.SortFunc(rows, func(a, b usage) int { return int(b.Bytes - a.Bytes) })
	return rows[:10], waited
}

// report writes the statistics to a slow receiver, such as a log on another machine.
func (t *table) report(outside bool, takes time.Duration) (ten []usage, waited time.Duration) {
	waited = t.lock()
	rows := slices.Clone(t.rows[:10])
	if outside {
		t.mu.Unlock()
		go time.Sleep(takes) // no request waits for the sender
		return rows, waited
	}
	defer t.mu.Unlock()
	time.Sleep(takes)
	return rows, waited
}

func main() {
	rows := flag.Int("rows", 20000, "how many the table has")
	outside := flag.Bool("outside", false, "sort and report outside the lock")
	sleeps := flag.Duration("sleeps", 0, "a report waits this long for another machine, instead of sorting")
	downstream := flag.Duration("downstream", 0, "one call in 50 waits this long for another service")
	answer := flag.Int("answer", 0, "KiB in every answer")
	flag.Parse()
	body := bytes.Repeat([]byte{'x'}, *answer<<10)
	t := &table{rows: make([]usage, *rows)}
	for i := range t.rows {
		t.rows[i] = usage{ID: i, Bytes: rand.Int64N(1 << 30)}
	}
	slow := slowService(*downstream)
	http.HandleFunc("/call", func(w http.ResponseWriter, r *http.Request) {
		waited, ten := t.record(rand.IntN(*rows), rand.IntN(1000)), []usage(nil)
		if rand.IntN(50) == 0 {
			more := time.Duration(0)
			switch {
			case *downstream > 0:
				resp, err := http.Get(slow)
				if err == nil {
					resp.Body.Close()
				}
			case *sleeps > 0:
				ten, more = t.report(*outside, *sleeps)
			default:
				ten, more = t.heaviest(*outside)
			}
			waited += more
		}
		w.Header().Set(witness.LostHeader, strconv.FormatInt(int64(waited), 10))
		if ten != nil {
			json.NewEncoder(w).Encode(ten)
		}
		w.Write(body)
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

// slowService is another service, which is slow. It is a part of this program so that the case
// needs no third one. Its caller waits for the network all the same.
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
