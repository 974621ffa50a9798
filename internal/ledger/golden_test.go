package ledger

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/sched/schedtest"
	"github.com/whystall/whystall/internal/timeline"
	"github.com/whystall/whystall/internal/timeline/twin"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// section gives one file of a txtar archive.
func section(archive, name string) string {
	for _, f := range txtar.Parse([]byte(archive)).Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// byHand is a finder that knows the activations from the start.
type byHand struct {
	list  []request.Activation
	slots map[exectrace.GoID]uint32
	out   []request.Activation
}

func (f *byHand) Event(ev *exectrace.Event) []request.Activation {
	if ev.Slot != exectrace.NoSlot {
		f.slots[ev.G] = ev.Slot
	}
	if ev.Kind == exectrace.KindGoroutine && ev.To == exectrace.NotExist && len(f.list) > 0 && f.list[0].G == ev.G {
		return f.until(ev.Time)
	}
	return f.until(ev.Time - 1) // what happens at the end's own instant belongs to it
}

func (f *byHand) until(t exectrace.Time) []request.Activation {
	f.out = f.out[:0]
	for len(f.list) > 0 && f.list[0].End <= t {
		a := f.list[0]
		if s, ok := f.slots[a.G]; ok {
			a.Slot = s
		}
		f.out = append(f.out, a)
		f.list = f.list[1:]
	}
	return f.out
}

func (f *byHand) Finish(end exectrace.Time) []request.Activation { return f.until(end) }

func (f *byHand) Groups() []request.Group {
	return []request.Group{{Entry: "main.handler", Kind: "loop", Listed: true, Count: 1}}
}

func (f *byHand) Launchers() []string        { return nil }
func (f *byHand) Name(request.NameID) string { return "" }

// goldenCase is one archive: a timeline as text, activations "A 1 13", "A 1 13 prev 5", "A 1 13
// handed 3 9" with when it was handed on, or "A 5 13 asked 1" whose request was there before, and
// what is wanted.
type goldenCase struct {
	src   timeline.Source
	names map[exectrace.GoID]string
	acts  []request.Activation
	asked map[exectrace.Time]int64 // by begin: since when the request was there
	unit  float64
	k     *sched.Timeline // nil without a section kernel
}

func parseCase(t *testing.T, archive string) goldenCase {
	t.Helper()
	text := section(archive, "timeline")
	src, err := twin.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := goldenCase{src: src, names: map[exectrace.GoID]string{}, asked: map[exectrace.Time]int64{}, unit: 1e6}
	if text := section(archive, "kernel"); text != "" {
		c.k = schedtest.Timeline(t, text)
	}
	n := exectrace.GoID(0)
	ids := map[string]exectrace.GoID{}
	for _, l := range strings.Split(text, "\n") {
		if f := strings.Fields(l); len(f) > 1 && f[0] == "goroutine" {
			n++ // names, not numbers, are used here: they count from 1
			c.names[n], ids[f[1]] = f[1], n
		}
	}
	for _, l := range strings.Split(strings.TrimSpace(section(archive, "activations")), "\n") {
		f := strings.Fields(l)
		at := func(s string) exectrace.Time {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatalf("activation %q: %v", l, err)
			}
			return exectrace.Time(v * c.unit)
		}
		if len(f) < 3 || ids[f[0]] == 0 {
			t.Fatalf("activation %q: want goroutine, begin, end", l)
		}
		a := request.Activation{G: ids[f[0]], Begin: at(f[1]), End: at(f[2])}
		if len(f) == 5 && f[3] == "asked" {
			c.asked[a.Begin] = int64(at(f[4]))
		} else if len(f) > 4 && f[3] == "handed" {
			for i, hop := range f[4:] {
				a.Hops[i] = at(hop)
			}
		} else if len(f) == 5 {
			a.PrevEnd = at(f[4])
		}
		c.acts = append(c.acts, a)
	}
	slices.SortStableFunc(c.acts, func(a, b request.Activation) int { return int(a.End - b.End) })
	return c
}

