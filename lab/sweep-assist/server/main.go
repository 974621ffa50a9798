// Server is a table in memory whose rows are pages of 8 KiB, each of them one object. Reads make
// small garbage; updates replace a page. It builds with every Go since 1.13.
package main

import (
	"flag"
	"fmt"
	"io"
	"io/ioutil"
	"math/rand"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime/debug"
	"sync"
)

type page [8192]byte

type row struct {
	key   int
	text  string
	links []*row
}

func main() {
	mib := flag.Int("mib", 4096, "size of all pages")
	percent := flag.Int("gogc", 6, "GOGC")
	flag.Parse()
	debug.SetGCPercent(*percent)
	pages := make([]*page, *mib*128)
	for i := range pages {
		pages[i] = new(page)
		pages[i][0] = byte(i)
	}
	var mu sync.Mutex
	old := map[int][]*page{}
	http.HandleFunc("/query", func(w http.ResponseWriter, r *http.Request) {
		// A read: a tree of small rows, garbage once it is answered.
		root := &row{}
		for i := 0; i < 20000; i++ {
			root.links = append(root.links, &row{key: i, text: fmt.Sprint("row ", i)})
		}
		n := 0
		for _, l := range root.links {
			n += len(l.text)
		}
		// One query in four updates a row by its key.
		if rand.Intn(4) == 0 {
			p := new(page)
			p[1] = byte(n)
			mu.Lock()
			key := rand.Intn(len(pages))
			// Old versions stay for transactions which still read them, so nothing is freed.
			old[key] = append(old[key], pages[key])
			pages[key] = p
			mu.Unlock()
		}
		fmt.Fprintln(w, n)
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
	go http.Serve(ln, nil)
	fmt.Printf("ready url=http://%s/query\n", ln.Addr())
	io.Copy(ioutil.Discard, os.Stdin)
}
