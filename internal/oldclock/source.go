package oldclock

import (
	"iter"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/timeline"
)

// On is src on CLOCK_MONOTONIC, with the threads that made its events. Where a thread is not known
// it stays so.
func (r *Match) On(src timeline.Source) timeline.Source { return &Source{src, r} }

// Source is a trace that was put on the kernel's clock.
type Source struct {
	timeline.Source
	match *Match
}

// Clock says that the clock is the kernel's now. There is no wall clock in these formats.
func (s *Source) Clock() exectrace.Clock { return exectrace.Clock{Monotonic: true} }

// Gaps are the trace's, on its new clock.
func (s *Source) Gaps() []exectrace.Gap {
	l := append([]exectrace.Gap(nil), s.Source.Gaps()...)
	for i := range l {
		l[i].Begin, l[i].End = s.time(l[i].Begin), s.time(l[i].End)
	}
	return l
}

func (s *Source) time(t exectrace.Time) exectrace.Time {
	return exectrace.Time(s.match.Mono(int64(t)))
}

// Blocks changes the events in place: a block is its reader's own.
func (s *Source) Blocks() iter.Seq[[]exectrace.Event] {
	return func(yield func([]exectrace.Event) bool) {
		var h holder
		var threads []exectrace.ThreadID // by machine
		for block := range s.Source.Blocks() {
			for i := range block {
				ev := &block[i]
				ev.Time = s.time(ev.Time)
				if ev.Kind == exectrace.KindGap {
					h.forget()
					ev.Arg[0], ev.Arg[1] = uint64(s.time(exectrace.Time(ev.Arg[0]))),
						uint64(s.time(exectrace.Time(ev.Arg[1])))
					continue
				}
				m := h.event(ev)
				for len(threads) < len(h.list) {
					threads = append(threads, s.thread(h.list[len(threads)]))
				}
				if m >= 0 {
					ev.M = threads[m]
				}
			}
			if !yield(block) {
				return
			}
		}
	}
}

// thread is the thread that the runtime has a number for.
func (s *Source) thread(number uint64) exectrace.ThreadID {
	if tid := s.match.Threads[number]; tid != 0 {
		return exectrace.ThreadID(tid)
	}
	return exectrace.NoThread
}
