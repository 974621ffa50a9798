package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whystall/whystall/internal/collect"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
)

// record --slow-over waits for what happens now and then:
//
//  1. It records segments of a fixed length, each a case of its own. The next one starts to attach
//     before the last one ends, so the kernel's records miss nothing between them. The trace has a
//     gap there, since a process gives only one at a time.
//  2. While it records the next segment, a process of the lowest priority judges the last
//     (judge.go). Did a request take that long? Where no requests can be seen: did the target stand
//     still that long though it had work?
//  3. If so, the segment and the one before it become case files. If not, the one before is
//     removed.
//
// So besides what was saved there are at most three segments on disk: one that is recorded, one
// that is judged or starts, and one to look back on. A segment does not start before the judge is
// done with the last but one.

// segmentLength is long enough that attaching to the kernel and starting a trace cost little beside
// it, and short enough for a person to look at.
const segmentLength = 20 * time.Second

// lead is how long before a segment's end the next one starts: attaching takes 0.3 to 1 s on a
// machine that is not idle.
const lead = 2 * time.Second

// segment is a recorded one.
type segment struct {
	name   string
	writer *evidence.Writer
}

// trigger is one watch.
type trigger struct {
	con      *console
	options  collect.Options
	base     string // what the names of cases start with
	slowOver time.Duration
	entry    string
	alone    atomic.Pointer[evidence.Stage] // counters alone, of the first segment
	left     atomic.Int32                   // captures that may still be saved
	started  int                            // segments that were started
	recorded int                            // segments that were recorded
	saved    int
	worst    verdict
	before   *segment
	failed   int // segments that could not be judged
}

func (c *recordCmd) watch(con *console, o collect.Options) error {
	base := strings.TrimSuffix(c.Output, ".case")
	if base == "" {
		base = "whystall"
	}
	t := &trigger{con: con, options: o, base: base, slowOver: c.SlowOver, entry: c.Entry}
	t.left.Store(int32(min(c.MaxCaptures, math.MaxInt32)))
	t.options.Brief, t.options.For = true, min(segmentLength, o.For)
	// A trace that is in the way is our own last one, which is about to end.
	t.options.Timing.Retry = 200 * time.Millisecond
	ctx, done := interruptible(nil)
	defer done()
	until := time.Now().Add(o.For)
	con.say("watching for %s, until something takes %s; captures: at most %d; Ctrl-C ends it",
		o.For, c.SlowOver, c.MaxCaptures)
	err := t.run(ctx, until)
	if t.before != nil {
		t.before.writer.Discard()
	}
	if t.recorded == 0 {
		return err
	}
	if err != nil {
		con.say("%v", err)
	}
	con.say("%s", t.summary())
	return nil
}

func (t *trigger) run(ctx context.Context, until time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var judging chan error
	wait := func() error {
		if judging == nil {
			return nil
		}
		err := <-judging
		judging = nil
		return err
	}
	mayStart := func(early time.Duration) bool {
		return ctx.Err() == nil && t.left.Load() > 0 && time.Now().Add(early).Before(until)
	}
	current := t.start(ctx, until)
	defer func() { current.drop(cancel) }()
	for {
		var next *recording
		select {
		case <-current.near:
			if err := wait(); err != nil { // before anything else of disk is used
				return err
			}
			if mayStart(lead) {
				next = t.start(ctx, until)
			}
		case <-current.done:
		}
		<-current.done
		s, err := current.segment, current.err
		current.segment = nil
		if e := wait(); e != nil || s == nil || t.left.Load() <= 0 {
			if s != nil {
				s.writer.Discard()
			}
			next.drop(cancel)
			if e != nil {
				return e
			}
			return err
		}
		t.recorded++
		judging = make(chan error, 1)
		go func(done chan error) { done <- t.decide(s) }(judging)
		if next == nil {
			if err != nil || !mayStart(0) {
				if e := wait(); e != nil {
					return e
				}
				return err
			}
			next = t.start(ctx, until)
		}
		current = next
	}
}

// recording is a segment that is being recorded.
type recording struct {
	near    chan struct{} // closed when the end is near
	done    chan struct{} // closed when segment and err are set
	segment *segment      // nil with an error when nothing was recorded
	err     error
}

// drop ends a recording and forgets it.
func (r *recording) drop(cancel func()) {
	if r == nil {
		return
	}
	cancel()
	<-r.done
	if r.segment != nil {
		r.segment.writer.Discard()
		r.segment = nil
	}
}

