package fleet

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/whystall/whystall/internal/need"
)

// TestDumps carries out the commands for a dump, a block and a data folder.
func TestDumps(t *testing.T) {
	promtool := need.Tool(t, "promtool")
	need.Tool(t, "prometheus")
	end := time.Now().Add(-2 * time.Hour).Truncate(time.Second)
	open, _ := madeSamples(end)
	dir := t.TempDir()
	file := filepath.Join(dir, "it's a dump")
	if err := os.WriteFile(file, open, 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	if out, err := exec.Command(promtool, "tsdb", "create-blocks-from", "openmetrics", file, data).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v: %.2000s", err, out)
	}
	blocks, err := filepath.Glob(filepath.Join(data, "*", "meta.json"))
	if err != nil || len(blocks) == 0 {
		t.Fatal(err, blocks)
	}
	for _, c := range []struct {
		path string
		kind DumpKind
	}{{file, OpenMetrics}, {filepath.Dir(blocks[len(blocks)-1]), Block}, {data, Blocks}} {
		t.Run(string(c.kind), func(t *testing.T) {
			d := DumpOf(c.path)
			if d == nil || d.Kind != c.kind || len(d.Commands) != 3 {
				t.Fatalf("%+v", d)
			}
			if c.kind == OpenMetrics && !d.Last.Equal(end.UTC()) {
				t.Errorf("last %v, want %v", d.Last, end)
			}
			r := served(t, d)
			if len(r.Findings) == 0 {
				t.Error("nothing found in what is ill")
			}
		})
	}
}

// served carries out the first two commands, at a free port, and asks as the third does.
func served(t *testing.T, d *Dump) *Result {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	script := strings.ReplaceAll(d.Commands[0]+"\n"+strings.TrimSuffix(d.Commands[1], "&"), DumpAddress, address)
	cmd := exec.Command("sh", "-ec", strings.Replace(script, "&& prometheus", "&& exec prometheus", 1))
	cmd.Dir = t.TempDir()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 300 {
		if resp, err := http.Get("http://" + address + "/-/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	m := regexp.MustCompile(`^whystall fleet --prom http://(\S+) --at (\S+) --since (\S+)$`).FindStringSubmatch(d.Commands[2])
	if m == nil {
		t.Fatalf("third command: %s", d.Commands[2])
	}
	at, err := time.Parse(time.RFC3339, m[2])
	if err != nil {
		t.Fatal(err)
	}
	since, err := time.ParseDuration(m[3])
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEngine(Options{URL: address, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Look(context.Background(), e, Ask{Since: since, At: at, Top: 20, MaxSamples: 1e9})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestNoDumps leaves alone what only looks like one.
func TestNoDumps(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a scrape":              "# TYPE up gauge\nup 1\nup{a=\"b\"} 2\n# EOF\n",
		"a scrape with times":   "a{x=\"1\"} 1 1700000000\na{x=\"2\"} 1 1700000000\n# EOF\n",
		"times in ms, no end":   "a 1 1700000000000\na 2 1700000015000\n",
		"empty":                 "",
		"cut off":               "a 1 1700000000\na 2 1700000015\n",
		"not a block/meta.json": `{"ulid":"../../etc","minTime":1,"maxTime":2}`,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if d := DumpOf(file); d != nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if d := DumpOf(filepath.Join(dir, "not a block")); d != nil {
		t.Errorf("%+v", d)
	}
}
