package sched

import (
	"sort"
)

// Lives knows when threads were made, by whom, and when they ended.
type Lives struct {
	Of   map[uint32][]Life  // by thread, in order
	made map[uint32][]int64 // by maker: when it made one, in order
}

func NewLives(k *Timeline) *Lives {
	l := &Lives{Of: map[uint32][]Life{}, made: map[uint32][]int64{}}
	for _, t := range k.Threads() {
		if t.Birth == 0 && t.Exit == 0 {
			continue
		}
		l.Of[t.TID] = append(l.Of[t.TID], t)
		if t.Maker != 0 {
			l.made[t.Maker] = append(l.made[t.Maker], t.Birth)
		}
	}
	for _, m := range l.made {
		sort.Slice(m, func(i, j int) bool { return m[i] < m[j] })
	}
	return l
}

// madeNS is how long after it made a thread, with its CPU, a maker is still in the call.
const madeNS = 20e3

// Making tells of a time in the run queue that it belongs to the making of a thread: the new one's, until it first runs, or that of its maker, which the
// new one put off its CPU before it was back from the call.
func (l *Lives) Making(tid uint32, s *Stretch) bool {
	if s.Doing != Queued {
		return false
	}
	begin := s.Whole.Begin
	for _, t := range l.Of[tid] {
		if t.Birth != 0 && begin >= t.Birth && (t.First == 0 || begin < t.First) {
			return true
		}
	}
	m := l.made[tid]
	i := sort.Search(len(m), func(i int) bool { return m[i] > begin }) - 1
	return s.Preempted && i >= 0 && begin-m[i] < madeNS
}

// endsNS is the most CPU time that the end of a thread takes after it has given its stack back.
const endsNS = 200e3

// Ends tells whether all that tid did after at was to end.
func (l *Lives) Ends(k *Timeline, tid uint32, at int64) bool {
	for _, t := range l.Of[tid] {
		if t.Exit < at || t.Exit-at > 1e9 {
			continue
		}
		var on int64
		for _, s := range k.Stretches(tid, at, t.Exit, nil) {
			if s.Doing == OnCPU {
				on += s.End - s.Begin
			}
		}
		return on <= endsNS
	}
	return false
}
