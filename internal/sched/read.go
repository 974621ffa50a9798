package sched

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// Options bound what a Timeline keeps. The zero value is right for most.
type Options struct {
	Bytes int // of columns; 0: 256 MiB
}

// New reads a stream whole, with the default bounds.
func New(src kernel.Source) (*Timeline, error) { return NewWith(src, Options{}) }

// NewWith reads a stream whole. An error is the source's; what the source gave before it is lost.
//
// The states of threads follow from the records in this way:
//  1. A thread that leaves its CPU is throttled if the record says so, queued if it could have run
//     on, else blocked.
//  2. A waking ends blocked. The thread is queued until it comes to a CPU.
//  3. Throttled ends with the last unthrottling of its CPU before the thread comes back. It is
//     queued from there on.
//  4. The thread that leaves a CPU must be the one that came last. If it is not, records are
//     missing: the one that leaves came at an unknown moment, and the one that came last left at
//     one. Both are unknown for that long.
//  5. Before a thread's first record nothing is known of it, except that one which leaves was
//     there.
//
// When all records are read, losses are cut out, and what only later records say is added
// (finish.go).
func NewWith(src kernel.Source, o Options) (*Timeline, error) {
	k := &Timeline{src: src}
	k.header = src.Header()
	b := builder{columns: &k.columns, limit: o.Bytes}
	if b.limit <= 0 {
		b.limit = 256 << 20
	}
	b.placed = k.header.Source == "bpf" && !slices.Contains(k.header.Recorded, kernel.SightRunQueues)
	for _, c := range k.header.CPUs {
		b.cpu(c)
	}
	err := src.Each(func(recs []kernel.Record) error {
		for i := range recs {
			b.record(&recs[i])
		}
		b.trim()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the kernel's records: %w", err)
	}
	b.finish(src)
	return k, nil
}

// record takes one record. This is the hot path: some 100 ns for each of millions of records,
// nearly all of them switches and wakings, without an allocation but for the columns' growth.
func (b *builder) record(r *kernel.Record) {
	t := clampTime(r.Time)
	if !b.started {
		b.started, b.begin, b.end, b.now = true, t, t, t
	}
	// Sources promise order. If one breaks its promise, the later time holds.
	t = max(t, b.now)
	b.now, b.end = t, t
	switch r.Kind {
	case kernel.Switch:
		b.switched(r, t)
	case kernel.Waking:
		b.waking(r, t)
	case kernel.Wakeup:
		b.wakeup(r, t)
	case kernel.WaitStack:
		b.stack(r)
	case kernel.Unthrottle:
		if c := b.cpu(int(r.CPU)); c != nil {
			c.mark = t
		}
		b.event(r, t)
	case kernel.Clone:
		b.clone(r, t)
	case kernel.File:
		b.file(r)
	case kernel.Exit:
		b.exit(r, t)
	case kernel.Signal:
		if th := b.find(r.Other); th != nil {
			th.signalled, th.signaller = t, r.TID
		}
		b.event(r, t)
	case kernel.Lost:
		b.lost(r, t)
	case kernel.Held:
		b.held(r, t)
	case kernel.Detail:
		b.fold = r.Arg[0] > 0 && r.Arg[1] != 1 && b.header.Source != "perf"
		if len(b.levels) < 1<<16 {
			b.levels = append(b.levels, Level{t, int(min(r.Arg[0], 1<<20)), b.fold, r.Arg[2]})
		}
	case kernel.None:
	default:
		b.event(r, t)
	}
}
