package collect

var _ = register(&Collector{
	Name:  "goroutine",
	Doc:   "Where all goroutines are, once, as a profile. It stops the world briefly, so it comes last, after the trace; debug=2 would stop it for as long as printing takes, and is never asked for.",
	Order: 90,
	Fetches: []Fetch{
		{Phase: After, Path: "goroutine", Member: "goroutine.end.pb.gz", Want: pprofKind, Max: maxProfile},
	},
})
