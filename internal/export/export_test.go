package export

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/pprof/profile"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// evil is what a symbol or a request may be called by somebody who means harm.
var evil = "go.shape.struct { A; B }\r\n9 \x00\x1b[31m\u2028\xff\xfe" + strings.Repeat("ü", 4000)

// sample has a story, and names that no format may trust.
func sample() *Source {
	accounts := []account.Account{
		{Leaf: account.LeafRunnable, Class: account.ClassMessage, Actor: evil, Site: "main.get", NS: 70},
		{Leaf: account.LeafThrottled, Class: account.ClassOwn, NS: 20},
		{Leaf: account.LeafOnCPU, Class: account.ClassOwn, NS: 10},
	}
	story := &account.Story{
		Begin: 1000, End: 1100, Actor: 7, Names: []string{"", evil, "main.get"},
		Stacks: [][]account.Site{nil, {{Func: evil, File: evil, Line: 3}}},
		Chain: []account.Link{{Begin: 1000, End: 1070, Class: account.ClassMessage,
			Leaf: account.LeafRunnable, Lane: 1, Site: 2, Stack: 1},
			{Begin: 1070, End: 1100, Class: account.ClassOwn, Leaf: account.LeafOnCPU, Lane: -1}},
		Lanes: []account.Lane{
			{Kind: account.LaneGoroutine, ID: 7, Name: evil, Spans: []account.Span{
				{Begin: 1000, End: 1070, State: account.LeafOther, By: 1,
					ByKind: account.LaneGoroutine, ByID: 8, Stack: 1},
				{Begin: 1070, End: 1100, State: account.LeafOnCPU}}},
			{Kind: account.LaneGoroutine, ID: 8,
				Spans: []account.Span{{Begin: 1000, End: 1080, State: account.LeafOnCPU}}},
			{Kind: account.LaneP, Spans: []account.Span{{Begin: 1000, End: 1080, State: account.LeafOnCPU, Detail: 1}}},
		},
	}
	second := *story
	second.Begin, second.End, second.Actor = 1010, 1090, 9
	second.Lanes = []account.Lane{{Kind: account.LaneGoroutine, ID: 8,
		Spans: []account.Span{{Begin: 1010, End: 1090, State: account.LeafOnCPU}}},
		{Kind: account.LaneP, ID: 1, Spans: []account.Span{{Begin: 1010, End: 1090, State: account.LeafOnCPU}}}}
	second.Chain = nil
	l := &account.Result{
		Begin: 900, End: 2000, Monotonic: true, Wall: true, WallOffset: 1_700_000_000_000_000_000,
		Slow: account.Column{Requests: 1, WallNS: 100, Accounts: accounts},
		Requests: account.Requests{Count: 2, Slow: 1,
			Slowest: []account.Request{{Begin: 1000, End: 1100, Entry: evil, Name: evil,
				Goroutine: 7, Accounts: accounts}, {Begin: 1010, End: 1090, Entry: "main.two", Goroutine: 9}}},
		Stories: []*account.Story{story, &second},
		Waits: account.Waits{{Parent: -1, NS: 90},
			{Parent: 0, Name: "runnable in Go", Leaf: account.LeafRunnable, NS: 70},
			{Parent: 1, Name: evil, Leaf: account.LeafRunnable, NS: 70},
			{Parent: 0, Name: "throttled", Leaf: account.LeafThrottled, NS: 19}},
		Series: account.Series{Whole: true, Entries: []string{evil},
			Largest: []account.Named{{Leaf: account.LeafRunnable, Actor: evil}},
			Dots:    []account.Dot{{Begin: 1000, NS: 100, Slow: true}, {Begin: 1050, NS: 100}},
			Bands:   []account.Band{{Kind: account.BandMark, Begin: 1000, End: 1010}},
			Levels: []account.Level{{Stream: "/host/psi/cpu/some:ns",
				Points: []account.LevelPoint{{Begin: 900, End: 1500, Share: 0.5}}}}},
		STWs: []account.STW{{Begin: 1000, LastStop: 1001, Start: 1002, End: 1003, Kind: evil}},
	}
	return &Source{Ledger: l, Service: evil, PID: 4, Findings: []finding.Finding{
		{Cause: "sched-latency", Title: evil, Confidence: finding.Supported, Share: 0.7,
			Explains: finding.Explains{NS: 70},
			Evidence: []finding.Evidence{{Text: evil, Source: evil}}, Remedy: []string{evil}},
		{Cause: "cpu-throttled", BecauseOf: "sched-latency", Title: "t"},
	}}
}

func written(t *testing.T, s *Source, name string) []byte {
	t.Helper()
	for _, f := range Formats() {
		if f.Name == name {
			var one, two bytes.Buffer
			if err := f.Write(s, &one); err != nil {
				t.Fatal(err)
			}
			if err := f.Write(s, &two); err != nil || !bytes.Equal(one.Bytes(), two.Bytes()) {
				t.Errorf("written again it is another file: %v", err)
			}
			return one.Bytes()
		}
	}
	t.Fatalf("no format %s", name)
	return nil
}

