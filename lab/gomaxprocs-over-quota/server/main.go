// Server is a small catalogue in memory: each request picks some articles, sorts them and answers them as JSON. It builds with every Go
// since 1.13. Its pprof is where many services have it, on a port of its own.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/ioutil"
	"math/rand"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"sort"
	"strings"
)

type article struct {
	ID    int      `json:"id"`
	Name  string   `json:"name"`
	Price float64  `json:"price"`
	Tags  []string `json:"tags"`
}

var catalogue []*article

func fill(n int) {
	for i := 0; i < n; i++ {
		a := &article{ID: i, Name: fmt.Sprintf("article %d, %s", i, strings.Repeat("x", i%40)), Price: rand.Float64() * 100}
		for t := 0; t < 4; t++ {
			a.Tags = append(a.Tags, fmt.Sprintf("tag-%d", rand.Intn(500)))
		}
		catalogue = append(catalogue, a)
	}
}

func search(w http.ResponseWriter, r *http.Request) {
	var hits []article
	for i := 0; i < 3000; i++ {
		a := *catalogue[rand.Intn(len(catalogue))]
		a.Tags = append([]string(nil), a.Tags...)
		hits = append(hits, a)
	}
	sort.Slice(hits, func(i, j int) bool { return hits[i].Price < hits[j].Price })
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(hits)
}

func listen() net.Listener {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
	return ln
}

func main() {
	fill(100000)
	mux := http.NewServeMux()
	mux.HandleFunc("/search", search)
	api, debug := listen(), listen()
	go http.Serve(api, mux)
	go http.Serve(debug, nil)
	fmt.Printf("ready url=http://%s/search\n", api.Addr())
	io.Copy(ioutil.Discard, os.Stdin)
}
