package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/browser"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
)

// attacks are what a symbol, a path, or a line of a log may hold. Each would leave a trace: the
// title of the page, or a property of its window.
var attacks = []string{
	`</script><script>document.title="attacked"</script>`,
	`<img src=x onerror="document.title='attacked'">`,
	`<svg/onload=document.title='attacked'>`,
	`"><script>window.attacked=1</script>`,
	`' onmouseover='window.attacked=1' x='`,
	`javascript:window.attacked=1//`,
	`<a href="javascript:window.attacked=1">x</a>`,
	`<!--<script>window.attacked=1</script>-->`,
	"\u2028window.attacked=1\u2029",
	`</style><style>body{display:none}</style>`,
	`</title><meta http-equiv=refresh content="0;url=http://127.0.0.1:9/">`,
	`<base href=http://127.0.0.1:9/><link rel=stylesheet href=x.css>`,
	`url(http://127.0.0.1:9/x.png)`, `expression(window.attacked=1)`,
	`${window.attacked=1}{{constructor.constructor('window.attacked=1')()}}`,
	`__proto__`, `constructor`, `toString`,
	"\x00\x1b[31m\x07\u202e\ufeff\u200b", "\xff\xfe\xed\xa0\x80", "\uf8f0<b>\uf8f1",
	`\u003cscript\u003e`, `&lt;script&gt;&#60;`,
	strings.Repeat("long.", 2000),
}

// attacked is a report in which every name is an attack.
func attacked(evil func() string) Source {
	s := hostile()
	s.Target.Name, s.Target.Host, s.Target.Service = evil(), evil(),
		evidence.Service{PID: 1, GoVersion: evil(), Ended: evil()}
	l := *s.Ledger
	l.Slow.Accounts = append([]account.Account{}, l.Slow.Accounts...)
	for i := range l.Slow.Accounts {
		a := &l.Slow.Accounts[i]
		a.Leaf, a.Actor, a.Site, a.Detail, a.Holder = account.Leaf(evil()), evil(), evil(), evil(), evil()
		a.Sites = []account.Site{{Func: evil(), File: evil(), NS: 1}}
	}
	l.Requests.Groups = []account.Group{{Entry: evil(), Kind: evil(), Doubt: evil(), Count: 3}}
	l.Requests.Slowest = []account.Request{{Entry: evil(), Name: evil(), Reason: evil(),
		Begin: begin, End: begin + ms, Accounts: l.Slow.Accounts[:2]}}
	l.Gaps = []account.Gap{{Reason: evil()}}
	l.Series = account.Series{
		Whole: true, Dots: []account.Dot{{Begin: begin, NS: ms, Slow: true},
			{Begin: begin + ms, NS: 2 * ms, Slow: true}}, Entries: []string{evil()},
		Largest: []account.Named{{Leaf: account.Leaf(evil()), Site: evil()}},
		Bands: []account.Band{{Kind: account.BandSTW, Begin: begin, End: begin + ms,
			Detail: evil()}}, Levels: []account.Level{{Stream: evil(),
			Points: []account.LevelPoint{{Begin: begin, End: begin + ms, Share: 1}}}},
	}
	l.Stories = []*account.Story{{
		Begin: begin, End: begin + ms, Names: []string{"", evil()},
		Stacks: [][]account.Site{nil, {{Func: evil(), File: evil(), Line: 1}}},
		Chain: []account.Link{{Begin: begin, End: begin + ms, Leaf: account.Leaf(evil()),
			Class: account.ClassOwn, Site: 1, Detail: 1, Stack: 1}},
		Lanes: []account.Lane{{Kind: account.LaneKind(evil()), Name: evil(),
			Spans: []account.Span{{Begin: begin, End: begin + ms, State: account.Leaf(evil()),
				Detail: 1, By: 1, On: 1, Stack: 1}}}},
	}}
	l.Sketches = account.Sketches{
		Accounts: []account.Named{{Leaf: account.Leaf(evil()), Site: evil()}},
		Lanes:    []account.Lane{{Kind: account.LaneKind(evil()), Name: evil()}},
		Names:    []string{"", evil()}, Stacks: l.Stories[0].Stacks,
		List: []account.Sketch{{Begin: begin + ms, End: begin + 3*ms, Entry: evil(), Name: evil(),
			Parts: []account.Part{{NS: ms}},
			Chain: []account.Link{{Begin: begin + ms, End: begin + 3*ms, Leaf: account.Leaf(evil()),
				Site: 1, Detail: 1, Stack: 1}}}},
	}
	l.Waits = account.Waits{{Parent: -1, NS: 3}, {Name: evil(), Leaf: account.Leaf(evil()), NS: 3},
		{Parent: 1, Name: evil(), Leaf: account.Leaf(evil()), NS: 2}}
	l.Curves = []account.Curve{{Kind: account.CurveRunnable,
		Points: []account.CurvePoint{{At: begin, Value: 1}, {At: begin + ms, Value: 2}}}}
	l.Locks = []account.Lock{{Sites: []string{evil()}, SlowNS: 1, WaitNS: 1,
		Holders:  []account.Instead{{Who: evil(), Kind: account.InsteadKind(evil()), NS: 1}},
		HolderNS: map[string]int64{evil(): 1}, Stack: []account.Site{{Func: evil(), File: evil()}}}}
	s.Ledger = &l
	s.Found.Findings = []finding.Finding{{Cause: evil(), Title: evil(),
		Confidence: finding.Confidence(evil()), Summary: evil(),
		Evidence: []finding.Evidence{{Text: evil(), Source: evil()}}, Remedy: []string{evil()},
		Verify: evil(), BecauseOf: ""}}
	s.Found.RuledOut = []finding.RuledOut{{Cause: evil(), Why: evil()}}
	s.Found.NotChecked = []finding.NotChecked{{Cause: evil(), Missing: []string{evil()}}}
	s.Cost.Recorder = []string{evil()}
	s.Attached = &Attached{
		State: evil(), Notes: []string{evil()},
		Unknown: []AttachedUnknown{{Where: Where{File: evil(), First: 1, Last: 2}, Guess: evil()}},
		Next:    []AttachedNext{{Command: evil(), Why: evil()}},
		Parts: []AttachedPart{{Where: Where{File: evil(), First: 1}, Title: evil(), State: evil(),
			Figures: []string{evil()}, Means: evil(), Not: evil(), Flaws: []string{evil()}}},
		Causes: []AttachedCause{{Cause: evil(), Grade: evil(), Title: evil()}},
	}
	return s
}

