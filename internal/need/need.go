package need

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// Require is the environment variable that turns skips into failures.
const Require = "WHYSTALL_REQUIRE"

// Tool returns the path of a program that the test runs, such as "wrk".
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name, err.Error())
	}
	return path
}

// Linux is for tests of what only Linux has: /proc, thread ids, CLOCK_MONOTONIC in traces.
func Linux(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		Missing(t, "linux", "this is "+runtime.GOOS)
	}
}

// Missing ends the test because the machine lacks what name says: as a skip, or as a failure if it
// is required. It is for needs that have no function here.
func Missing(t testing.TB, name, why string) {
	t.Helper()
	if required(os.Getenv(Require), name) {
		t.Fatalf("needs %s, which %s requires: %s", name, Require, why)
		return // only a test of this function gets here
	}
	t.Skipf("needs %s: %s", name, why)
}

func required(list, name string) bool {
	for want := range strings.SplitSeq(list, ",") {
		if want = strings.TrimSpace(want); want == "all" || want != "" && want == name {
			return true
		}
	}
	return false
}
