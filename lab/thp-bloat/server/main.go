// Server is a cache which was large once. Most of its entries are gone, and their memory was
// returned to the system, but among every few pages one is still in use. It builds with every Go
// since 1.13.
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
)

type entry [4096]byte

func main() {
	mib := flag.Int("mib", 640, "size of the cache when it was large")
	keep := flag.Int("keep", 64, "one entry in this many stays")
	free := flag.Bool("free", true, "return free memory to the system")
	flag.Parse()
	all := make([]*entry, *mib*256)
	for i := range all {
		all[i] = new(entry)
		for j := range all[i] {
			all[i][j] = byte(j)
		}
	}
	var cache []*entry
	for i := range all {
		if i%*keep == 0 {
			cache = append(cache, all[i])
		}
	}
	all = nil
	if *free {
		debug.FreeOSMemory()
	}
	http.HandleFunc("/get", func(w http.ResponseWriter, r *http.Request) {
		e := cache[rand.Intn(len(cache))]
		fmt.Fprintf(w, "%x\n", e[:64])
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
	go http.Serve(ln, nil)
	fmt.Printf("ready url=http://%s/get\n", ln.Addr())
	io.Copy(ioutil.Discard, os.Stdin)
}
