// Server is a small catalogue in memory. Each request picks some articles, sorts them, and gets
// them as JSON. It builds with every Go since 1.13. Its pprof has a port of its own, as in many
// services.
package main

import (
	"encoding/json"
	"flag"
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

// hits is how many articles an answer has.
var hits = 3000

func fill(n int) {
	for i := 0; i < n; i++ {
		a := &article{ID: i, Name: fmt.Sprintf("article %d, %s", i, strings.Repeat("x", i%40)),
			Price: rand.Float64() * 100}
		for t := 0; t < 4; t++ {
			a.Tags = append(a.Tags, fmt.Sprintf("tag-%d", rand.Intn(500)))
		}
		catalogue = append(catalogue, a)
	}
}

func search(w http.ResponseWriter, r *http.Request) {
	var found []article
	for i := 0; i < hits; i++ {
		a := *catalogue[rand.Intn(len(catalogue))]
		a.Tags = append([]string(nil), a.Tags...)
		found = append(found, a)
	}
	sort.Slice(found, func(i, j int) bool { return found[i].Price < found[j].Price })
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(found)
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
	articles := flag.Int("articles", 100000,
		"how many the catalogue has; each garbage collection walks through all of them")
	flag.IntVar(&hits, "hits", hits, "how many articles an answer has")
	flag.Parse()
	fill(*articles)
	mux := http.NewServeMux()
	mux.HandleFunc("/search", search)
	api, debug := listen(), listen()
	go http.Serve(api, mux)
	go http.Serve(debug, nil)
	fmt.Printf("ready url=http://%s/search\n", api.Addr())
	io.Copy(ioutil.Discard, os.Stdin)
}
