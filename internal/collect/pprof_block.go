package collect

var _ = register(&Collector{
	Name:  "block",
	Doc:   "The block profile, which is cumulative, before and after. Reading it stops no goroutine.",
	Order: 20,
	Hint:  "call runtime.SetBlockProfileRate in the service; it costs more than the mutex profile",
	Fetches: []Fetch{
		{Phase: Before, Path: "block", Member: "block.begin.pb.gz", Want: pprofKind, Max: maxProfile},
		{Phase: After, Path: "block", Member: "block.end.pb.gz", Want: pprofKind, Max: maxProfile},
	},
})
