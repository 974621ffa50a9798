package fleet

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
	if out, err := exec.Command(promtool, "tsdb", "create-blocks-from", "openmetrics", file,
		data).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v: %.2000s", err, out)
	}
	blocks, err := filepath.Glob(filepath.Join(data, "*", "meta.json"))
	if err != nil || len(blocks) == 0 {
		t.Fatal(err, blocks)
	}
	for _, c := range []struct {
		path string
		kind DumpKind
	}{
		{file, OpenMetrics}, {filepath.Dir(blocks[len(blocks)-1]), Block}, {data, Blocks},
		{packed(t, dir, "dump.gz", "gzip -c \"$1\" > \"$2\"", file), OpenMetrics},
		{packed(t, dir, "a dump.tar.gz",
			"tar -czf \"$2\" -C \"$(dirname \"$1\")\" \"$(basename \"$1\")\"", file), OpenMetrics},
		{packed(t, dir, "blocks.tar", "tar -cf \"$2\" -C \"$1\" .", data), Blocks},
		{packed(t, dir, "blocks.tgz", "tar -czf \"$2\" -C \"$1\" ../data", data), Blocks},
	} {
		t.Run(string(c.kind)+" "+filepath.Base(c.path), func(t *testing.T) {
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

// packed makes an archive of a file or folder: $1 to $2.
func packed(t *testing.T, dir, name, script, from string) string {
	t.Helper()
	to := filepath.Join(dir, name)
	if out, err := exec.Command("sh", "-ec", script, "sh", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return to
}

// TestLogs carries out the commands for a data folder of a Prometheus that has written no block
// yet, for its log alone, for the folder with a block that is older, and for an archive of it.
func TestLogs(t *testing.T) {
	need.Tool(t, "prometheus")
	end := time.Now().Add(-2 * time.Hour).Truncate(time.Second)
	_, imported := madeSamples(end)
	dir := t.TempDir()
	data, config := filepath.Join(dir, "data"), filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	address := serve(t, "prometheus", "--config.file="+config, "--storage.tsdb.path="+data,
		"--web.enable-remote-write-receiver", "--web.listen-address=ADDRESS")
	e := extraEngine{Write: "http://" + address + "/api/v1/write"}
	for part := range slices.Chunk(seriesOf(t, imported), 200) {
		e.write(t, part)
	}
	// As it stands while the engine runs: its lock and the page that it writes are in it.
	copied := filepath.Join(dir, "copied")
	packed(t, dir, "copied", "cp -r \"$1\" \"$2\"", data)
	for _, c := range []struct {
		path string
		kind DumpKind
	}{
		{copied, Blocks}, {filepath.Join(copied, "wal"), Log},
		{packed(t, dir, "data.tar.gz", "tar -czf \"$2\" -C \"$1\" .", copied), Blocks},
	} {
		t.Run(string(c.kind)+" "+filepath.Base(c.path), func(t *testing.T) {
			d := DumpOf(c.path)
			if d == nil || d.Kind != c.kind || len(d.Commands) != 3 {
				t.Fatalf("%+v", d)
			}
			if !d.Last.Equal(end.UTC()) || !d.First.Equal(end.Add(-madeMinutes*time.Minute).UTC()) {
				t.Errorf("%v to %v, want until %v", d.First, d.Last, end)
			}
			if r := served(t, d); len(r.Findings) == 0 {
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

// FuzzSegment reads anything as a segment of a log.
func FuzzSegment(f *testing.F) {
	record := []byte{walSamples, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0x8b, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}
	head := []byte{walFull, 0, byte(len(record)), 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[3:], crc32.Checksum(record, castagnoli))
	f.Add(append(head, record...))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var s span
		if found := segmentSpan(bytes.NewReader(data), &s); found != !s.last.IsZero() || s.last.Before(s.first) {
			t.Errorf("found %t: %v to %v", found, s.first, s.last)
		}
		_ = recordSpan(0, data, &s)
		_ = recordSpan(walZstd, data, &s)
		_ = recordSpan(walSnappy, data, &s)
	})
}