// native is a recording without a trace: it has no tree of waits.
func native() *Source {
	s := sample()
	s.Ledger.Waits, s.Ledger.Stories, s.Ledger.Native = nil, nil, true
	return s
}

func TestPprof(t *testing.T) {
	for name, s := range map[string]*Source{"trace": sample(), "native": native()} {
		p, err := profile.ParseData(written(t, s, "pprof"))
		if err != nil {
			t.Fatal(err)
		}
		sum, by := int64(0), map[string]int64{}
		for _, x := range p.Sample {
			sum += x.Value[0]
			by[strings.Join(x.Label["cause"], "")] += x.Value[0]
		}
		if sum != 90 || by["runnable in Go"] != 70 {
			t.Errorf("%s: %d ns, want the ledger's 90: %v", name, sum, by)
		}
		for _, f := range p.Function {
			if !utf8.ValidString(f.Name) || len(f.Name) > mostName+10 || strings.ContainsAny(f.Name, "\r\n\x00\x1b") {
				t.Errorf("%s: the name %q", name, f.Name)
			}
		}
		if p.TimeNanos != 1_700_000_000_000_000_900 || p.DurationNanos != 1100 {
			t.Errorf("%s: at %d for %d", name, p.TimeNanos, p.DurationNanos)
		}
	}
}

// A damaged tree, whose children are more than their parent, keeps the root's sum.
func TestDamagedTree(t *testing.T) {
	sum := int64(0)
	for _, w := range leaves(account.Waits{{Parent: -1, NS: 10}, {Parent: 0, Name: "a", NS: 9},
		{Parent: 0, Name: "b", NS: 9}, {Parent: 1, Name: "c", NS: 50}, {Parent: 7, Name: "d", NS: 5}}) {
		sum += w.ns
	}
	if sum != 10 {
		t.Errorf("sum %d", sum)
	}
}

func TestFolded(t *testing.T) {
	line := regexp.MustCompile(`^([^;\s][^;]*)(;[^;\s][^;]*)* (\d+)$`)
	for name, s := range map[string]*Source{"trace": sample(), "native": native()} {
		sum := 0
		for _, l := range strings.Split(strings.TrimSuffix(string(written(t, s, "folded")), "\n"), "\n") {
			m := line.FindStringSubmatch(l)
			if m == nil || strings.Count(l, ";") > 3 {
				t.Errorf("%s: %q", name, l)
				continue
			}
			n, _ := strconv.Atoi(m[len(m)-1])
			sum += n
		}
		if sum != 90 {
			t.Errorf("%s: %d ns, want the ledger's 90", name, sum)
		}
	}
}

// OTLP's own protobuf reads the JSON, but for ids: its JSON has them in hexadecimal, which is
// decoded as base64 here.
func TestOTLP(t *testing.T) {
	b := written(t, sample(), "otlp")
	if bytes.Count(b, []byte("\n")) != 1 {
		t.Error("more than one line")
	}
	var d tracepb.TracesData
	if err := protojson.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	spans := d.ResourceSpans[0].ScopeSpans[0].Spans
	ids := map[string]bool{}
	for _, s := range spans {
		id, parent := otlpID(t, s.SpanId, 8), otlpID(t, s.ParentSpanId, 8)
		if otlpID(t, s.TraceId, 16); parent != "" && !ids[parent] {
			t.Errorf("%s: has the parent %s", s.Name, parent)
		}
		if ids[id] || s.EndTimeUnixNano < s.StartTimeUnixNano || s.StartTimeUnixNano < 1_700_000_000_000_000_900 {
			t.Errorf("%s: id %s, from %d to %d", s.Name, id, s.StartTimeUnixNano, s.EndTimeUnixNano)
		}
		ids[id] = true
	}
	if len(spans) != 5 || spans[2].ParentSpanId == nil || !bytes.Equal(spans[2].ParentSpanId, spans[1].SpanId) {
		t.Errorf("%d spans; a mechanism stands below its cause", len(spans))
	}
	sum := int64(0)
	for _, e := range spans[3].Events {
		for _, a := range e.Attributes {
			if a.Key == "whystall.ns" {
				sum += a.Value.GetIntValue()
			}
		}
	}
	if sum != 100 {
		t.Errorf("the request's events sum up to %d ns of 100", sum)
	}
}

func otlpID(t *testing.T, b []byte, n int) string {
	t.Helper()
	if b == nil {
		return ""
	}
	id := base64.StdEncoding.EncodeToString(b)
	if raw, err := hex.DecodeString(id); err != nil || len(raw) != n {
		t.Errorf("the id %q", id)
	}
	return id
}

// Names are cut between characters, and stay on one line.
func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"main.f": "main.f", " a\tb\n": "a b", "\xff": "\uFFFD", "a\x00b": "a\uFFFDb", "\u202eevil": "\uFFFDevil",
		strings.Repeat("ü", 300): strings.Repeat("ü", 256) + "…", "a" +
			strings.Repeat("ü", 300): "a" + strings.Repeat("ü", 255) + "…",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
