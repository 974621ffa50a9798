package collect

import "github.com/whystall/whystall/internal/format"

// maxMetrics is far more than a service's own page has.
const maxMetrics = 64 << 20

var _ = register(&Collector{
	Name:  "metrics",
	Doc:   "The service's page of Prometheus metrics before and after, for the metrics of the runtime and the process. Old client libraries stop the world to fill it, so it is fetched outside the trace's time.",
	Order: 40,
	Fetches: []Fetch{
		{Phase: Before, Path: "metrics", Root: true, Member: "metrics.begin.txt",
			Want: []format.Kind{format.KindMetrics}, Max: maxMetrics},
		{Phase: After, Path: "metrics", Root: true, Member: "metrics.end.txt",
			Want: []format.Kind{format.KindMetrics}, Max: maxMetrics},
	},
})
