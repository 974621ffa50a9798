package sched

import (
	"sort"
	"sync"
)

// ProcessState is what the target as a whole does at an instant: the first of ProcessOn,
// ProcessUnknown, ProcessThrottled, ProcessQueued that holds for some thread, else one of the
// others.
type ProcessState uint8

const (
	ProcessUnknown   ProcessState = iota // a thread may be on a CPU or want one, nobody knows
	ProcessOn                            // some thread is on a CPU
	ProcessThrottled                     // none is on a CPU, and one is throttled
	ProcessQueued                        // none is on a CPU or throttled, and one is queued
	ProcessNone                          // none wants a CPU
	ProcessStopped                       // none wants a CPU, and more are stopped, by a signal or for a tracer, than sleep
)

// ProcessTile is the target as a whole in one state.
type ProcessTile struct {
	Begin, End int64
	State      ProcessState
	TID        uint32 // ProcessThrottled, ProcessQueued: the thread that has been so longest; else 0
}

// processIndex is the target as a whole, by time.
type processIndex struct {
	once     sync.Once
	runs     []processRun
	runnable runnable
}

// processRun is a tile without its end.
type processRun struct {
	begin int64
	tid   uint32
	state ProcessState
}

// runnable is how many threads were on a CPU or queued, over all time.
type runnable struct {
	ns   int64 // sum over threads
	most int
	hist []int64 // ns by number; the last is for all numbers from there on
}

// maxRunnable is the last number in runnable.hist.
const maxRunnable = 1024

// Process appends tiles of the whole target in [lo,hi) to dst, oldest first. They tile it exactly.
func (k *Timeline) Process(lo, hi int64, dst []ProcessTile) []ProcessTile {
	lo, hi = clampTime(lo), clampTime(hi)
	k.process.once.Do(k.sweep)
	at := lo
	if to := min(hi, k.begin); at < to {
		dst = append(dst, ProcessTile{Begin: at, End: to})
		at = to
	}
	l := k.process.runs
	for i := max(sort.Search(len(l), func(i int) bool { return l[i].begin > at })-1, 0); i < len(l) && at < hi; i++ {
		end := k.end
		if i+1 < len(l) {
			end = l[i+1].begin
		}
		if end = min(end, hi); end > at {
			dst = append(dst, ProcessTile{at, end, l[i].state, l[i].tid})
			at = end
		}
	}
	if at < hi {
		dst = append(dst, ProcessTile{Begin: at, End: hi})
	}
	return dst
}

// Runnable is how many threads of the target were on a CPU or queued: the average over time, the
// most, and how many ns each number lasted (the last: that number and above).
func (k *Timeline) Runnable() (avg float64, most int, byNumber []int64) {
	k.process.once.Do(k.sweep)
	if d := k.end - k.begin; d > 0 {
		avg = float64(k.process.runnable.ns) / float64(d)
	}
	return avg, k.process.runnable.most, k.process.runnable.hist
}

// edge is the start of a segment.
type edge struct {
	at  int64 // from k.begin
	th  int32
	seg int32
}

// sweep lays the threads' segments over one another.
//  1. The starts of all segments are sorted by time.
//  2. At each instant at which some start, the counts of threads by state change.
//  3. The counts decide the state of the whole. For a throttled or queued target the thread in that
//     state longest is kept, by a list of the threads that came to it.
func (k *Timeline) sweep() {
	n := 0
	for i := range k.threads {
		n += len(k.threads[i].segs)
	}
	edges := make([]edge, 0, n)
	for i := range k.threads {
		for j := range k.threads[i].segs {
			edges = append(edges, edge{max(k.threads[i].segs[j].begin-k.begin, 0), int32(i), int32(j)})
		}
	}
	edges = sortEdges(edges)

	var count [Gone + 3]int // of threads by state, see countAs
	var queue, throttled waiters
	k.process.runnable.hist = make([]int64, maxRunnable+1)
	last := int64(0)
	total := func(to int64) {
		if d := to - last; d > 0 {
			r := count[OnCPU] + count[Queued]
			k.process.runnable.ns += int64(r) * d
			k.process.runnable.most = max(k.process.runnable.most, r)
			k.process.runnable.hist[min(r, maxRunnable)] += d
			last = to
		}
	}
	for i := 0; i < len(edges); {
		at := edges[i].at
		total(at)
		for ; i < len(edges) && edges[i].at == at; i++ {
			e := edges[i]
			th := &k.threads[e.th]
			from, d := Gone, th.segs[e.seg].countAs(th)
			if e.seg > 0 {
				from = th.segs[e.seg-1].countAs(th)
				count[from]--
			}
			count[d]++
			if d == Queued && from != Queued {
				queue.add(e.th, e.seg)
			}
			if d == Throttled && from != Throttled {
				throttled.add(e.th, e.seg)
			}
		}
		r := processRun{begin: k.begin + at}
		switch {
		case count[OnCPU] > 0:
			r.state = ProcessOn
		case count[Unknown] > 0:
			r.state = ProcessUnknown
		case count[Throttled] > 0:
			r.state, r.tid = ProcessThrottled, throttled.first(k, Throttled, r.begin)
		case count[Queued] > 0:
			r.state, r.tid = ProcessQueued, queue.first(k, Queued, r.begin)
		case count[countAway] > 0:
			r.state = ProcessUnknown
		case count[countStopped] > count[Blocked]:
			r.state = ProcessStopped
		default:
			r.state = ProcessNone
		}
		if m := len(k.process.runs); m == 0 || k.process.runs[m-1].state != r.state ||
			k.process.runs[m-1].tid != r.tid {
			k.process.runs = append(k.process.runs, r)
		}
	}
	total(k.end - k.begin)
}

