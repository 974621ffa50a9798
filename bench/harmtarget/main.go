// Harmtarget is the Go server under stress whose users `bench harm` asks how recording felt.
//
// It is built with old releases too, so it uses nothing newer than Go 1.16, and nothing but std.
// It waits for a line on standard input, so that it can be put into a cgroup first, says where it
// listens, and ends when standard input does.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand"
	"net"
	"net/http"
	_ "net/http/pprof" // the pages that are fetched
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	heap := flag.Int("heap", 48, "live heap in `MB`, all of it pointers")
	alloc := flag.Int("alloc", 256, "`kB` allocated by each request")
	work := flag.Int("work", 600, "`kB` that each request hashes")
	parked := flag.Int("goroutines", 0, "goroutines that wake once in five seconds")
	threads := flag.Bool("threads", false, "serve each connection by a thread of its own, without the runtime's poller")
	file := flag.String("file", "", "`FILE` to make, of which each request reads 16 kB at a random place")
	fileMB := flag.Int("file-mb", 128, "its size in `MB`")
	flag.Parse()
	in := bufio.NewReader(os.Stdin)
	in.ReadString('\n')
	s := newServer(*heap, *alloc, *work)
	if *file != "" {
		if err := s.make(*file, *fileMB); err != nil {
			fmt.Fprintln(os.Stderr, "harmtarget:", err)
			os.Exit(1)
		}
	}
	for i := 0; i < *parked; i++ {
		go park()
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "harmtarget:", err)
		os.Exit(1)
	}
	if *threads {
		go s.serveThreads(ln)
	} else {
		http.Handle("/work", s)
		go http.Serve(ln, nil)
	}
	fmt.Printf("addr=%s\n", ln.Addr())
	in.ReadString('\n') // its end is ours
}

// park is a goroutine of which a service has thousands: it mostly waits.
func park() {
	time.Sleep(time.Duration(rand.Int63n(int64(5 * time.Second))))
	for range time.Tick(5 * time.Second) {
	}
}

// node is what the heap consists of: 64 bytes, most of them pointers.
type node struct {
	left, right, next *node
	_                 [5]uint64
}

const nodeSize = 64

// server answers after some hashing, some garbage, and a question to a goroutine that keeps a
// table, as a service does with its pool or its cache.
type server struct {
	live  []*node
	nodes int // allocated by a request
	work  int // bytes to hash
	asks  chan ask
	mu    sync.Mutex
	last  []*node // of recent requests: garbage that lives for a while
	at    int
	file  *os.File
	size  int64
}

type ask struct {
	key   uint64
	reply chan uint64
}

func newServer(heapMB, allocKB, workKB int) *server {
	s := &server{nodes: allocKB << 10 / nodeSize, work: workKB << 10, asks: make(chan ask), last: make([]*node, 32)}
	for i := 0; i < heapMB; i++ {
		s.live = append(s.live, tree(1<<20/nodeSize))
	}
	go s.keep()
	return s
}

func tree(n int) *node {
	if n == 0 {
		return nil
	}
	return &node{left: tree((n - 1) / 2), right: tree(n - 1 - (n-1)/2)}
}

// keep answers questions about a table that only it reads and writes.
func (s *server) keep() {
	table := map[uint64]uint64{}
	for a := range s.asks {
		table[a.key%4096]++
		a.reply <- table[a.key%4096]
	}
}

// make writes the file: whoever reads a page first has it on his cgroup's bill.
func (s *server) make(name string, mb int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	for i := 0; i < mb; i++ {
		if _, err := f.Write(make([]byte, 1<<20)); err != nil {
			return err
		}
	}
	s.file, s.size = f, int64(mb)<<20
	return f.Sync()
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sum := s.hash()
	list := s.garbage()
	a := ask{sum, make(chan uint64, 1)}
	s.asks <- a
	sum += <-a.reply
	s.mu.Lock()
	s.at = (s.at + 1) % len(s.last)
	s.last[s.at] = list
	s.mu.Unlock()
	if s.file != nil {
		page := make([]byte, 16<<10)
		if _, err := s.file.ReadAt(page, rand.Int63n(s.size-int64(len(page)))); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		sum += uint64(page[0])
	}
	fmt.Fprintf(w, "%016x\n", sum)
}

// serveThreads serves as a program with a thread per connection does: each sleeps in read.
func (s *server) serveThreads(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		f, err := c.(*net.TCPConn).File() // in blocking mode
		c.Close()
		if err == nil {
			go s.serveThread(int(f.Fd()), f)
		}
	}
}

func (s *server) serveThread(fd int, f *os.File) {
	runtime.LockOSThread()
	defer f.Close()
	b := make([]byte, 4096)
	for {
		n, err := syscall.Read(fd, b)
		if err != nil || n <= 0 || !strings.HasPrefix(string(b[:n]), "GET /work ") {
			return
		}
		body := fmt.Sprintf("%016x\n", s.hash())
		answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		if _, err := syscall.Write(fd, []byte(answer)); err != nil {
			return
		}
	}
}

// hash computes for a while: FNV-1a over the same small buffer.
func (s *server) hash() uint64 {
	const rounds = 1 << 10
	h := uint64(14695981039346656037)
	for i := 0; i < s.work; i++ {
		h = (h ^ uint64(i&(rounds-1))) * 1099511628211
	}
	return h
}

// garbage is a list of fresh nodes, which die 32 requests later.
func (s *server) garbage() *node {
	var list *node
	for i := 0; i < s.nodes; i++ {
		list = &node{next: list}
	}
	return list
}
