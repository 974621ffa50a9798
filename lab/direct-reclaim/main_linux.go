// Direct-reclaim is a service which takes fresh memory for each request, as a database does for a
// query's buffers. A backup in the same process fills the page cache meanwhile.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/whystall/whystall/lab/witness"
)

func main() {
	run := serve
	if len(os.Args) > 1 && os.Args[1] == "neighbour" {
		run = func() error { return neighbour(os.Args[2:]) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "direct-reclaim:", err)
		os.Exit(1)
	}
}

func serve() error {
	folder := flag.String("folder", "", "where a backup is written again and again; empty: there is no backup")
	mib := flag.Int("mib", 1024, "size of the backup's file")
	commit := flag.Bool("commit", false, "a request also writes a row and waits until that is on the disk")
	buffer := flag.Int("buffer", 8, "MiB that a request allocates")
	flag.Parse()
	usual := usually(*buffer << 20)
	var journal *os.File
	if *commit {
		f, err := os.Create(filepath.Join(*folder, "journal"))
		if err != nil {
			return err
		}
		journal = f
	}
	http.HandleFunc("/query", func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		sum, err := use(*buffer << 20)
		if err == nil && journal != nil {
			err = row(journal)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set(witness.LostHeader, strconv.FormatInt(max(0, int64(time.Since(begin)-usual)), 10))
		fmt.Fprintln(w, sum)
	})
	if *folder != "" {
		name := filepath.Join(*folder, "backup")
		if err := fill(name, *mib); err != nil {
			return err
		}
		go write(name, *mib)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go http.Serve(ln, nil)
	witness.Ready(os.Stdout, "url", "http://"+ln.Addr().String()+"/query")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// use takes memory and gives it back.
func use(size int) (sum int, err error) {
	// From the system and not from the heap, as for the large buffers of a database.
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return 0, err
	}
	for i := 0; i < size; i += 4096 {
		b[i] = byte(i)
		sum += int(b[i])
	}
	return sum, syscall.Munmap(b)
}

// row appends a row to the journal. When it returns, the row is on the disk.
func row(journal *os.File) error {
	if _, err := journal.Write(make([]byte, 100)); err != nil {
		return err
	}
	return journal.Sync()
}

// usually is how long use takes while nothing else runs. What a request takes beyond that is lost:
// the witness of this case.
func usually(size int) time.Duration {
	best := time.Hour
	for range 20 {
		begin := time.Now()
		use(size)
		best = min(best, time.Since(begin))
	}
	return best
}

func fill(name string, mib int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for range mib {
		if _, err := f.Write(block); err != nil {
			f.Close()
			return err
		}
	}
	return f.Close()
}

// write rewrites the file again and again.
func write(name string, mib int) {
	for fill(name, mib) == nil {
	}
}