// No name becomes markup, a script, a style or a request, wherever it stands. Each page has all
// attacks, each time in other places.
func TestAttacks(t *testing.T) {
	b := browser.New(t)
	const pages = 6
	for i := range pages {
		n := i * len(attacks) / pages
		evil := func() string { n++; return attacks[n%len(attacks)] }
		name := filepath.Join(t.TempDir(), "attack.html")
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := New(attacked(evil)).HTML(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
		p := b.Open(t, name, browser.Look{Width: 1000, Height: 800})
		for _, acts := range []string{"#verdict", "#ledger .part", "#latency canvas",
			"#flame canvas", "#locks .lock", "#curves canvas", "#pauses .pause", "#attached article"} {
			if p.Count(acts) == 0 {
				t.Errorf("page %d: no %s", i, acts)
			}
		}
		p.Click("#ledger .part")
		p.Click("#ledger .part")
		p.Type("#latency canvas", "+")
		p.Type("#story canvas", "j")
		p.Type("#flame canvas", "\r")
		if p.Count("#story .stack li") != 1 {
			t.Errorf("page %d: no stack", i)
		}
		p.Type("#story canvas", "n") // the other one, which is kept in short
		p.Type("#story canvas", "j")
		if p.Count("#story .stack li") != 1 || !strings.HasPrefix(p.Text("#story h3"), "2 of 2") {
			t.Errorf("page %d: %s: no stack", i, p.Text("#story h3"))
		}
		var harm string
		p.Ask(`[document.title.startsWith("attacked") ? "title" : "", window.attacked ? "script" : "", document.querySelectorAll("script").length !== 2 ? "scripts" : "",
			document.querySelectorAll("img,svg,iframe,object,embed,base,link,form,[onload],[onerror],[onmouseover]").length ? "elements" : "",
			[...document.querySelectorAll("a")].some(a => !a.getAttribute("href").startsWith("#")) ? "links" : "",
			document.documentElement.scrollWidth > innerWidth ? "too wide" : ""].filter(Boolean).join(" ")`, &harm)
		if harm != "" {
			t.Errorf("page %d: %s", i, harm)
		}
		for _, s := range p.Problems() {
			t.Errorf("page %d: %s", i, s)
		}
	}
}
