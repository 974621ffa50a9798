package sched

import "sort"

// Lives knows when threads were made, by whom, and when they ended.
type Lives struct {
	Of   map[uint32][]Life  // by thread, in order of time; only those with a birth or an exit
	made map[uint32][]int64 // by maker: when it made threads, in order
}

// NewLives lists the lives of the target's threads.
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

// Made is when thread tid made others, in order of time.
func (l *Lives) Made(tid uint32) []int64 { return l.made[tid] }

// madeNS is how long, in time on its CPU, a maker is still in the call after it made a thread.
const madeNS = 20e3

// Making reports whether a wait in the run queue is part of making a thread: the new thread's wait
// for its first run, or its maker's, if the new thread took the CPU before the maker was back from
// clone.
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

// endsNS is the most CPU time that a thread needs to end after it has given its stack back.
const endsNS = 200e3

// Ends reports whether all that tid did after a time was to end.
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
