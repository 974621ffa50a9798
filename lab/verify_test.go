package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/whystall/whystall/lab/witness"
)

// requests took so many ms each, slowest first, and lost half of that.
func requests(ms ...int64) (all []witness.Request) {
	for _, n := range ms {
		all = append(all, witness.Request{0, n * 1e6, n * 1e6 / 2})
	}
	return all
}

// What the root explains of a slow request is compared with the witness' loss over the same share
// of ill and cured requests, computed by hand.
func TestAmount(t *testing.T) {
	c := &Case{Name: "c"}
	ill := row{chosen: chosen{c, &Variant{Name: "ill", Root: "c"}}}
	cured := row{chosen: chosen{c, &Variant{Name: "cured"}}}
	ill.runs = []verdict{
		{explains: 80e6, share: 0.5, witnessed: requests(120, 100, 5, 5), resident: 900 << 20, bytes: 500 << 20},
		{explains: 100e6, share: 0.25, witnessed: requests(130, 10, 5, 5), resident: 700 << 20, bytes: 700 << 20},
		{missed: true, explains: 1e12, share: 1, witnessed: requests(1e6)},
	}
	cured.runs = []verdict{
		{witnessed: requests(20, 10, 1, 1), resident: 200 << 20},
		{witnessed: requests(40, 30, 1, 1), resident: 200 << 20},
		{err: "died", witnessed: requests(1e6)},
	}
	rows := []row{ill, cured}
	for _, x := range []struct {
		kind                       string
		explained, seen, low, high float64
	}{
		// Run 1: half of the requests took 110 ms, of the cured ones 15 and 35. Run 2: a quarter
		// took 130, of the cured ones 20 and 40.
		{"latency", 90e6, (85e6 + 100e6) / 2, 85e6, 100e6},
		{"lost", 90e6, (55e6 + 65e6) / 2, 55e6, 65e6},
		{"rss", 600 << 20, 600 << 20, 500 << 20, 700 << 20},
	} {
		c.Amount = x.kind
		a := amountOf(rows, &rows[0])
		if a.why != "" || a.explained != x.explained || math.Abs(a.seen-x.seen) > 1 ||
			a.low != x.low || a.high != x.high {
			t.Errorf("%s: %+v; want %+v", x.kind, a, x)
		}
	}
	c.Amount = "latency"
	if a := amountOf(rows[:1], &rows[0]); a.why != "no cured run" {
		t.Errorf("without a cured run: %+v", a)
	}
	if _, words, _ := new(amount).words(&ill); words != "amount unknown" {
		t.Errorf("without a witness: %q", words)
	}
}

// Runs with the same roots are one entry, whatever is under the root and whatever others did
// meanwhile.
func TestVerdicts(t *testing.T) {
	r := row{runs: []verdict{
		{causes: []string{"a"}, grade: "proven", under: []string{"b"}, others: 0.3},
		{causes: []string{"a"}, grade: "supported", under: []string{"d", "b"}},
		{causes: []string{"a"}, grade: "proven", under: []string{"b"}},
		{missed: true, forbid: []string{"x"}, causes: []string{"x"}, grade: "possible"},
		{},
	}}
	want := "3 x a (proven 2, supported 1); under it b, d 1<br>1 x x (possible); MISSED; FALSE ALARM: x<br>1 x nothing found"
	if got := r.verdicts(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := r.others(); got != "30 %" {
		t.Errorf("others: %s", got)
	}
}

// A verify which is killed while settings of the machine are changed leaves no change and no
// process behind.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("builds with an older Go")
	}
	need(t, "cgroup", os.Geteuid() == 0, "changing settings takes root")
	cases, err := loadCases()
	if err != nil {
		t.Fatal(err)
	}
	changed := find(cases, "thp-bloat").variant("ill").Settings
	before := map[string]string{}
	for _, s := range changed {
		b, err := os.ReadFile(s.Path)
		if err != nil {
			t.Skipf("this kernel has no such setting: %v", err)
		}
		before[s.Path] = string(b)
	}
	tmp := t.TempDir()
	var out bytes.Buffer
	cmd := exec.Command(os.Args[0], "verify", "--only", "thp-bloat/ill", "--times", "1", "--for", "30s")
	cmd.Env = append(os.Environ(), "LAB_TEST=1", "TMPDIR="+tmp)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// Its processes serve, so all its settings are changed.
	for len(runningFrom(tmp)) < 2 {
		select {
		case <-ended:
			if strings.Contains(out.String(), "skipped") {
				t.Skip(out.String())
			}
			t.Fatalf("it ended: %s", &out)
		case <-time.After(20 * time.Millisecond):
		}
	}
	cmd.Process.Kill()
	<-ended
	wrong := func() (all []string) {
		for path, want := range before {
			if b, err := os.ReadFile(path); err != nil || string(b) != want {
				all = append(all, fmt.Sprintf("%s is %q, was %q", path, b, want))
			}
		}
		for _, p := range runningFrom(tmp) {
			all = append(all, p+" runs")
		}
		return all
	}
	for n := 0; len(wrong()) > 0; n++ {
		if n > 1500 {
			t.Fatalf("left after half a minute: %v", wrong())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// runningFrom lists the processes whose program is in a folder, without builds.
func runningFrom(dir string) (all []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, l := range links {
		if exe, err := os.Readlink(l); err == nil && strings.HasPrefix(exe, dir) {
			all = append(all, l+" "+exe)
		}
	}
	return all
}
