package sched

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/whystall/whystall/internal/evidence/kernel"
)

var update = flag.Bool("update", false, "rewrite goldens")

var doingWords = [...]string{"unknown", "on", "queued", "throttled", "blocked", "gone"}

var blockWords = [...]string{"", "other", "futex", "network", "timer", "pipe", "disk", "fault",
	"reclaim", "memcg", "compaction", "mmap_lock", "tlb", "numa", "child", "kernel lock", "idle", "stopped"}

func (s *Stretch) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d..%d %s", s.Begin, s.End, doingWords[s.Doing])
	if s.Block != 0 {
		b.WriteString(" " + blockWords[s.Block])
	}
	if s.CPU >= 0 {
		fmt.Fprintf(&b, " cpu=%d", s.CPU)
	}
	for _, f := range []struct {
		on   bool
		word string
	}{{s.Approx, "approx"}, {s.ByGroup, "bygroup"}, {s.Preempted, "preempted"}, {s.Unthrottled, "unthrottled"}} {
		if f.on {
			b.WriteString(" " + f.word)
		}
	}
	if s.Syscall >= 0 {
		fmt.Fprintf(&b, " call=%d", s.Syscall)
	}
	if s.Futex != 0 {
		fmt.Fprintf(&b, " futex=%#x", s.Futex)
	}
	if s.Kernel != 0 || s.User != 0 {
		fmt.Fprintf(&b, " stacks=%d,%d", s.Kernel, s.User)
	}
	if s.Waker != 0 || s.ByInterrupt {
		fmt.Fprintf(&b, " by=%d", s.Waker)
		if s.ByInterrupt {
			b.WriteString(" interrupt")
		}
		if s.WakerTarget {
			b.WriteString(" target")
		}
		if s.WakerSignal {
			b.WriteString(" signal")
		}
	}
	return b.String()
}

func (p *Pause) write(b *strings.Builder) {
	fmt.Fprintf(b, "\t%d prepare %d await %d stopped %d starting %d: %s by %d, awaited %d (%d, %s)\n", p.Begin, p.Await, p.Stopped, p.Starting, p.End, p.Kind, p.Initiator, p.Awaited, p.Known, p.How)
	for _, h := range p.Hops {
		fmt.Fprintf(b, "\t\t%d %d %s (%s)\n", h.Time, h.TID, h.What, h.How)
	}
}

// answers is what k says to a golden's "ask" lines: a question, a time from and to, and a thread or
// address.
func answers(k *Timeline, asks []string) (string, error) {
	var b strings.Builder
	for _, a := range asks {
		var tid, lo, hi int64
		f := strings.Fields(a)
		fmt.Fprintf(&b, "%s\n", a)
		for i, p := range []*int64{&lo, &hi, &tid} {
			if i+1 < len(f) {
				if _, err := fmt.Sscan(f[i+1], p); err != nil {
					return "", fmt.Errorf("%s: %w", a, err)
				}
			}
		}
		switch f[0] {
		case "states":
			for _, s := range k.Stretches(uint32(tid), lo, hi, nil) {
				fmt.Fprintf(&b, "\t%s\n", s.text())
			}
		case "behind":
			for _, s := range k.Behind(uint32(tid), lo, hi, nil) {
				fmt.Fprintf(&b, "\t%d %d\n", int32(s.TID), s.NS)
			}
		case "process":
			for _, s := range k.Process(lo, hi, nil) {
				fmt.Fprintf(&b, "\t%d..%d %s %d\n", s.Begin, s.End,
					[...]string{"unknown", "on", "throttled", "queued", "none", "stopped"}[s.State], s.TID)
			}
		case "woken":
			for _, w := range k.Woken(uint32(tid), lo, hi, nil) {
				fmt.Fprintf(&b, "\t%+v\n", w)
			}
		case "wakesby":
			for _, w := range k.WakesBy(uint32(tid), lo, hi, nil) {
				fmt.Fprintf(&b, "\t%+v\n", w)
			}
		case "runs":
			for _, r := range k.Runs(int(tid), lo, hi, nil) {
				fmt.Fprintf(&b, "\t%d..%d %d\n", r.Begin, r.End, int32(r.TID))
			}
		case "futexwakes":
			for _, e := range k.FutexWakes(uint64(tid), lo, hi, nil) {
				fmt.Fprintf(&b, "\t%d tid=%d op=%d\n", e.Begin, e.TID, e.Arg[1])
			}
		case "notes":
			fmt.Fprintf(&b, "\t%+v\n", k.Notes())
		case "pause": // begin end initiator laststop lastthread start
			r := PauseRange{Kind: "GC (sweep termination)", Begin: lo, End: hi, Initiator: uint32(tid)}
			if _, err := fmt.Sscan(strings.Join(f[4:], " "), &r.LastStop, &r.LastThread, &r.Start); err != nil {
				return "", fmt.Errorf("%s: %w", a, err)
			}
			p := k.Pause(r)
			p.write(&b)
		case "barriers":
			for _, p := range k.Barriers() {
				p.write(&b)
			}
		case "stws":
			for _, p := range k.StopTheWorlds() {
				p.write(&b)
			}
		case "threads":
			for _, l := range k.Threads() {
				fmt.Fprintf(&b, "\t%+v\n", l)
			}
		case "totals":
			fmt.Fprintf(&b, "\t%+v\n", k.Totals())
			avg, most, _ := k.Runnable()
			fmt.Fprintf(&b, "\trunnable %.3f most %d\n", avg, most)
		default:
			return "", fmt.Errorf("%s: no such question", a)
		}
	}
	return b.String(), nil
}

