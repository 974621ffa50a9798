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
//  1. Segments of a fixed length are recorded, each a case of its own. The next one begins to attach before the last one ends, so that
//     nothing passes between them unseen by the kernel's records. The trace, of which a process gives but one at a time, has a gap.
//  2. While the next one is recorded, a process of the lowest priority judges the last (judge.go): did a request take that long, or,
//     where no requests can be seen, did the target stand still that long though it had work?
//  3. If so, the segment and the one before it become case files. Else the one before it is removed.
//
// So there are three segments on disk at most beside what was saved: one that is recorded, one that is judged, or begins, one to look
// back on. A segment does not begin before the judge is done with the last but one.

// segmentLength is long enough for attaching to the kernel and starting a trace to cost little, and short enough to be
// looked at by a person.
const segmentLength = 20 * time.Second

// lead is how long before a segment's end the next one begins: attaching takes 0.3 to 1 s on a machine that is not idle.
const lead = 2 * time.Second

// segment is one of them.
type segment struct {
	name string
	w    *evidence.Writer
}

// trigger is one watch.
type trigger struct {
	con      *console
	o        collect.Options
	base     string // names of cases begin with it
	over     time.Duration
	entry    string
	left     atomic.Int32 // captures that may still be saved
	begun    int          // segments that were begun
	segments int          // that were recorded
	saved    int
	worst    verdict
	before   *segment
	failed   int // verdicts that could not be had
}

func (c *recordCmd) watch(con *console, o collect.Options) error {
	base := strings.TrimSuffix(c.Output, ".case")
	if base == "" {
		base = "whystall"
	}
	t := &trigger{con: con, o: o, base: base, over: c.SlowOver, entry: c.Entry}
	t.left.Store(int32(min(c.MaxCaptures, math.MaxInt32)))
	t.o.Brief, t.o.For = true, min(segmentLength, o.For)
	t.o.Timing.Retry = 200 * time.Millisecond // the trace that is in the way is our own last one, and about to end
	ctx, done := interruptible(nil)
	defer done()
	until := time.Now().Add(o.For)
	con.say("watching for %s, until something takes %s; captures: %d at most; Ctrl-C ends it", o.For, c.SlowOver, c.MaxCaptures)
	err := t.run(ctx, until)
	if t.before != nil {
		t.before.w.Discard()
	}
	if t.segments == 0 {
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
	goOn := func(early time.Duration) bool {
		return ctx.Err() == nil && t.left.Load() > 0 && time.Now().Add(early).Before(until)
	}
	cur := t.begin(ctx, until)
	defer func() { cur.drop(cancel) }()
	for {
		var next *recording
		select {
		case <-cur.near:
			if err := wait(); err != nil { // before anything else of disk is used
				return err
			}
			if goOn(lead) {
				next = t.begin(ctx, until)
			}
		case <-cur.done:
		}
		<-cur.done
		s, err := cur.s, cur.err
		cur.s = nil
		if e := wait(); e != nil || s == nil || t.left.Load() <= 0 {
			if s != nil {
				s.w.Discard()
			}
			next.drop(cancel)
			if e != nil {
				return e
			}
			return err
		}
		t.segments++
		judging = make(chan error, 1)
		go func(done chan error) { done <- t.decide(s) }(judging)
		if next == nil {
			if err != nil || !goOn(0) {
				if e := wait(); e != nil {
					return e
				}
				return err
			}
			next = t.begin(ctx, until)
		}
		cur = next
	}
}

// recording is a segment that is being recorded.
type recording struct {
	near chan struct{} // closed when the end is near
	done chan struct{} // closed when s and err are there
	s    *segment      // nil with an error when nothing came of it
	err  error
}

// drop ends a recording and forgets it.
func (r *recording) drop(cancel func()) {
	if r == nil {
		return
	}
	cancel()
	<-r.done
	if r.s != nil {
		r.s.w.Discard()
		r.s = nil
	}
}

// begin begins to record a segment, a shorter one where until comes before its end.
func (t *trigger) begin(ctx context.Context, until time.Time) *recording {
	r := &recording{near: make(chan struct{}), done: make(chan struct{})}
	o := t.o
	first := t.begun == 0
	t.begun++
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
		r.s, r.err = t.record(ctx, o)
		close(r.done)
	}()
	return r
}

// record records one segment; nil with an error when nothing came of it.
func (t *trigger) record(ctx context.Context, o collect.Options) (*segment, error) {
	m, err := collect.Begin(o)
	if err != nil {
		if t.segments > 0 {
			err = fmt.Errorf("the target is gone: %w", err)
		}
		return nil, err
	}
	s := &segment{name: t.base + "-" + m.Begun.UTC.Format("20060102T150405Z") + ".case"}
	if s.w, err = evidence.Create(s.name, false, m); err != nil {
		return nil, err
	}
	if err := collect.Run(ctx, o, s.w); err != nil {
		s.w.Discard()
		return nil, err
	}
	return s, nil
}

// decide judges a segment and keeps or forgets it. An error ends the watch.
func (t *trigger) decide(s *segment) error {
	v, err := judgeApart(s.w.Dir(), t.over, t.entry)
	if err != nil {
		// One that cannot be read is no reason to stop looking, but many are.
		if t.failed++; t.failed == 3 {
			return fmt.Errorf("judge %s: %w; it is kept", s.w.Dir(), err)
		}
		t.con.say("judge %s: %v", s.w.Dir(), err)
	}
	if v.NS > t.worst.NS {
		t.worst = v
	}
	if err != nil || v.NS < int64(t.over) {
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
		if err := keep.w.Finish(); err != nil {
			return err
		}
	}
	look := ""
	if t.before != nil {
		look = ", and the " + t.o.For.String() + " before it in " + t.before.name
	}
	t.before = nil
	t.con.say("%s; saved in %s%s; next: whystall explain %s --slow-over %s", v.words(), s.name, look, shellWord(s.name), t.over)
	return nil
}

func (t *trigger) forget() {
	if t.before != nil {
		t.before.w.Discard()
		t.before = nil
	}
}

func (t *trigger) summary() string {
	s := fmt.Sprintf("segments of %[2]s watched: %[1]d, saved: %[3]d", t.segments, t.o.For, t.saved)
	if t.worst.NS > 0 {
		s += "; the longest: " + t.worst.words()
	}
	return s
}

// verdict is what the judge says of a segment: the longest request or, where none can be seen, standstill; a stop of the process where that was longer.
type verdict struct {
	What  string    `json:"what"` // "request", "standstill", "halt": a stop of the whole process
	Name  string    `json:"name,omitempty"`
	NS    int64     `json:"ns"`
	UTC   time.Time `json:"utc"` // of its begin; zero: not known
	Count int       `json:"count"`

	at int64 // of its begin, CLOCK_MONOTONIC
}

func (v verdict) words() string {
	s := "the target stood still for " + finding.Duration(v.NS)
	switch v.What {
	case "halt":
		s = "the target was stopped for " + finding.Duration(v.NS) + " by " + v.Name
	case "request":
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

// judgeApart judges in a process of its own, so that its memory is given back and its priority can be the lowest.
func judgeApart(folder string, over time.Duration, entry string) (v verdict, err error) {
	self, err := os.Executable()
	if err != nil {
		return v, err
	}
	args := []string{"judge", "--slow-over", over.String(), folder}
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
