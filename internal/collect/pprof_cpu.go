package collect

var _ = register(&Collector{
	Name:  "cpu",
	Doc:   "The CPU profile, together with the trace: its samples are in the trace too. It interrupts the service 100 times a second and CPU, so it must be asked for.",
	Order: 51,
	Asked: true,
	Fetches: []Fetch{
		{Phase: During, Path: "profile", For: true, Member: "cpu.pb.gz", Want: pprofKind, Max: maxProfile},
	},
})
