package collect

var _ = register(&Collector{
	Name:      "goroutine",
	Unread:    true,
	Allocates: true,
	Doc:       "Where all goroutines are, once, as a profile. It stops the world, so it comes last, after the trace: briefly from Go 1.19 on; before, for as long as copying all stacks takes, so there it is left out. debug=2 would stop the world for as long as printing takes, and is never asked for.",
	Order:     90,
	// Go issue 33250, fixed in 1.19. Measured with 80 000 goroutines: all requests stood still for
	// 100 ms.
	OldHarm:   "before Go 1.19 it stops the world for as long as copying all stacks takes, 0.1 s with 80 000 goroutines",
	OldBefore: 19,
	Fetches: []Fetch{
		{Phase: After, Path: "goroutine", Member: "goroutine.end.pb.gz", Want: pprofKind, Max: maxProfile},
	},
})
