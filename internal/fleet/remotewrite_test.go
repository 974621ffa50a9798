package fleet

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/protowire"
)

// extraEngine is an engine that the lab has started, beside those of the distribution: go run -C
// lab . fleet gives it to these tests.
type extraEngine struct {
	Name   string `json:"name"`
	Query  string `json:"query"`
	Write  string `json:"write"` // where it takes remote write
	Tenant string `json:"tenant"`
}

// extraVariable holds an extraEngine as JSON.
const extraVariable = "WHYSTALL_ENGINE"

// extra fills the engine that the lab has started; nil: there is none.
func extra(t *testing.T, imported []byte) *extraEngine {
	t.Helper()
	text := os.Getenv(extraVariable)
	if text == "" {
		return nil
	}
	var e extraEngine
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatalf("%s: %v", extraVariable, err)
	}
	filling.Do(func() {
		for part := range slices.Chunk(seriesOf(t, imported), 200) {
			e.write(t, part)
		}
	})
	return &e
}

var filling sync.Once

// written is a series as remote write carries it.
type written struct {
	labels  [][2]string // sorted by name
	samples []byte      // encoded
}

var pair = regexp.MustCompile(`(\w+)="([^"]*)"`)

// seriesOf reads what VictoriaMetrics imports.
func seriesOf(t *testing.T, imported []byte) (all []*written) {
	t.Helper()
	at := map[string]*written{}
	for line := range bytes.Lines(imported) {
		f := strings.Fields(string(line))
		if len(f) != 3 {
			t.Fatalf("not a sample: %s", line)
		}
		s := at[f[0]]
		if s == nil {
			name, labels, _ := strings.Cut(f[0], "{")
			s = &written{labels: [][2]string{{"__name__", name}}}
			for _, m := range pair.FindAllStringSubmatch(labels, -1) {
				s.labels = append(s.labels, [2]string{m[1], m[2]})
			}
			slices.SortFunc(s.labels, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
			at[f[0]] = s
			all = append(all, s)
		}
		v, err := strconv.ParseFloat(f[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		ms, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sample := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), math.Float64bits(v))
		sample = protowire.AppendVarint(protowire.AppendTag(sample, 2, protowire.VarintType), uint64(ms))
		s.samples = protowire.AppendBytes(protowire.AppendTag(s.samples, 2, protowire.BytesType), sample)
	}
	return all
}

// write sends series as remote write 1.0 has them: a WriteRequest, packed by snappy.
func (e *extraEngine) write(t *testing.T, series []*written) {
	t.Helper()
	var body []byte
	for _, s := range series {
		var one []byte
		for _, l := range s.labels {
			pair := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), l[0])
			pair = protowire.AppendString(protowire.AppendTag(pair, 2, protowire.BytesType), l[1])
			one = protowire.AppendBytes(protowire.AppendTag(one, 1, protowire.BytesType), pair)
		}
		one = append(one, s.samples...)
		body = protowire.AppendBytes(protowire.AppendTag(body, 1, protowire.BytesType), one)
	}
	q, err := http.NewRequest(http.MethodPost, e.Write, bytes.NewReader(snappy.Encode(nil, body)))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Encoding", "snappy")
	q.Header.Set("Content-Type", "application/x-protobuf")
	q.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	if e.Tenant != "" {
		q.Header.Set("X-Scope-OrgID", e.Tenant)
	}
	client := http.Client{Timeout: time.Minute}
	resp, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		t.Fatalf("%s: %s: %s", e.Write, resp.Status, said)
	}
}
