package thread

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/sched"
)

// Teller tells what the kernel's records know for a story: the lanes of threads and CPUs. The names
// and stacks of a story are numbered here, for the ledger of goroutines too.
type Teller struct {
	K     *sched.Timeline // nil where only names and stacks are numbered
	Shift int64           // add to a time of K for the story's clock
	Words *capacity.Words // of K
	Func  func(uint32) string
	Cut   bool // there was more than the bounds allow

	Names  []string
	Stacks [][]account.Site
	names  map[string]int
	stacks map[stackKey]int
}

// stackKey tells a stack of the kernel's recorder from one of another source.
type stackKey struct {
	kernel bool
	id     uint32
}

// NewTeller starts the names and stacks of a story.
func NewTeller(k *sched.Timeline, shift int64, words *capacity.Words, name func(uint32) string) *Teller {
	return &Teller{K: k, Shift: shift, Words: words, Func: name, Names: []string{""}, Stacks: [][]account.Site{nil}, names: map[string]int{"": 0}, stacks: map[stackKey]int{}}
}

// Name numbers a name.
func (t *Teller) Name(s string) int {
	n, ok := t.names[s]
	if !ok {
		n = len(t.Names)
		t.names[s] = n
		t.Names = append(t.Names, s)
	}
	return n
}

// mostFrames bounds a stack.
const mostFrames = 40

// Stack numbers a stack that read resolves at its first time.
func (t *Teller) Stack(id uint32, read func() []account.Site) int {
	return t.frames(stackKey{false, id}, read)
}

// kernelStack numbers a stack that the kernel's recorder took.
func (t *Teller) kernelStack(id uint32) int {
	return t.frames(stackKey{true, id}, func() (l []account.Site) {
		for _, f := range t.K.Stack(id) {
			name := f.Func
			if name == "" {
				name = fmt.Sprintf("%s+0x%x", cmp.Or(f.Module, "?"), f.Offset)
			}
			l = append(l, account.Site{Func: name, File: f.Module})
		}
		return l
	})
}

func (t *Teller) frames(key stackKey, read func() []account.Site) int {
	if key.id == 0 {
		return 0
	}
	n, ok := t.stacks[key]
	if !ok && len(t.Stacks) > account.MostStacks {
		return 0
	}
	if !ok {
		l := read()
		n = len(t.Stacks)
		t.stacks[key] = n
		t.Stacks = append(t.Stacks, l[:min(len(l), mostFrames)])
	}
	return n
}

// Lanes gives the lanes of threads during [lo,hi) of K's clock, those with the largest amount
// first, and of the CPUs at which they ran or were queued.
func (t *Teller) Lanes(threads map[uint32]int64, lo, hi int64) (out []account.Lane) {
	tids := byAmount(threads)
	t.Cut = t.Cut || len(tids) > account.MostLanes
	cpus := map[uint32]int64{}
	for _, tid := range tids[:min(len(tids), account.MostLanes)] {
		lane := t.laneOf(tid, lo)
		for _, x := range t.K.Stretches(tid, lo, hi, nil) {
			lane.Spans = append(lane.Spans, t.stretch(tid, &x))
			if x.CPU >= 0 && (x.Doing == sched.OnCPU || x.Doing == sched.Queued || x.Doing == sched.Throttled) {
				cpus[uint32(x.CPU)] += x.End - x.Begin
			}
		}
		lane.Spans = Spans(lane.Spans, hi-lo)
		out = append(out, lane)
	}
	for _, cpu := range byAmount(cpus)[:min(len(cpus), account.MostLanes)] {
		lane := account.Lane{Kind: account.LaneCPU, ID: int64(cpu)}
		for _, r := range t.K.Runs(int(cpu), lo, hi, nil) {
			if r.TID != 0 && r.TID != sched.NobodyKnown {
				lane.Spans = append(lane.Spans, t.run(&r))
			}
		}
		lane.Spans = Spans(lane.Spans, hi-lo)
		out = append(out, lane)
	}
	return out
}

// laneOf is the lane of a thread, without spans.
func (t *Teller) laneOf(tid uint32, at int64) account.Lane {
	lane := account.Lane{Kind: account.LaneThread, ID: int64(tid)}
	if n, ok := t.K.Name(tid, at); ok {
		lane.Name = sched.PlainComm(n.Comm)
	}
	return lane
}

// byAmount lists the keys, the largest amount first.
func byAmount(m map[uint32]int64) (keys []uint32) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b uint32) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	return keys
}