// tell runs the case and writes every piece down, in order of time.
func (c goldenCase) tell(t *testing.T) (string, *account.Result) {
	t.Helper()
	acts := slices.Clone(c.acts)
	p := newPass(c.src, &byHand{list: acts, slots: map[exectrace.GoID]uint32{}}, Options{SlowOver: 1, Kernel: c.k})
	var out strings.Builder
	var lines []string
	n, sum := 0, int64(0)
	var next int64
	flush := func() {
		slices.Reverse(lines)
		for _, l := range lines {
			out.WriteString(l)
		}
		lines = nil
	}
	p.look = func(q *piece) {
		a := c.acts[n]
		b, e := int64(a.Begin), int64(a.End)
		if at, ok := c.asked[a.Begin]; ok {
			b = at
		}
		if sum == 0 {
			next = e
		}
		if p.tl.Abs(q.hi) != next {
			t.Errorf("activation %d: piece ends at %d, want %d", n, p.tl.Abs(q.hi), next)
		}
		next = p.tl.Abs(q.lo)
		sum += q.hi - q.lo
		line := fmt.Sprintf("\t%v..%v %s", float64(p.tl.Abs(q.lo))/c.unit, float64(p.tl.Abs(q.hi))/c.unit, q.leaf)
		if q.depth > 0 {
			line += " of " + c.names[p.tl.Identity(q.ident).GoID]
		} else {
			line += " (own)"
		}
		if q.class != books.ClassOwn {
			line += fmt.Sprintf(", %s in %s", q.class, p.tl.Func(q.site))
		}
		if q.leaf == books.LeafSTW {
			line += ", " + c.src.String(q.kind)
		}
		line += tellJoined(p, q)
		if q.flags&pieceInferred != 0 {
			line += ", inferred"
		}
		if q.flags&pieceHandoff != 0 {
			line += ", hand-off"
		}
		lines = append(lines, line+"\n")
		if sum == e-b {
			if next != b {
				t.Errorf("activation %d: pieces begin at %d, want %d", n, next, b)
			}
			lines = append(lines, fmt.Sprintf("%s %v..%v\n", c.names[a.G], float64(b)/c.unit, float64(e)/c.unit))
			flush()
			n, sum = n+1, 0
		}
	}
	r, err := p.run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if n != len(c.acts) {
		t.Errorf("%d activations were told, want %d", n, len(c.acts))
	}
	checkSums(t, r)
	if p.j != nil {
		tellSampled(&out, r)
	}
	if c.k != nil {
		for _, a := range r.Slow.Accounts {
			if a.Leaf != account.LeafRunnable {
				continue
			}
			fmt.Fprintf(&out, "meanwhile, %s\n", account.Phrase(&a))
			for _, i := range a.Instead {
				fmt.Fprintf(&out, "\t%v %s: %s\n", float64(i.NS)/c.unit, i.Kind, i.Who)
			}
		}
	}
	return out.String(), r
}

// tellSampled is how many samples fell into the slow requests' accounts, and into all requests' own
// time.
func tellSampled(out *strings.Builder, r *account.Result) {
	for i := range r.Slow.Accounts {
		if a := &r.Slow.Accounts[i]; a.OnCPU != nil {
			fmt.Fprintf(out, "%d samples, %s\n", a.OnCPU.Samples, account.Phrase(a))
		}
	}
	for i := range r.Requests.Groups {
		if o := r.Requests.Groups[i].OnCPU; o != nil {
			fmt.Fprintf(out, "%d samples in requests' own time of %v\n", o.Samples, float64(o.NS)/1e6)
		}
	}
}

// tellJoined is what a piece knows from the kernel.
func tellJoined(p *pass, q *piece) (s string) {
	if q.detail != 0 {
		s += " [" + p.tl.Func(q.detail) + "]"
	}
	if q.leaf == books.LeafNoCPU && p.j.words.Ref(q.tid) != capacity.NoRef {
		s += " behind " + p.j.words.Instead(p.j.words.Ref(q.tid)).Who
	}
	if q.leaf == books.LeafOnCPU && q.tid != 0 {
		for _, x := range p.sampledIn(q) {
			w := p.j.samples.Works.Key(x.Work)
			s += fmt.Sprintf(" (sample at %v: %s)", float64(x.At)/1e6, strings.TrimSpace(string(w.Kind)+" "+w.Name))
		}
	}
	for _, f := range []struct {
		flag pieceFlags
		text string
	}{{pieceMeasured, "measured"}, {pieceStopped, "world stopped"}, {pieceBarrier, "barrier"},
		{pieceSocket, "data there"}, {pieceDue, "due"}} {
		if q.flags&f.flag != 0 {
			s += ", " + f.text
		}
	}
	return s
}

func TestGolden(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) < 5 {
		t.Fatalf("only %d cases: %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := parseCase(t, string(b)).tell(t)
			if got == "" {
				t.Fatal("says nothing: an empty want would pass whatever is booked")
			}
			a := txtar.Parse(b)
			want := &a.Files[len(a.Files)-1]
			if want.Name != "want" {
				t.Fatal("no section want at its end")
			}
			if got == string(want.Data) {
				return
			}
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("got\n%swant\n%s", got, want.Data)
		})
	}
}
