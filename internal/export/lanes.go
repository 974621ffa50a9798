package export

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// stories puts each of the slowest requests on a track of its own, with where its time went below
// it.
func (p *perfetto) stories() {
	if len(p.l.Requests.Slowest) == 0 {
		return
	}
	group := p.group("slowest requests, and where their time went")
	for i := range p.l.Requests.Slowest {
		q := &p.l.Requests.Slowest[i]
		name := cmp.Or(clean(q.Name), clean(q.Entry), "request")
		id := p.track(track{parent: group, name: fmt.Sprintf("%d: %s, %s", i+1, name, finding.Duration(q.End-q.Begin))})
		notes := []note{{name: "entry", text: clean(q.Entry)},
			{name: "goroutine", number: q.Goroutine}, {name: "reason", text: text(q.Reason)}}
		for j := range q.Accounts[:min(len(q.Accounts), mostEvents)] {
			a := &q.Accounts[j]
			notes = append(notes,
				note{name: clean(account.Words(account.Named{Class: a.Class, Leaf: a.Leaf,
					Actor: a.Actor, Site: a.Site, Detail: a.Detail, Holder: a.Holder}, clean)) + " ns", number: a.NS})
		}
		p.slice(id, q.Begin, q.End, 0, name, notes...)
		if s := p.s.story(q); s != nil {
			p.chain(id, s)
		}
	}
}

// chain is where a request's time went.
func (p *perfetto) chain(id uint64, s *account.Story) {
	t := stackTexts(s)
	for i := range s.Chain {
		l := &s.Chain[i]
		notes := []note{{name: "class", text: clean(string(l.Class))},
			{name: "awaited at", text: clean(s.Names[l.Site])}, {name: "detail", text: clean(s.Names[l.Detail])},
			{name: "waits followed", number: int64(l.Depth)}, {name: "stack", text: t[l.Stack]},
			{name: "short ones joined", number: int64(l.Several)}}
		if l.Lane >= 0 && l.Lane < len(s.Lanes) {
			notes = append(notes, note{name: "of", text: laneName(&s.Lanes[l.Lane])})
		}
		p.slice(id, l.Begin, l.End, 1, clean(string(l.Leaf)), notes...)
	}
}

// stackTexts are a story's stacks, a frame a line.
func stackTexts(s *account.Story) []string {
	out := make([]string, len(s.Stacks))
	for i, frames := range s.Stacks {
		var b strings.Builder
		for _, f := range frames {
			b.WriteString(clean(f.Func))
			if f.Line > 0 {
				fmt.Fprintf(&b, " %s:%d", clean(f.File), f.Line)
			}
			b.WriteByte('\n')
		}
		out[i] = text(b.String())
	}
	return out
}

func laneName(l *account.Lane) string {
	return clean(strings.TrimSpace(fmt.Sprintf("%s %d %s", l.Kind, l.ID, l.Name)))
}

// laneKey is one goroutine, thread, CPU or P, whichever stories met it.
type laneKey struct {
	kind account.LaneKind
	id   int64
}

// told is a lane of all stories together.
type told struct {
	name     string
	occupied bool // a P or a CPU: a span is named after who had it
	id       uint64
	spans    []toldSpan // in order, without overlaps
}

type toldSpan struct {
	account.Span
	story  *account.Story
	stacks []string
	ends   uint64 // a flow that ends at its start
}