// TestKernelGolden asks the streams in testdata/kernel. Each file has a stream, the questions after
// "-- ask --", and the answers after "-- want --".
func TestKernelGolden(t *testing.T) {
	names, err := filepath.Glob("testdata/kernel/*.txt")
	if err != nil || len(names) < 10 {
		t.Fatalf("only %d cases, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Files) != 2 || a.Files[0].Name != "ask" || a.Files[1].Name != "want" {
				t.Fatal("want the sections ask and want")
			}
			ask, want := string(a.Files[0].Data), &a.Files[1]
			k := timelineOf(t, string(a.Comment))
			got, err := answers(k, strings.Split(strings.TrimSpace(ask), "\n"))
			if err != nil {
				t.Fatal(err)
			}
			if err := exact(k, 1000); err != nil {
				t.Error(err)
			}
			if got == "" {
				t.Fatal("no answers: an empty want would pass whatever the stream says")
			}
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want.Data) {
				t.Errorf("got\n%s\nwant\n%s", got, want.Data)
			}
		})
	}
}

func timelineOf(t testing.TB, stream string) *Timeline {
	t.Helper()
	src, err := kernel.ParseText(stream)
	if err != nil {
		t.Fatal(err)
	}
	k, err := New(src)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (p *Pause) check() error {
	if p.Begin > p.Await || p.Await > p.Stopped || p.Stopped > p.Starting || p.Starting > p.End {
		return fmt.Errorf("a pause's phases are out of order: %+v", p)
	}
	return nil
}

// exact asks everything of some windows of time and checks that the answers tile them.
func exact(k *Timeline, windows int) error {
	begin, end := k.Span()
	tids := []uint32{0, 4242}
	for _, l := range k.Threads() {
		tids = append(tids, l.TID)
	}
	tids = tids[:min(len(tids), 20)]
	var edges []int64
	for _, e := range []int64{begin - 5, begin, begin + 1, begin + (end-begin)/3, begin +
		(end-begin)/2, end - 1, end, end + 5} {
		edges = append(edges, clampTime(e))
	}
	for i := 0; i < len(k.events) && len(edges) < windows; i++ {
		edges = append(edges, clampTime(k.events[i].Begin), clampTime(k.events[i].End))
	}
	edges = edges[:min(len(edges), 40)]
	for _, lo := range edges {
		for _, hi := range edges {
			if hi <= lo {
				continue
			}
			for _, tid := range tids {
				at := lo
				for _, s := range k.Stretches(tid, lo, hi, nil) {
					if s.Begin != at || s.End <= s.Begin {
						return fmt.Errorf("states of %d in %d..%d: %d..%d does not follow %d", tid,
							lo, hi, s.Begin, s.End, at)
					}
					if s.Whole.Begin > s.Begin || s.Whole.End < s.End {
						return fmt.Errorf("states of %d: %d..%d is cut from %v", tid, s.Begin, s.End, s.Whole)
					}
					at = s.End
				}
				if at != hi {
					return fmt.Errorf("states of %d in %d..%d end at %d", tid, lo, hi, at)
				}
				sum := int64(0)
				for _, s := range k.Behind(tid, lo, hi, nil) {
					if s.NS <= 0 {
						return fmt.Errorf("behind %d: %+v", tid, s)
					}
					sum += s.NS
				}
				if sum != hi-lo {
					return fmt.Errorf("behind %d in %d..%d: %d", tid, lo, hi, sum)
				}
				k.Woken(tid, lo, hi, nil)
				k.WakesBy(tid, lo, hi, nil)
				k.At(tid, lo)
				k.EventsOf(tid, lo, hi, func(*Event) bool { return true })
				k.Name(tid, lo)
				k.FromNS(tid)
			}
			at := lo
			for _, s := range k.Process(lo, hi, nil) {
				if s.Begin != at || s.End <= s.Begin {
					return fmt.Errorf("process in %d..%d: %d..%d does not follow %d", lo, hi, s.Begin, s.End, at)
				}
				at = s.End
			}
			if at != hi {
				return fmt.Errorf("process in %d..%d ends at %d", lo, hi, at)
			}
			for _, cpu := range append(k.CPUs()[:min(4, len(k.CPUs()))], -1, 1<<20) {
				at := lo
				for _, r := range k.Runs(cpu, lo, hi, nil) {
					if r.Begin != at || r.End <= r.Begin {
						return fmt.Errorf("CPU %d in %d..%d: %d..%d does not follow %d", cpu, lo,
							hi, r.Begin, r.End, at)
					}
					at = r.End
				}
				if at != hi {
					return fmt.Errorf("CPU %d in %d..%d ends at %d", cpu, lo, hi, at)
				}
			}
			k.FutexWakes(4096, lo, hi, nil)
			k.Events(lo, hi, func(*Event) bool { return true })
		}
	}
	for _, p := range append(k.Barriers(), k.StopTheWorlds()...) {
		if err := p.check(); err != nil {
			return err
		}
	}
	for _, r := range []PauseRange{{Begin: begin, End: end, Initiator: 1},
		{Begin: begin + 5, End: end - 5, Initiator: 3, LastStop: begin + 7, LastThread: 2, Start: begin + 9},
		{Begin: end, End: begin, Initiator: 1, LastStop: end, LastThread: 4}} {
		p := k.Pause(r)
		if err := p.check(); err != nil {
			return err
		}
	}
	k.Glance(1e9, 1000)
	k.Runnable()
	return nil
}
