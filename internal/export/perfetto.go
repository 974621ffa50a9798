package export

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// writePerfetto writes a trace of tracks, the answer first: findings, the slowest requests, what
// stopped the process, all requests, then goroutines, Ps, threads, CPUs and what is counted.
func writePerfetto(s *Source, w io.Writer) error {
	l := s.Ledger
	p := &perfetto{s: s, l: l}
	p.top = p.track(track{name: "whystall: " + s.service()})
	p.findings()
	p.stories()
	p.pauses()
	p.requests()
	p.lanes()
	p.counters()
	c := clocks{id: clockBoottime, at: l.Begin, wall: l.Wall, offset: l.WallOffset}
	if l.Monotonic {
		c.id = clockMonotonic
	}
	return p.write(w, c)
}

type perfetto struct {
	packets
	s   *Source
	l   *account.Result
	top uint64
}

// group is a track that others stand below.
func (p *perfetto) group(name string) uint64 { return p.track(track{parent: p.top, name: name}) }

func (p *perfetto) findings() {
	q := &p.l.Requests
	wall, _ := p.s.slow()
	p.slice(p.top, p.l.Begin, p.l.End, 0, "recording", note{name: "requests", number: q.Count}, note{name: "slow requests", number: int64(q.Slow)}, note{name: "slow requests' time ns", number: wall},
		note{name: "p50 ns", number: q.P50}, note{name: "p99 ns", number: q.P99}, note{name: "max ns", number: q.Max}, note{name: "no requests", text: text(q.NoRequestsCause)},
		note{name: "requests not shown", number: p.l.Series.NotShown})
	for i := range p.s.Findings {
		f := &p.s.Findings[i]
		at := p.track(track{parent: p.top, name: "finding: " + clean(f.Cause)})
		p.slice(at, p.l.Begin, p.l.End, 0, clean(f.Title), findingNotes(f)...)
	}
}

func findingNotes(f *finding.Finding) []note {
	ns := []note{
		{name: "cause", text: clean(f.Cause)}, {name: "confidence", text: clean(string(f.Confidence))}, {name: "scope", text: clean(string(f.Scope))}, {name: "share", share: f.Share},
		{name: "explains ns", number: f.Explains.NS}, {name: "explains CPU ns", number: f.Explains.CPUNS}, {name: "explains bytes", number: f.Explains.Bytes},
		{name: "because of", text: clean(f.BecauseOf)}, {name: "summary", text: text(f.Summary)},
	}
	var proofs, remedy []string
	for _, e := range f.Evidence {
		proofs = append(proofs, text(e.Text+" ("+e.Source+")"))
	}
	for _, r := range f.Remedy {
		remedy = append(remedy, text(r))
	}
	return append(ns, note{name: "evidence", list: proofs}, note{name: "remedy", list: remedy}, note{name: "verify", text: text(f.Verify)})
}

// pauses is what stopped or held up the whole process.
func (p *perfetto) pauses() {
	bands := map[account.BandKind][]stretch{}
	var kinds []account.BandKind
	for _, b := range p.l.Series.Bands {
		if bands[b.Kind] == nil {
			kinds = append(kinds, b.Kind)
		}
		x := stretch{begin: b.Begin, end: b.End, name: cmp.Or(clean(b.Detail), string(b.Kind))}
		if b.Ours {
			x.notes = []note{{name: "by", text: "the recording itself"}}
		}
		bands[b.Kind] = append(bands[b.Kind], x)
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		p.packed(p.top, clean(string(kind)), bands[kind])
	}
	var stws, barriers []stretch
	for i := range p.l.STWs {
		x := &p.l.STWs[i]
		stws = append(stws, stretch{begin: x.Begin, end: x.End, name: cmp.Or(clean(x.Kind), "stop-the-world"), notes: []note{
			{name: "goroutine", number: x.Goroutine}, {name: "initiator", text: clean(x.Initiator)}, {name: "site", text: clean(x.Site)}, {name: "awaited", text: clean(x.Awaited)},
			{name: "stopped ns", number: x.Start - x.Begin}, {name: "slow requests lost ns", number: x.SlowNS}, {name: "slow requests", number: int64(x.SlowRequests)}}})
	}
	p.packed(p.top, "stop-the-world of 100 us and more", stws)
	if k := p.l.Kernel; k != nil && k.Joined {
		for i := range k.Barriers {
			x := &k.Barriers[i]
			notes := []note{{name: "initiator", number: int64(x.Initiator)}, {name: "awaited", number: int64(x.Awaited)}, {name: "grade", text: clean(string(x.Grade))}}
			for _, leaf := range x.Leaves {
				notes = append(notes, note{name: clean(string(leaf.Kind)) + " ns", number: leaf.NS})
			}
			var hops []string
			for _, h := range x.Hops {
				hops = append(hops, text(h))
			}
			barriers = append(barriers, stretch{begin: x.Begin - k.ShiftNS, end: x.End - k.ShiftNS, name: clean(x.Kind), notes: append(notes, note{name: "hops", list: hops})})
		}
		p.packed(p.top, "pause, hop by hop", barriers)
	}
}