const (
	countAway    = Gone + 1 + iota // on no CPU, but it may be queued
	countStopped                   // sleeps until a signal or its tracer lets it go on
)

// countAs is the state as which a segment counts. A thread before its first record, on no CPU and
// not known to be missing records, counts as one that does not want a CPU: most sleep.
func (s *segment) countAs(th *thread) Doing {
	d := s.doing()
	if d == Blocked && s.off > 0 && int(s.off) <= len(th.offs) && th.offs[s.off-1].block == BlockStopped {
		return countStopped
	}
	if d != Unknown {
		return d
	}
	switch s.meta & (segMissing | segAway) {
	case segMissing:
		return Unknown
	case segMissing | segAway:
		return countAway
	}
	return Gone
}

// waiters is the threads that came to a state, in that order. Whether the first is still in it is
// looked up only when it is asked for: most leave before they are first.
type waiters struct {
	list []waiter
	head int
}

type waiter struct{ th, seg int32 }

func (w *waiters) add(th, seg int32) {
	if w.head > 1024 && w.head*2 > len(w.list) {
		w.list = w.list[:copy(w.list, w.list[w.head:])]
		w.head = 0
	}
	w.list = append(w.list, waiter{th, seg})
}

// first is the thread that has been in state d longest at time t; 0 if there is none.
func (w *waiters) first(k *Timeline, d Doing, t int64) uint32 {
	for ; w.head < len(w.list); w.head++ {
		x := w.list[w.head]
		th := &k.threads[x.th]
		// It may have moved to another CPU's queue since: a new segment in the same state.
		for i := int(x.seg); i < len(th.segs) && th.segs[i].doing() == d; i++ {
			if k.segEnd(th, i) > t || i == len(th.segs)-1 {
				return th.tid
			}
			w.list[w.head].seg = int32(i)
		}
	}
	return 0
}

// sortEdges sorts by time, 16 bits at a time. There are millions of edges, in few long rows that
// are in order, one for each thread. Those of one instant keep their order, which is by thread and
// segment.
func sortEdges(l []edge) []edge {
	most := int64(0)
	for i := range l {
		most = max(most, l[i].at)
	}
	if len(l) < 1<<12 {
		sort.SliceStable(l, func(i, j int) bool { return l[i].at < l[j].at })
		return l
	}
	tmp := make([]edge, len(l))
	count := make([]int32, 1<<16+1)
	for shift := 0; shift < 64 && most>>shift > 0; shift += 16 {
		clear(count)
		for i := range l {
			count[l[i].at>>shift&0xffff+1]++
		}
		for i := 1; i < len(count); i++ {
			count[i] += count[i-1]
		}
		for i := range l {
			d := l[i].at >> shift & 0xffff
			tmp[count[d]] = l[i]
			count[d]++
		}
		l, tmp = tmp, l
	}
	return l
}

// Glance is what a reader of /proc sees that walks the threads one by one, every so often, and
// needs a while for each: how many it finds in state running, on average and at most. In /proc a
// throttled thread and one in a run queue are running. A thread that sleeps when it is read is not,
// whatever it does before and after.
func (k *Timeline) Glance(every, each int64) (avg float64, most int) {
	if every <= 0 || len(k.threads) == 0 {
		return 0, 0
	}
	every = max(every, (k.end-k.begin)/1000)
	walks, sum := 0, 0
	for begin := k.begin; begin < k.end && begin+int64(len(k.threads))*each <= k.end; begin += every {
		seen := 0
		for i := range k.threads {
			th := &k.threads[i]
			if j := th.at(begin + int64(i)*each); j >= 0 {
				switch th.segs[j].doing() {
				case OnCPU, Queued, Throttled:
					seen++
				}
			}
		}
		walks++
		sum += seen
		most = max(most, seen)
	}
	if walks > 0 {
		avg = float64(sum) / float64(walks)
	}
	return avg, most
}
