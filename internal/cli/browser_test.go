package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/whystall/whystall/internal/browser"
)

var update = flag.Bool("update", false, "rewrite the screenshots")

// written writes a report of files and returns its name.
func written(t *testing.T, files ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "report.html")
	var stderr bytes.Buffer
	status := Main(append(append([]string{"report"}, files...), "-o", name), strings.NewReader(""),
		&bytes.Buffer{}, &stderr, os.Getenv)
	if status != statusFound && status != statusNothing {
		t.Fatalf("report %s: status %d: %s", files, status, stderr.String())
	}
	if st, err := os.Stat(name); err != nil || st.Size() > 5<<20 {
		t.Fatalf("report %s: %v, %d bytes", files, err, st.Size())
	}
	return name
}

func healthy(t *testing.T, p *browser.Page) {
	t.Helper()
	for _, s := range p.Problems() {
		t.Error(s)
	}
}

// A page of an ill recording of each case of the lab, and of two healthy ones, shows its answer and
// has no error.
func TestPages(t *testing.T) {
	b := browser.New(t)
	files, err := filepath.Glob("testdata/lab/*.*.case")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".case")
		if !strings.HasSuffix(name, ".ill") && file != healthyCase && name != "logger-lock.healthy" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			p := b.Open(t, written(t, file), browser.Look{Width: 1280, Height: 900})
			if s := p.Text("#verdict h2"); s == "" {
				t.Error("no verdict")
			}
			if strings.Contains(name, ".ill") && p.Count("article.finding") == 0 {
				t.Error("no finding")
			}
			if p.Count("#ledger .part") == 0 && p.Text("#ledger") != "" {
				t.Error("the ledger has no bars")
			}
			healthy(t, p)
		})
	}
}

const (
	illCase     = "testdata/lab/gomaxprocs-over-quota.ill.case"
	healthyCase = "testdata/lab/sched-latency.healthy.case"
)

// What a person does with the mouse and by keys does what it says.
func TestPageActs(t *testing.T) {
	p := browser.New(t).Open(t, written(t, illCase), browser.Look{Width: 1280, Height: 900})
	rows := p.Count("table.slowest tbody tr")
	p.Click("#ledger .part[data-row='2']")
	if p.Count("#ledger tr.chosen") != 1 || p.Count(".clear") != 1 {
		t.Error("a click on a part of the bar filters nothing")
	}
	if n := p.Count("table.slowest tbody tr"); n == 0 || n >= rows {
		t.Errorf("%d of %d requests are left by the filter", n, rows)
	}
	p.Click(".clear")
	if n := p.Count("table.slowest tbody tr"); n != rows || p.Count("#ledger tr.chosen") != 0 {
		t.Errorf("%d of %d requests are back", n, rows)
	}
	p.Type("#ledger button.account[data-row='1']", "\r")
	if p.Count("#ledger tr.chosen") != 1 {
		t.Error("Enter on an account filters nothing")
	}
	p.Click(".clear")
	// A zoom changes the picture, and the key 0 brings it back.
	shown := func() (s string) {
		p.Settle()
		p.Ask(`document.querySelector("#latency canvas").toDataURL()`, &s)
		return s
	}
	first := shown()
	p.Drag("#latency canvas", 0.3, 0.5)
	if shown() == first {
		t.Error("a drag does not zoom")
	}
	p.Type("#latency canvas", "0")
	if shown() != first {
		t.Error("0 does not show all again")
	}
	p.Type("#latency canvas", "+")
	if shown() == first {
		t.Error("+ does not zoom")
	}
	p.Click("#about summary")
	healthy(t, p)
}

// The flame graph goes down and up by keys and by mouse, and follows the filter of the ledger.
func TestPageFlame(t *testing.T) {
	p := browser.New(t).Open(t, written(t, "testdata/lab/lock-contention.ill.case"),
		browser.Look{Width: 1280, Height: 900})
	trail := func() string { return p.Text("#flame .trail") }
	all := trail()
	p.Type("#flame canvas", kb.ArrowDown)
	cause := trail()
	p.Type("#flame canvas", kb.ArrowDown)
	if whose := trail(); cause == all || !strings.Contains(whose, "›") {
		t.Errorf("down goes from %q to %q to %q", all, cause, whose)
	}
	p.Type("#flame canvas", "\r")
	p.Type("#flame canvas", "0")
	if trail() != all {
		t.Errorf("0 shows %q, not %q", trail(), all)
	}
	p.Click("#ledger .part[data-row='0']")
	if trail() == all {
		t.Error("the filter of the ledger does not reach the flame graph")
	}
	p.Drag("#flame canvas", 0.3, 0.3)
	for _, part := range []string{"#pauses .pause", "#locks .lock", "#curves canvas", "#uses .use",
		"#threads tbody tr"} {
		if p.Count(part) == 0 {
			t.Errorf("no %s", part)
		}
	}
	first := p.Count("#curves canvas")
	p.Drag("#curves canvas", 0.3, 0.6)
	if p.Count("#curves canvas") != first {
		t.Error("a zoom removes curves")
	}
	healthy(t, p)
}

