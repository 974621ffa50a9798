package collect

import (
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/format"
)

var _ = register(&Collector{
	Name:  evidence.TracePart,
	Doc:   "The execution trace: which goroutine was in which state when. Starting and ending it stops the world briefly.",
	Order: 50,
	Lead:  true,
	Hint:  "import net/http/pprof in the service, or give the address where it serves it",
	Fetches: []Fetch{
		// etcd 3.4 serves it under a name that ends in a space.
		{Phase: During, Path: "trace", Else: "trace ", For: true, Member: evidence.TraceMember,
			Want: []format.Kind{format.KindTrace}},
	},
})
