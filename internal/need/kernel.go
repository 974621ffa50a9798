package need

import "testing"

// kernelFeatures are what tests may need of the kernel: nil where it is there, else why not. Others
// than Linux have none.
var kernelFeatures = map[string]func() error{}

// Kernel is for tests of what the kernel permits only some users, or lacks: "perf", perf_event_open
// of own threads; "perf-all", of all CPUs; "cgroup", groups with a quota of CPU; "bpf", tracing
// programs that find the kernel's fields by its types.
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
