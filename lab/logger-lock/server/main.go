// Server answers from memory, and logs each step of each request with logrus. The logger formats
// and writes with one mutex held.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"time"

	"github.com/sirupsen/logrus"
)

func main() {
	file := flag.String("log", "", "file to log to")
	lines := flag.Int("lines", 30, "log lines for each request")
	noLock := flag.Bool("no-lock", false, "switch the logger's lock off")
	slow := flag.Int("slow-pipe", 0, "log into a pipe, and read it at this many KiB a second")
	flag.Parse()
	log := logrus.New()
	log.Formatter = &logrus.JSONFormatter{}
	log.Out = io.Discard
	if *file != "" {
		f, err := os.OpenFile(*file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			fmt.Fprintln(os.Stderr, "server:", err)
			os.Exit(1)
		}
		log.Out = f
		go func() { // as a log rotation does
			for range time.Tick(2 * time.Second) {
				f.Truncate(0)
			}
		}()
	}
	if *slow > 0 {
		log.Out = slowPipe(*slow)
	}
	if *noLock {
		log.SetNoLock()
	}
	http.HandleFunc("/price", func(w http.ResponseWriter, r *http.Request) {
		entry := log.WithFields(logrus.Fields{"request": rand.Int63(), "path": r.URL.Path, "agent": r.UserAgent()})
		for i := 0; i < *lines; i++ {
			entry.WithField("step", i).WithField("at", time.Now()).Info("looked up a price")
		}
		fmt.Fprintf(w, "%d\n", rand.Intn(100))
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
	go http.Serve(ln, nil)
	fmt.Printf("ready url=http://%s/price\n", ln.Addr())
	io.Copy(io.Discard, os.Stdin)
}

// slowPipe is a pipe whose reader, such as a log collector, is slow.
func slowPipe(kibPerSecond int) *os.File {
	r, w, err := os.Pipe()
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
	// Fd makes the descriptor a blocking one, like standard output.
	w.Fd()
	go func() {
		buf := make([]byte, 16<<10)
		for {
			n, err := r.Read(buf)
			if err != nil {
				return
			}
			time.Sleep(time.Duration(n) * time.Second / time.Duration(kibPerSecond<<10))
		}
	}()
	return w
}
