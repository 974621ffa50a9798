package export

import (
	"fmt"
	"io"
	"slices"

	"github.com/google/pprof/profile"
)

// writePprof writes a profile of waiting time. The cause is the outermost frame of each stack, and
// a label for those who filter.
func writePprof(s *Source, w io.Writer) error {
	l := s.Ledger
	m := &profile.Mapping{ID: 1, File: s.service(), HasFunctions: true}
	kind := &profile.ValueType{Type: "wait", Unit: "nanoseconds"}
	p := &profile.Profile{SampleType: []*profile.ValueType{kind}, PeriodType: kind, Period: 1,
		Mapping: []*profile.Mapping{m}, DurationNanos: l.End - l.Begin}
	if l.Wall {
		p.TimeNanos = l.Begin + l.WallOffset
	}
	wall, own := s.slow()
	p.Comments = []string{fmt.Sprintf("whystall: time that %d slow requests waited; they took %d ns, of which %d ns they were on CPUs themselves", l.Slow.Requests, wall, own)}
	at := map[string]*profile.Location{}
	for _, x := range s.waits() {
		sample := &profile.Sample{Value: []int64{x.ns}}
		if x.leaf != "" {
			sample.Label = map[string][]string{"cause": {clean(string(x.leaf))}}
		}
		for _, name := range slices.Backward(x.frames) {
			loc := at[name]
			if loc == nil {
				id := uint64(len(p.Function) + 1)
				fn := &profile.Function{ID: id, Name: name, SystemName: name}
				loc = &profile.Location{ID: id, Mapping: m, Line: []profile.Line{{Function: fn}}}
				p.Function, p.Location, at[name] = append(p.Function, fn), append(p.Location, loc), loc
			}
			sample.Location = append(sample.Location, loc)
		}
		p.Sample = append(p.Sample, sample)
	}
	if err := p.CheckValid(); err != nil {
		return fmt.Errorf("make profile: %w", err)
	}
	return p.Write(w)
}
