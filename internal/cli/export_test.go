package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/report"
)

// TestExports: what other tools are told is the ledger's, of a trace, of a case with the kernel's
// records, and of one whose requests are those of threads. The tool of Go's own distribution reads
// the profile.
func TestExports(t *testing.T) {
	for _, file := range []string{"../../lab/sched-latency/testdata/ill.trace",
		"testdata/lab/gomaxprocs-over-quota.ill.case", "testdata/lab/gomaxprocs-over-quota.ill-go1.13.case"} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			dir := t.TempDir()
			pprof, folded := filepath.Join(dir, "wait.pb.gz"), filepath.Join(dir, "wait.folded")
			status, stdout, stderr := run("explain", file, "--format", "json", "--pprof", pprof,
				"--folded", folded, "--perfetto", filepath.Join(dir, "p"), "--otlp", filepath.Join(dir, "o"))
			if status > 1 {
				t.Fatalf("status %d: %s", status, stderr)
			}
			var r report.Report
			if err := json.Unmarshal([]byte(stdout), &r); err != nil {
				t.Fatal(err)
			}
			var want int64
			for _, a := range r.Ledger.Slow.Accounts {
				if a.Leaf != account.LeafOnCPU || a.Class != account.ClassOwn {
					want += a.NS
				}
			}
			if got := foldedSum(t, folded); got != want || want == 0 {
				t.Errorf("folded stacks have %d ns, the ledger %d", got, want)
			}
			checkTop(t, pprof, want)
		})
	}
}

func foldedSum(t *testing.T, name string) (sum int64) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		n, err := strconv.ParseInt(f[len(f)-1], 10, 64)
		if err != nil {
			t.Error(err)
		}
		sum += n
	}
	return sum
}

// checkTop checks the sum of a profile, and that go tool pprof gives the same.
func checkTop(t *testing.T, name string, want int64) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.ParseData(b)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, s := range p.Sample {
		sum += s.Value[0]
	}
	if sum != want {
		t.Errorf("the profile has %d ns, the ledger %d", sum, want)
	}
	out, err := exec.Command("go", "tool", "pprof", "-unit=nanoseconds", "-top", "-nodecount=0", name).CombinedOutput()
	if err != nil {
		t.Fatalf("go tool pprof: %v: %s", err, out)
	}
	if top := fmt.Sprintf(`of %dns total|Total samples = %dns`, want, want); !regexp.MustCompile(top).Match(out) {
		t.Errorf("go tool pprof has another sum than %d ns:\n%s", want, out)
	}
}
