// Page-fault is a service which makes previews of pictures. Each request needs a few megabytes to
// work in. Where it gets them from decides what every request pays.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/whystall/whystall/lab/witness"
)

const page = 4096

// memory is where requests get their working memory from. It has a zeroed or used buffer; nobody
// relies on its content.
type memory interface {
	get() ([]byte, error)
	put([]byte) error
}

// fresh maps memory for each request, and unmaps it. The kernel has to find and clear each page.
type fresh struct{ bytes int }

func (f fresh) get() ([]byte, error) {
	return syscall.Mmap(-1, 0, f.bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

func (f fresh) put(b []byte) error { return syscall.Munmap(b) }

// kept hands buffers on from request to request.
type kept struct{ pool sync.Pool }

func (k *kept) get() ([]byte, error) { return *k.pool.Get().(*[]byte), nil }

func (k *kept) put(b []byte) error {
	k.pool.Put(&b)
	return nil
}

// touch writes to each page of b once. To read it first would map the page of zeros, and the write
// would then change that mapping on all CPUs: another trouble, which tlb-shootdown names.
func touch(b []byte) {
	for i := 0; i < len(b); i += page {
		b[i] = 1
	}
}

// preview computes for about as long as was asked.
func preview(rounds int) (sum uint64) {
	sum = 88172645463325252
	for range rounds {
		sum ^= sum << 13
		sum ^= sum >> 7
		sum ^= sum << 17
	}
	return sum
}

// roundsOf is how many rounds of preview take d here.
func roundsOf(d time.Duration) int {
	const some = 2_000_000
	begin := time.Now()
	if preview(some) == 0 { // it never is; the compiler must not leave out what nobody reads
		return 1
	}
	return int(float64(some) * float64(d) / float64(max(1, time.Since(begin))))
}

func main() {
	kb := flag.Int("kb", 3<<10, "working memory of a request in KiB")
	keep := flag.Bool("keep", false, "keep the memory for the next request")
	compute := flag.Duration("compute", 300*time.Microsecond, "how long a request computes")
	flag.Parse()
	var m memory = fresh{*kb << 10}
	if *keep {
		m = &kept{sync.Pool{New: func() any { b := make([]byte, *kb<<10); return &b }}}
	}
	// The witness of this case: what the memory took beyond what it takes once it was touched.
	warm := make([]byte, *kb<<10)
	touch(warm)
	begin := time.Now()
	touch(warm)
	usual := time.Since(begin)
	rounds := roundsOf(*compute)
	http.HandleFunc("/preview", func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		b, err := m.get()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		touch(b)
		took := time.Since(begin)
		sum := preview(rounds)
		begin = time.Now()
		m.put(b)
		took += time.Since(begin)
		w.Header().Set(witness.LostHeader, strconv.FormatInt(max(0, int64(took-usual)), 10))
		fmt.Fprintln(w, sum)
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "page-fault:", err)
		os.Exit(1)
	}
	go http.Serve(ln, nil)
	witness.Ready(os.Stdout, "url", "http://"+ln.Addr().String()+"/preview")
	io.Copy(io.Discard, os.Stdin)
}
