package ledger

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/oldclock"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
)

// onKernelClock puts a trace before Go 1.22 on the kernel's clock, where the two match.
func onKernelClock(src timeline.Source, k *sched.Timeline) (timeline.Source, *account.OldClock) {
	if k == nil || namesThreads(src) {
		return src, nil
	}
	m := oldclock.Find(src, k)
	c := &account.OldClock{
		Refused: string(m.Why), ErrorNS: m.Error, DriftPPM: m.Drift * 1e6,
		Marks: m.Marks, Missed: m.Missed, RandomMissed: m.Random, Threads: len(m.Threads),
	}
	if m.Why == "" {
		src = m.On(src)
	}
	return src, c
}

// namesThreads reports whether src's events have threads: by their format, or as found.
func namesThreads(src timeline.Source) bool {
	_, found := src.(*oldclock.Source)
	return found || src.Version() >= 22
}
