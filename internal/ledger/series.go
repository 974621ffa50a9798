package ledger

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
)

// series adds to the series what stopped or held up the process. The kernel's records and readings
// are added where they are known to be on the trace's clock.
func (p *pass) series(r *account.Result) {
	s := &r.Series
	for i := range r.STWs {
		w := &r.STWs[i]
		s.Bands = append(s.Bands, account.Band{Kind: account.BandSTW, Begin: w.Begin, End: w.Start,
			Detail: w.Kind, Ours: w.Ours})
	}
	var marks capacity.Times
	for _, m := range p.tl.Marks() {
		end := m.End
		if end == 0 {
			end = p.tl.Now()
		}
		marks = append(marks, capacity.Span{Lo: p.tl.Abs(m.Begin), Hi: p.tl.Abs(end)})
	}
	s.Bands = append(s.Bands, capacity.Marks(marks)...)
	switch {
	case r.Kernel != nil && r.Kernel.Whole:
		capacity.AddSeries(r, p.o.Set, r.Kernel.ShiftNS)
	case r.Monotonic:
		capacity.AddSeries(r, p.o.Set, 0)
	default:
		capacity.SortBands(s.Bands)
	}
}