// stretch is a stretch of a thread as a span.
func (t *Teller) stretch(tid uint32, s *sched.Stretch) account.Span {
	leaf, named := LeafOf(s)
	x := account.Span{Begin: s.Begin + t.Shift, End: s.End + t.Shift, State: account.Leaf(leaf.String())}
	if s.Doing == sched.Blocked && !named {
		x.State = account.LeafAsleep
	}
	if s.CPU >= 0 && s.Doing != sched.Blocked {
		x.On = t.Name(fmt.Sprintf("CPU %d", s.CPU))
	}
	switch s.Doing {
	case sched.Queued:
		if who := t.K.Behind(tid, s.Begin, s.End, nil); len(who) > 0 && who[0].TID != sched.NobodyKnown {
			x.Detail = t.Name(t.Func(t.Words.Behind(who[0].TID, s.Begin).Detail))
		}
	case sched.Blocked:
		x.Detail = t.Name(t.Func(t.Words.Slept(s)))
		x.Stack = t.stackOf(s)
		t.waker(&x, s)
	}
	return x
}

// stackOf is where a thread is blocked, in the kernel or else in the program.
func (t *Teller) stackOf(s *sched.Stretch) int {
	if n := t.kernelStack(s.Kernel); n != 0 {
		return n
	}
	return t.kernelStack(s.User)
}

// waker writes down who ended the wait s.
func (t *Teller) waker(x *account.Span, s *sched.Stretch) {
	if s.Waker == 0 {
		return
	}
	if s.ByInterrupt {
		x.By = t.Name("an interrupt")
		return
	}
	who := fmt.Sprintf("thread %d", s.Waker)
	if n, ok := t.K.Name(s.Waker, s.End); ok {
		who += " " + sched.PlainComm(n.Comm)
	}
	x.By, x.ByKind, x.ByID = t.Name(who), account.LaneThread, int64(s.Waker)
}

// run is a thread on a CPU as a span.
func (t *Teller) run(r *sched.Run) account.Span {
	x := account.Span{Begin: r.Begin + t.Shift, End: r.End + t.Shift, State: account.LeafNoCPU}
	n, ok := t.K.Name(r.TID, r.Begin)
	switch {
	case !ok:
		x.Detail = t.Name(fmt.Sprintf("thread %d", r.TID))
	case n.Target:
		x.State = account.LeafOnCPU
		x.Detail = t.Name(fmt.Sprintf("own thread %d", r.TID))
	default:
		x.Detail = t.Name(fmt.Sprintf("%s (pid %d)", sched.PlainComm(n.Comm), n.PID))
	}
	return x
}

// Spans joins short spans of a lane, and Links those of a chain, until there are few enough for a
// story that lasted so long.
func Spans(l []account.Span, wall int64) []account.Span {
	return Coarse(l, account.MostSpans, wall, func(s *account.Span) (begin, end *int64, several *int) { return &s.Begin, &s.End, &s.Several })
}

// Links is [Spans] for a chain.
func Links(l []account.Link, wall int64) []account.Link {
	return Shortened(l, account.MostLinks, wall)
}

// Shortened is Links with a bound of its own.
func Shortened(l []account.Link, most int, wall int64) []account.Link {
	return Coarse(l, most, wall, func(l *account.Link) (begin, end *int64, several *int) { return &l.Begin, &l.End, &l.Several })
}

// Coarse joins neighbours that are short until there are at most so many. What stands for several
// is what the longest of them was. of gives a span's begin, end and number.
func Coarse[T any](l []T, most int, wall int64, of func(*T) (begin, end *int64, several *int)) []T {
	for q := max(wall/int64(min(4000, 14*most)), 1); len(l) > most; q *= 2 {
		out := l[:0]
		var longest int64
		for i := range l {
			s := l[i]
			begin, end, several := of(&s)
			n := len(out)
			if n > 0 {
				lb, le, ls := of(&out[n-1])
				if *end-*begin < q && *begin-*le < q && *begin-*lb < 4*q && (*ls > 0 || *le-*lb < q) {
					first, sum := *lb, max(1, *ls)+max(1, *several)
					last := *end
					if *end-*begin > longest {
						longest = *end - *begin
						out[n-1] = s
						lb, le, ls = of(&out[n-1])
					}
					*lb, *le, *ls = first, last, sum
					continue
				}
			}
			out = append(out, s)
			longest = *end - *begin
		}
		l = out
	}
	return l
}