// A slow request is opened, walked and left for the next by mouse and by keys.
func TestPageStory(t *testing.T) {
	p := browser.New(t).Open(t, written(t, "testdata/lab/lock-contention.ill.case"),
		browser.Look{Width: 1280, Height: 900})
	title := func() string { return p.Text("#story h3") }
	first := title()
	p.Type("#story canvas", "n")
	second := title()
	if first == "" || second == first {
		t.Errorf("n goes from %q to %q", first, second)
	}
	p.Type("#story canvas", "p")
	if title() != first {
		t.Errorf("p goes back to %q, not to %q", title(), first)
	}
	p.Click("#slowest tr:nth-child(3) button.open")
	if !strings.HasPrefix(title(), "3 of") || p.Count("#slowest tr.chosen") != 1 {
		t.Errorf("a click on the third request opens %q", title())
	}
	if p.Count("#story .span") != 0 {
		t.Error("a stretch is told before one is chosen")
	}
	if p.Count("#story .use li") == 0 {
		t.Error("the request's own parts are not listed")
	}
	seen := map[string]bool{}
	for range 6 {
		p.Type("#story canvas", "j")
		seen[p.Text("#story .span")] = true
	}
	if len(seen) < 5 {
		t.Errorf("j walks over %d stretches", len(seen))
	}
	p.Drag("#story canvas", 0.5, 0.5) // a click
	if p.Text("#story .span h3") == "" {
		t.Error("a click on a lane tells nothing")
	}
	p.Drag("#story canvas", 0.4, 0.6)
	p.Type("#story canvas", "0")
	stacks := 0
	for range 40 {
		p.Type("#story canvas", "j")
		stacks += p.Count("#story .stack li")
	}
	if stacks == 0 {
		t.Error("no stack is shown")
	}
	healthy(t, p)
}

// A person zooms on a page of a real recording without an error. How long that takes is said, and
// no test: the machine may be busy.
func TestPageKeepsUp(t *testing.T) {
	p := browser.New(t).Open(t, written(t, "testdata/lab/sched-latency.ill.case"),
		browser.Look{Width: 1280, Height: 900})
	var median float64
	p.Ask(`(async () => {
		const c = document.querySelector("#story canvas"), took = [];
		for (let i = 0; i < 60; i++) {
			const from = performance.now();
			c.dispatchEvent(new WheelEvent("wheel", {deltaY: i % 2 ? 60 : -80, ctrlKey: true, clientX: 600, clientY: 50}));
			await new Promise(requestAnimationFrame);
			took.push(performance.now() - from);
		}
		return took.sort((a, b) => a - b)[30];
	})()`, &median)
	t.Logf("the median of 60 zooms takes %.1f ms with its frame", median)
	healthy(t, p)
}

// Screenshots, looked at by a person when they were made: light and dark, narrow, in print.
func TestPageLooks(t *testing.T) {
	b := browser.New(t)
	ill, well := written(t, illCase), written(t, healthyCase)
	for name, c := range map[string]struct {
		file string
		look browser.Look
	}{
		"light":   {ill, browser.Look{Width: 1280, Height: 900}},
		"dark":    {ill, browser.Look{Width: 1280, Height: 900, Dark: true}},
		"narrow":  {ill, browser.Look{Width: 400, Height: 800}},
		"print":   {ill, browser.Look{Width: 800, Height: 1100, Print: true}},
		"healthy": {well, browser.Look{Width: 1280, Height: 900}},
	} {
		p := b.Open(t, c.file, c.look)
		var wider bool
		if p.Ask("document.documentElement.scrollWidth > innerWidth", &wider); wider {
			t.Errorf("%s: the page is wider than the window", name)
		}
		p.Ask(`document.querySelector("#about > p.dim")?.remove() ?? true`, new(any)) // how long explaining took
		shot := p.Screenshot()
		if dir := os.Getenv("WHYSTALL_SHOTS"); dir != "" { // for a person to look at
			if err := os.WriteFile(filepath.Join(dir, name+".png"), shot, 0o644); err != nil {
				t.Error(err)
			}
		}
		if err := browser.Golden(shot, filepath.Join("testdata", "looks", name+".png"), *update); err != nil {
			t.Error(err)
		}
		healthy(t, p)
	}
}
