package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/archive"
)

// Dump is samples of a Prometheus that lie in files. They are not read here: an engine serves a
// copy of them on loopback, and is asked.
type Dump struct {
	Kind     DumpKind  `json:"kind"`
	Path     string    `json:"path"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Commands []string  `json:"commands"` // for a shell, in order
}

// DumpKind is how samples lie in files.
type DumpKind string

// Kinds of dumps.
const (
	OpenMetrics DumpKind = "an OpenMetrics dump"
	Block       DumpKind = "a block of a Prometheus"
	Blocks      DumpKind = "a data folder of a Prometheus"
	Log         DumpKind = "the write-ahead log of a Prometheus"
)

// DumpOf recognises a dump by its content; nil: it is none.
func DumpOf(name string) *Dump {
	st, err := os.Stat(name)
	switch {
	case err != nil:
		return nil
	case st.IsDir():
		return blocksOf(name)
	case !st.Mode().IsRegular():
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, dumpHead))
	if err != nil {
		return nil
	}
	if archive.Known(head) {
		return archivedDump(name, f, st.Size(), head)
	}
	tail := make([]byte, min(st.Size(), dumpTail))
	if _, err := f.ReadAt(tail, st.Size()-int64(len(tail))); err != nil {
		return nil
	}
	first, last, ok := openMetricsTimes(head, tail)
	if !ok {
		return nil
	}
	d := &Dump{Kind: OpenMetrics, Path: name, First: first, Last: last}
	d.Commands = d.serve("promtool tsdb create-blocks-from openmetrics " + finding.ShellFile(name) + " whystall-copy")
	return d
}

// How much of a text is looked at, from its start and from its end.
const (
	dumpHead = 1 << 20
	dumpTail = 64 << 10
)

var openMetricsSample = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{.*\})?) \S+ ([0-9]+(?:\.[0-9]+)?)$`)

// sampled reports whether one of a text's first lines is a sample with a time.
func sampled(head []byte) bool {
	left := 4
	for line := range bytes.Lines(head) {
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 || line[0] == '#' {
			continue
		}
		if left--; left < 0 || openMetricsSample.Match(line) {
			return left >= 0
		}
	}
	return false
}

// openMetricsTimes tells a dump from one scrape: the same series has samples of several times.
func openMetricsTimes(head, tail []byte) (first, last time.Time, ok bool) {
	if !bytes.HasSuffix(bytes.TrimSpace(tail), []byte("# EOF")) {
		return first, last, false
	}
	series, several := "", false
	from, to := math.Inf(1), 0.0
	take := func(text []byte) {
		for line := range bytes.Lines(text) {
			m := openMetricsSample.FindSubmatch(bytes.TrimRight(line, "\r\n"))
			if m == nil {
				continue
			}
			at, err := strconv.ParseFloat(string(m[2]), 64)
			if err != nil || at < 1 || at > latestSecond {
				continue
			}
			several = several || series == string(m[1]) && at != to
			series = string(m[1])
			from, to = min(from, at), max(to, at)
		}
	}
	take(head)
	series = ""
	take(tail)
	return time.Unix(int64(from), 0).UTC(), time.Unix(int64(math.Ceil(to)), 0).UTC(), several
}

// latestSecond is in the year 2200: larger numbers are milliseconds, which OpenMetrics has not.
const latestSecond = 7_258_118_400

// blocksOf recognises a block, a folder of blocks and of a log, and a log.
func blocksOf(dir string) *Dump {
	if m := blockMeta(dir); m != nil {
		d := &Dump{Kind: Block, Path: dir, First: time.UnixMilli(m.MinTime).UTC(),
			Last: time.UnixMilli(m.MaxTime).UTC()}
		d.Commands = d.serve("mkdir whystall-copy && cp -r " +
			finding.ShellFile(filepath.Clean(dir)) + " whystall-copy/" + m.ULID)
		return d
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	if at, ok := walSpan(dir); ok {
		d := &Dump{Kind: Log, Path: dir, First: at.first, Last: at.last}
		d.Commands = d.serve("mkdir whystall-copy && cp -r " +
			finding.ShellFile(filepath.Clean(dir)) + " whystall-copy/wal")
		return d
	}
	at, _ := walSpan(filepath.Join(dir, "wal"))
	for _, e := range entries[:min(len(entries), mostBlocks)] {
		if m := blockMeta(filepath.Join(dir, e.Name())); m != nil && e.Name() == m.ULID {
			at.add(time.UnixMilli(m.MinTime).UTC(), time.UnixMilli(m.MaxTime).UTC())
		}
	}
	if at.last.IsZero() {
		return nil
	}
	d := &Dump{Kind: Blocks, Path: dir, First: at.first, Last: at.last}
	d.Commands = d.serve("cp -r " + finding.ShellFile(filepath.Clean(dir)) +
		" whystall-copy && rm -f whystall-copy/lock")
	return d
}

const mostBlocks = 10_000

type meta struct {
	ULID    string `json:"ulid"`
	MinTime int64  `json:"minTime"` // ms
	MaxTime int64  `json:"maxTime"`
}

var ulid = regexp.MustCompile(`^[0-9A-HJKMNP-TV-Z]{26}$`)

// blockMeta reads what a block says of itself; nil: it is none.
func blockMeta(dir string) *meta {
	for _, part := range []string{"index", "chunks"} {
		if _, err := os.Stat(filepath.Join(dir, part)); err != nil {
			return nil
		}
	}
	f, err := os.Open(filepath.Join(dir, "meta.json"))
	if err != nil {
		return nil
	}
	defer f.Close()
	return readMeta(f)
}

func readMeta(r io.Reader) *meta {
	var m meta
	if json.NewDecoder(io.LimitReader(r, 1<<20)).Decode(&m) != nil || !ulid.MatchString(m.ULID) ||
		m.MaxTime <= m.MinTime || m.MaxTime > latestSecond*1000 || m.MinTime < 0 {
		return nil
	}
	return &m
}

// DumpAddress is where the copy is served.
const DumpAddress = "127.0.0.1:19191"

// serve is the commands that serve a copy and ask it. Without a retention the engine would delete
// blocks that are older than two weeks: hence a copy, and a hundred years.
func (d *Dump) serve(makeCopy string) []string {
	since := d.Last.Sub(d.First).Truncate(time.Second)
	since = max(time.Minute, min(since, 90*24*time.Hour))
	return []string{
		makeCopy,
		": > whystall-copy.yml && prometheus --config.file=whystall-copy.yml --storage.tsdb.path=whystall-copy --storage.tsdb.retention.time=100y --web.listen-address=" + DumpAddress + " &",
		fmt.Sprintf("whystall fleet --prom http://%s --at %s --since %s", DumpAddress,
			d.Last.Format(time.RFC3339), since),
	}
}
