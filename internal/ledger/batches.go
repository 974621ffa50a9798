package ledger

import (
	"context"
	"iter"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/request"
)

// batcher is a source that also gives its events packed as records.
type batcher interface {
	Batches() iter.Seq[*exectrace.Batch]
}

// batches is the pass over a trace without kernel records beside it. It does what run does with
// each event, and takes records where they say all. seen gets each batch's first time and number of
// events, and then its last time with 0.
func (p *pass) batches(ctx context.Context, src batcher, f *request.Finder,
	seen func(at exectrace.Time, events int)) error {
	tl := p.tl
	var roster exectrace.Roster
	for b := range src.Batches() {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := len(b.Records)
		if n == 0 {
			continue
		}
		roster.Begin(b)
		seen(b.Records[0].Time, n)
		for i := range b.Records {
			r := &b.Records[i]
			if r.Op == exectrace.OpOther {
				ev := &b.Other[r.Arg]
				roster.Other(ev)
				if acts := f.Event(ev); len(acts) > 0 {
					p.ended(ev.Time, acts)
				}
				tl.Apply(ev)
			} else {
				g, on := roster.Of(r)
				if tellingOps>>r.Op&1 != 0 {
					if acts := f.Record(r, g, on); len(acts) > 0 {
						p.ended(r.Time, acts)
					}
				}
				if !tl.Record(r, g, on) {
					ev := r.Event(g, on)
					tl.Apply(&ev)
				}
			}
			if tl.Woken.Lock {
				p.locks.woken(&tl.Woken)
			}
		}
		seen(b.Records[n-1].Time, 0)
	}
	return nil
}

// tellingOps are the records that the finder may need.
const tellingOps = uint32(1)<<exectrace.OpWake | 1<<exectrace.OpBlock | 1<<exectrace.OpSyscall | 1<<exectrace.OpSyscallEnd |
	1<<exectrace.OpCreate | 1<<exectrace.OpEnd | 1<<exectrace.OpRegionBegin | 1<<exectrace.OpRegionEnd

// ended takes activations that ended, before the event that ends them is applied.
func (p *pass) ended(at exectrace.Time, acts []request.Activation) {
	p.tl.Advance(at)
	for i := range acts {
		p.activation(&acts[i])
	}
}