// lanes joins the lanes of all stories. Two stories that ran at once tell the same of a goroutine:
// the slower request's stands.
func (p *perfetto) lanes() {
	all := map[laneKey]*told{}
	for _, s := range p.l.Stories {
		t := stackTexts(s)
		for i := range s.Lanes {
			l := &s.Lanes[i]
			key := laneKey{l.Kind, l.ID}
			x := all[key]
			if x == nil {
				x = &told{name: laneName(l), occupied: l.Kind == account.LaneP || l.Kind == account.LaneCPU}
				all[key] = x
			}
			x.add(l.Spans, s, t)
		}
	}
	for _, kind := range []struct {
		kind account.LaneKind
		name string
	}{
		{account.LaneGoroutine, "goroutines of the slowest requests"},
		{account.LaneP, "Ps meanwhile, by who held them"},
		{account.LaneThread, "threads of these goroutines"}, {account.LaneCPU, "CPUs of these threads"},
	} {
		var ids []int64
		for key := range all {
			if key.kind == kind.kind {
				ids = append(ids, key.id)
			}
		}
		if len(ids) == 0 {
			continue
		}
		slices.Sort(ids)
		group := p.group(kind.name)
		for _, id := range ids {
			x := all[laneKey{kind.kind, id}]
			x.id = p.track(track{parent: group, name: x.name})
		}
	}
	p.wakes(all)
	for _, t := range p.tracks { // in the order of the tracks: the same file each time
		for _, x := range all {
			if x.id == t.id {
				p.told(x)
			}
		}
	}
}

// add puts spans where there are none yet.
func (t *told) add(l []account.Span, s *account.Story, stacks []string) {
	for _, x := range t.outside(l) {
		t.spans = append(t.spans, toldSpan{Span: x, story: s, stacks: stacks})
	}
	slices.SortFunc(t.spans, func(a, b toldSpan) int { return cmp.Compare(a.Begin, b.Begin) })
}

// outside is the parts of spans during which there is none yet. Who woke it is known only of a part
// that has the moment.
func (t *told) outside(l []account.Span) (out []account.Span) {
	n := 0
	for _, x := range l {
		for n < len(t.spans) && t.spans[n].End <= x.Begin {
			n++
		}
		whole, newborn := x, x.State == account.LeafRunnable
		for j := n; x.Begin < x.End; j++ {
			part := x
			if j < len(t.spans) {
				part.End = min(x.End, t.spans[j].Begin)
			}
			if newborn && part.Begin != whole.Begin || !newborn && part.End != whole.End {
				part.ByKind = ""
			}
			if part.Begin < part.End {
				out = append(out, part)
			}
			if j == len(t.spans) {
				break
			}
			x.Begin = max(x.Begin, t.spans[j].End)
		}
	}
	return out
}

// wakes draws who woke whom: from a moment on the waker's track to the next state of the woken.
func (p *perfetto) wakes(all map[laneKey]*told) {
	var list []*told
	for _, x := range all {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b *told) int { return cmp.Compare(a.id, b.id) })
	for _, t := range list {
		for i := range t.spans {
			x := &t.spans[i]
			waker := all[laneKey{x.ByKind, x.ByID}]
			if x.ByKind == "" || waker == nil || x.Several > 0 {
				continue
			}
			at, woken := x.Begin, x
			if x.State != account.LeafRunnable {
				if i+1 == len(t.spans) || t.spans[i+1].Begin != x.End {
					continue
				}
				at, woken = x.End, &t.spans[i+1]
			}
			if woken.ends != 0 {
				continue
			}
			p.flows++
			woken.ends = base + p.flows
			p.events = append(p.events, event{at: at, mark: markInstant, track: waker.id,
				name: "wakes " + t.name, flow: woken.ends})
		}
	}
}

func (p *perfetto) told(t *told) {
	for i := range t.spans {
		x := &t.spans[i]
		s := x.story
		name, detail := clean(string(x.State)), clean(s.Names[x.Detail])
		if t.occupied && detail != "" {
			name, detail = detail, name
		}
		at := p.slice(t.id, x.Begin, x.End, 0, name, note{name: "detail", text: detail},
			note{name: "ended by", text: clean(s.Names[x.By])}, note{name: "on", text: clean(s.Names[x.On])},
			note{name: "stack", text: x.stacks[x.Stack]}, note{name: "short ones joined", number: int64(x.Several)})
		if at >= 0 {
			p.events[at].ends = x.ends
		}
	}
}