// start starts to record a segment, a shorter one where until comes before its end.
func (t *trigger) start(ctx context.Context, until time.Time) *recording {
	r := &recording{near: make(chan struct{}), done: make(chan struct{})}
	o := t.options
	first := t.started == 0
	t.started++
	if left := time.Until(until).Round(time.Second); left < o.For && !first {
		o.For = max(left, time.Second)
	}
	near := sync.OnceFunc(func() { close(r.near) })
	o.Progress = func(p collect.Progress) {
		if p.Note != "" && first {
			t.con.say("%s", p.Note)
		}
		if p.Of > 0 && p.Of-p.Elapsed <= lead {
			near()
		}
	}
	go func() {
		r.segment, r.err = t.record(ctx, o)
		close(r.done)
	}()
	return r
}

// record records one segment. It returns nil with an error when nothing was recorded.
func (t *trigger) record(ctx context.Context, o collect.Options) (*segment, error) {
	m, err := collect.Begin(o)
	if err != nil {
		if t.recorded > 0 {
			err = fmt.Errorf("the target is gone: %w", err)
		}
		return nil, err
	}
	s := &segment{name: t.base + "-" + m.Begun.UTC.Format("20060102T150405Z") + ".case"}
	if s.writer, err = evidence.Create(s.name, false, m); err != nil {
		return nil, err
	}
	o.Alone = t.alone.Load()
	// The next segment starts before this one ends.
	o.TellAlone = func(s evidence.Stage) { t.alone.CompareAndSwap(nil, &s) }
	if err := collect.Run(ctx, o, s.writer); err != nil {
		s.writer.Discard()
		return nil, err
	}
	return s, nil
}

// decide judges a segment, and keeps or removes it. An error ends the watch.
func (t *trigger) decide(s *segment) error {
	v, err := judgeApart(s.writer.Dir(), t.slowOver, t.entry)
	if err != nil {
		// One segment that cannot be judged is no reason to stop, but three are.
		if t.failed++; t.failed == 3 {
			return fmt.Errorf("judge %s: %w; it is kept", s.writer.Dir(), err)
		}
		t.con.say("judge %s: %v", s.writer.Dir(), err)
	}
	if v.NS > t.worst.NS {
		t.worst = v
	}
	if err != nil || v.NS < int64(t.slowOver) {
		t.forget()
		t.before = s
		return nil
	}
	t.saved++
	t.left.Add(-1)
	for _, keep := range []*segment{t.before, s} {
		if keep == nil {
			continue
		}
		if err := keep.writer.Finish(); err != nil {
			return err
		}
	}
	before := ""
	if t.before != nil {
		before = ", and the " + t.options.For.String() + " before it in " + t.before.name
	}
	t.before = nil
	t.con.say("%s; saved in %s%s; next: whystall explain %s --slow-over %s", v.words(), s.name,
		before, shellWord(s.name), t.slowOver)
	return nil
}

func (t *trigger) forget() {
	if t.before != nil {
		t.before.writer.Discard()
		t.before = nil
	}
}

func (t *trigger) summary() string {
	s := fmt.Sprintf("segments of %[2]s watched: %[1]d, saved: %[3]d", t.recorded, t.options.For, t.saved)
	if t.worst.NS > 0 {
		s += "; the longest: " + t.worst.words()
	}
	return s
}

// What a verdict is about.
const (
	whatRequest    = "request"
	whatStandstill = "standstill"
	whatHalt       = "halt" // a stop of the whole process
)

// verdict is what the judge says of a segment: the longest request or, where none can be seen, the
// longest standstill. A stop of the process replaces either if it was longer.
type verdict struct {
	What  string    `json:"what"`
	Name  string    `json:"name,omitempty"`
	NS    int64     `json:"ns"`
	UTC   time.Time `json:"utc"` // of its start; zero: not known
	Count int       `json:"count"`

	begin int64 // CLOCK_MONOTONIC
}

func (v verdict) words() string {
	s := "the target stood still for " + finding.Duration(v.NS)
	switch v.What {
	case whatHalt:
		s = "the target was stopped for " + finding.Duration(v.NS) + " by " + v.Name
	case whatRequest:
		s = "a request took " + finding.Duration(v.NS)
		if v.Name != "" {
			s += " (" + v.Name + ")"
		}
	}
	if !v.UTC.IsZero() {
		s += " at " + v.UTC.Format("15:04:05.000 UTC")
	}
	if v.Count > 1 {
		s += fmt.Sprintf(", %d in all", v.Count)
	}
	return s
}

// judgeApart judges in a process of its own, so that its memory is given back and its priority can
// be the lowest.
func judgeApart(folder string, slowOver time.Duration, entry string) (v verdict, err error) {
	self, err := os.Executable()
	if err != nil {
		return v, err
	}
	args := []string{"judge", "--slow-over", slowOver.String(), folder}
	if entry != "" {
		args = append(args, "--entry", entry)
	}
	cmd := exec.Command(self, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	apart(cmd)
	out, err := atEase(cmd)
	if err != nil {
		if line, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n"); line != "" {
			err = errors.New(strings.TrimPrefix(line, "whystall: "))
		}
		return v, err
	}
	err = json.Unmarshal(out, &v)
	return v, err
}