// requests is every request that the series has, those of one entry together.
func (p *perfetto) requests() {
	s := &p.l.Series
	if len(s.Dots) == 0 {
		return
	}
	name := "all requests"
	if !s.Whole {
		name = "slow requests of all"
	}
	group := p.group(name)
	by := make([][]stretch, len(s.Entries))
	for i := range s.Dots {
		d := &s.Dots[i]
		x := stretch{begin: d.Begin, end: d.Begin + d.NS, name: "request", notes: []note{{name: "actor", number: d.Actor}}}
		if d.Slow {
			x.name = "slow request"
		}
		if d.Largest < len(s.Largest) {
			n := &s.Largest[d.Largest]
			x.notes = append(x.notes, note{name: "largest part", text: clean(string(n.Leaf))}, note{name: "of", text: clean(n.Actor)}, note{name: "at", text: clean(n.Site)})
		}
		by[d.Entry] = append(by[d.Entry], x)
	}
	for i, l := range by {
		p.packed(group, cmp.Or(clean(s.Entries[i]), "?"), l)
	}
}

// stretch is what goes on the next free track of a name.
type stretch struct {
	begin, end int64
	name       string
	notes      []note
}

// mostSide is how many tracks stand side by side for stretches that overlap. Perfetto shows tracks
// of one name as one.
const mostSide = 200

func (p *perfetto) packed(parent uint64, name string, l []stretch) {
	slices.SortStableFunc(l, func(a, b stretch) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end)) })
	type lane struct {
		id  uint64
		end int64
	}
	var lanes []lane
	for _, x := range l {
		if x.end <= x.begin {
			continue
		}
		i := slices.IndexFunc(lanes, func(l lane) bool { return l.end <= x.begin })
		if i < 0 {
			if len(lanes) == mostSide {
				continue
			}
			i = len(lanes)
			lanes = append(lanes, lane{id: p.track(track{parent: parent, name: name})})
		}
		lanes[i].end = x.end
		p.slice(lanes[i].id, x.begin, x.end, 0, x.name, x.notes...)
	}
}

// counters is what is known over time: shares of time between two readings, numbers, bytes.
func (p *perfetto) counters() {
	count := func(id uint64, at int64, v float64) {
		p.events = append(p.events, event{at: at, mark: markCounter, track: id, value: v})
	}
	for _, c := range p.l.Curves {
		unit := unitCount
		if c.Kind.Bytes() {
			unit = unitBytes
		}
		id := p.track(track{parent: p.top, name: clean(string(c.Kind)), unit: unit})
		for _, x := range c.Points {
			count(id, x.At, x.Value)
		}
	}
	for _, v := range p.l.Series.Levels {
		id := p.track(track{parent: p.top, name: clean(v.Stream), unit: unitCount, unitName: "%"})
		for _, x := range v.Points {
			count(id, x.Begin, 100*x.Share)
		}
		if n := len(v.Points); n > 0 {
			count(id, v.Points[n-1].End, 0)
		}
	}
	if d := &p.l.Series.Density; len(d.Cells) > 0 {
		id := p.track(track{parent: p.top, name: fmt.Sprintf("requests started, each %s", finding.Duration(d.Width)), unit: unitCount})
		for i := 0; i < len(d.Cells); {
			at, n := d.Cells[i].Column, int64(0)
			for ; i < len(d.Cells) && d.Cells[i].Column == at; i++ {
				n += d.Cells[i].N
			}
			count(id, d.Begin+int64(at)*d.Width, float64(n))
			if i == len(d.Cells) || d.Cells[i].Column > at+1 {
				count(id, d.Begin+int64(at+1)*d.Width, 0)
			}
		}
	}
}
