package collect

import "github.com/whystall/whystall/internal/format"

// maxProfile is far more than a real profile has.
const maxProfile = 64 << 20

var pprofKind = []format.Kind{format.KindPprof}

var _ = register(&Collector{
	Name:      "mutex",
	Doc:       "The mutex profile, which is cumulative, before and after; and its rate, which only the text form has. Reading it stops no goroutine.",
	Order:     10,
	AllOrNone: true,
	Hint:      "call runtime.SetMutexProfileFraction(100) in the service",
	Fetches: []Fetch{
		// The rate is in the third line. The rest of that form is not read: it may be long.
		{Phase: Before, Path: "mutex", Query: "debug=1", Member: "mutex-rate.txt",
			Want: []format.Kind{format.KindMutexText}, Max: 512, Head: true},
		{Phase: Before, Path: "mutex", Member: "mutex.begin.pb.gz", Want: pprofKind, Max: maxProfile},
		{Phase: After, Path: "mutex", Member: "mutex.end.pb.gz", Want: pprofKind, Max: maxProfile},
	},
})
