package need

import "testing"

// kernelFeatures has the probe of each feature that tests may need from the kernel. A probe returns
// nil if the feature is there, otherwise the reason. Systems other than Linux have no probes.
var kernelFeatures = map[string]func() error{}

func kernelFeature(name string, probe func() error) bool {
	kernelFeatures[name] = probe
	return true
}

// Kernel is for tests of what a kernel may lack or permit only to some users: "perf",
// perf_event_open of own threads; "perf-all", the same of all CPUs; "cgroup", groups with a CPU
// quota; "bpf", tracing programs that find the kernel's fields by its types.
func Kernel(t testing.TB, feature string) {
	t.Helper()
	probe, ok := kernelFeatures[feature]
	if !ok {
		Linux(t)
		t.Fatalf("need.Kernel knows no %q", feature)
		return
	}
	if err := probe(); err != nil {
		Missing(t, feature, err.Error())
	}
}
