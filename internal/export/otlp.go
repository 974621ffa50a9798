package export

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// writeOTLP writes one TracesData on one line: a trace of the findings, and a trace for each of the
// slowest requests.
func writeOTLP(s *Source, w io.Writer) error {
	o := otlp{s: s}
	l := s.Ledger
	o.seed = fmt.Sprint(s.Service, s.Host, s.PID, l.Begin, l.End, l.WallOffset)
	spans := o.findings()
	for i := range l.Requests.Slowest {
		spans = append(spans, o.request(i, &l.Requests.Slowest[i]))
	}
	clock := "unix"
	if !l.Wall {
		clock = "trace start" // the recording does not say when it was
	}
	about := attributes{}.text("service.name", s.service()).text("host.name",
		s.Host).number("process.pid", int64(s.PID)).text("whystall.clock", clock)
	data := otlpData{[]otlpResourceSpans{{otlpResource{about},
		[]otlpScopeSpans{{otlpScope{"whystall", s.Version}, spans}}}}}
	return json.NewEncoder(w).Encode(data)
}

type otlp struct {
	s    *Source
	seed string // of ids: the same recording gives the same
}

// id is so many bytes for what has this name.
func (o *otlp) id(n int, parts ...any) string {
	sum := sha256.Sum256(fmt.Appendln([]byte(o.seed), parts...))
	return hex.EncodeToString(sum[:n])
}

// at is a moment in nanoseconds of the epoch.
func (o *otlp) at(ns int64) string {
	if l := o.s.Ledger; l.Wall {
		ns += l.WallOffset
	}
	return strconv.FormatInt(max(0, ns), 10)
}

// findings is a span of the whole recording, below it one for each root, and below that its
// mechanisms.
func (o *otlp) findings() []otlpSpan {
	l := o.s.Ledger
	trace, top := o.id(16, "findings"), o.id(8, "findings")
	q := &l.Requests
	out := []otlpSpan{{TraceID: trace, SpanID: top, Name: "whystall findings", Kind: otlpInternal,
		Start: o.at(l.Begin), End: o.at(l.End),
		Attributes: attributes{}.number("whystall.requests", q.Count).number("whystall.slow_requests", int64(q.Slow)).
			number("whystall.p50_ns", q.P50).number("whystall.p99_ns",
			q.P99).number("whystall.max_ns", q.Max).number("whystall.findings", int64(len(o.s.Findings))),
		Events: o.ledger(l.Begin, l.Slow.Accounts, nil)}}
	for i := range o.s.Findings {
		f := &o.s.Findings[i]
		parent := top
		if f.BecauseOf != "" &&
			slices.ContainsFunc(o.s.Findings,
				func(r finding.Finding) bool { return r.Cause == f.BecauseOf && r.BecauseOf == "" }) {
			parent = o.id(8, "finding", f.BecauseOf, "")
		}
		span := otlpSpan{TraceID: trace, SpanID: o.id(8, "finding", f.Cause, f.BecauseOf),
			ParentID: parent, Name: clean(f.Cause), Kind: otlpInternal, Start: o.at(l.Begin), End: o.at(l.End),
			Attributes: attributes{}.text("whystall.cause", f.Cause).text("whystall.title",
				f.Title).text("whystall.scope", string(f.Scope)).text("whystall.confidence", string(f.Confidence)).
				share("whystall.share", f.Share).number("whystall.explains_ns",
				f.Explains.NS).number("whystall.explains_cpu_ns",
				f.Explains.CPUNS).number("whystall.explains_bytes", f.Explains.Bytes).
				text("whystall.because_of", f.BecauseOf).text("whystall.summary",
				f.Summary).list("whystall.remedy", f.Remedy).text("whystall.verify", f.Verify)}
		for _, e := range f.Evidence {
			span.Events = append(span.Events,
				otlpEvent{o.at(l.Begin), "evidence",
					attributes{}.text("whystall.text", e.Text).text("whystall.source", e.Source)})
		}
		out = append(out, span)
	}
	return out
}

func (o *otlp) request(i int, q *account.Request) otlpSpan {
	return otlpSpan{TraceID: o.id(16, "request", i, q.Begin, q.Goroutine),
		SpanID: o.id(8, "request", i, q.Begin, q.Goroutine), Name: cmp.Or(clean(q.Name), clean(q.Entry), "request"),
		Kind: otlpServer, Start: o.at(q.Begin), End: o.at(q.End),
		Attributes: attributes{}.text("code.function.name", q.Entry).number("whystall.goroutine",
			q.Goroutine).number("whystall.wall_ns", q.End-q.Begin).text("whystall.reason", q.Reason),
		Events: o.ledger(q.Begin, q.Accounts, o.s.story(q))}
}

// story is that of a request, nil if it was not told.
func (s *Source) story(q *account.Request) *account.Story {
	for _, x := range s.Ledger.Stories {
		if x.Begin == q.Begin && x.End == q.End && x.Actor == q.Goroutine {
			return x
		}
	}
	return nil
}

// mostEvents bounds the events of a span: the column of slow requests may have thousands of
// accounts. What is beyond is one event.
const mostEvents = 100

// ledger is accounts as events. The moment of each is the start of its longest stretch in the
// story, or that of the span without one.
func (o *otlp) ledger(begin int64, accounts []account.Account, story *account.Story) (out []otlpEvent) {
	var rest int64
	for i := range accounts {
		a := &accounts[i]
		if len(out) == mostEvents {
			rest += a.NS
			continue
		}
		out = append(out, otlpEvent{o.at(longest(story, a, begin)), clean(string(a.Leaf)),
			attributes{}.number("whystall.ns", a.NS).text("whystall.class", string(a.Class)).
				text("whystall.actor", a.Actor).text("whystall.site", a.Site).text("whystall.detail",
				a.Detail).text("whystall.holder", a.Holder)})
	}
	if rest > 0 {
		out = append(out, otlpEvent{o.at(begin), "others", attributes{}.number("whystall.ns", rest)})
	}
	return out
}

func longest(s *account.Story, a *account.Account, begin int64) int64 {
	if s == nil {
		return begin
	}
	var most int64
	for i := range s.Chain {
		l := &s.Chain[i]
		if l.Leaf == a.Leaf && l.Class == a.Class && s.Names[l.Site] == a.Site && l.End-l.Begin > most {
			begin, most = l.Begin, l.End-l.Begin
		}
	}
	return begin
}
