package timeline

// SilenceNS is how long no thread may say anything, while a goroutine is runnable, before it is a
// silence.
const SilenceNS = 20e6

// Silence is a stretch without an event of any thread while a goroutine was runnable.
type Silence struct {
	Begin, End int64
	Few        bool // fewer goroutines ran than there were Ps: Go would have run one
}

func (s Silence) span() (begin, end int64) { return s.Begin, s.End }

// SilenceSum adds up silences.
type SilenceSum struct {
	N, NS, FewNS, Max int64
}

// silences are those so far.
type silences struct {
	Silences []Silence
	Silence  SilenceSum
}

// maxSilences bounds the list. At 20 ms a silence these are 22 minutes of them.
const maxSilences = 1 << 16

func (l *silences) silent(s Silence) {
	ns := s.End - s.Begin
	l.Silence.N++
	l.Silence.NS += ns
	l.Silence.Max = max(l.Silence.Max, ns)
	if s.Few {
		l.Silence.FewNS += ns
	}
	if len(l.Silences) >= maxSilences {
		l.Silences = append(l.Silences[:0], l.Silences[maxSilences/2:]...)
	}
	l.Silences = append(l.Silences, s)
}

// SilenceIn is how much of [s,e) was silence.
func (l *silences) SilenceIn(s, e int64) int64 {
	if n := len(l.Silences); n == 0 || l.Silences[n-1].End <= s {
		return 0
	}
	return overlapNS(l.Silences, s, e, e)
}

// LongCallNS is longer than a read or write of a socket stays on a CPU: the kernel copies some 100
// KB or finds nothing to do. [Healthy servers: 10 us on average, 0-5 % of the time in calls this
// long; beside CPU hogs 12-84 %.]
const LongCallNS = 2e6

// shortCallNS stands for calls whose end the trace does not record. Formats before 1.22 have the
// end only of a call that lost its P, and some of those end within this time.
const shortCallNS = 10e3

// Moments adds up events that take microseconds when threads get a CPU. Long are those that took
// LongCallNS or more.
type Moments struct{ N, NS, Long, LongNS int64 }

func (m *Moments) add(ns int64) {
	m.N++
	m.NS += ns
	if ns >= LongCallNS {
		m.Long++
		m.LongNS += ns
	}
}
