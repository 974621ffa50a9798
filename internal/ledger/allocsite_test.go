package ledger

import "testing"

func TestOfGo(t *testing.T) {
	for name, want := range map[string]bool{
		"runtime.mallocgc": true, "bytes.genSplit": true, "encoding/json.mapEncoder.encode": true,
		"net/http.(*conn).serve": true, "go/ast.Walk": true,
		"slices.SortFunc[go.shape.struct { a/b.c int }]": true, "expvar.(*Map).String.func1": true,
		"main.parse": false, "main.main.func1": false, "go.uber.org/zap.(*Logger).Info": false,
		"github.com/a/log.Printf":  false,
		"shop/internal/log.Printf": false, "": false, "golang.org/x/net/http2.(*serverConn).serve": false,
	} {
		if got := ofGo(name); got != want {
			t.Errorf("ofGo(%q) is %v, want %v", name, got, want)
		}
	}
}
