package collect

var _ = register(&Collector{
	Name:      "heap",
	Unread:    true,
	Allocates: true,
	Doc:       "The heap profile before and after: which sites allocate, and what is live. It is as of the last GC: gc=1 would force one.",
	Order:     30,
	Fetches: []Fetch{
		{Phase: Before, Path: "heap", Member: "heap.begin.pb.gz", Want: pprofKind, Max: maxProfile},
		{Phase: After, Path: "heap", Member: "heap.end.pb.gz", Want: pprofKind, Max: maxProfile},
	},
})
