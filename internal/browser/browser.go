package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/whystall/whystall/internal/need"
)

// patience is for a page that hangs: no test waits for a time.
const patience = 2 * time.Minute

// Browser is a Chromium without a window.
type Browser struct{ ctx context.Context }

// New starts a browser, which ends with the test. Short runs, such as the race detector's, go
// without: what a browser does is no news to them.
func New(t testing.TB) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("opens a browser")
	}
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			program = p
			break
		}
	}
	if program == "" {
		need.Missing(t, "chromium", "no chromium in PATH")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("font-render-hinting", "none"))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // its sandbox does not work for root
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(func() { end(); stop() })
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	return &Browser{ctx}
}

// Look is how a page is seen.
type Look struct {
	Width, Height int64
	Dark, Print   bool
}

// Page is an open page.
type Page struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	problems []string
}

// Open opens a file as a person would from disk. Whatever the page fetches beside itself is a
// problem, as are errors on its console.
func (b *Browser) Open(t testing.TB, file string, l Look) *Page {
	t.Helper()
	ctx, end := chromedp.NewContext(b.ctx)
	ctx, late := context.WithTimeout(ctx, patience)
	p := &Page{t: t, ctx: ctx}
	t.Cleanup(func() { late(); end() })
	url := "file://" + file
	chromedp.ListenTarget(ctx, func(ev any) { p.hear(ev, url) })
	scheme, media := "light", "screen"
	if l.Dark {
		scheme = "dark"
	}
	if l.Print {
		media = "print"
	}
	p.run(network.Enable(), log.Enable(), chromedp.EmulateViewport(l.Width, l.Height),
		emulation.SetEmulatedMedia().WithMedia(media).WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.Navigate(url), chromedp.WaitReady("body"))
	p.Settle()
	return p
}

func (p *Page) hear(ev any, url string) {
	add := func(format string, args ...any) {
		p.mu.Lock()
		p.problems = append(p.problems, fmt.Sprintf(format, args...))
		p.mu.Unlock()
	}
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		add("exception: %s", e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			for _, a := range e.Args {
				add("console.%s: %s%s", e.Type, a.Value, a.Description)
			}
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			add("%s: %s", e.Entry.Level, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if u, _, _ := strings.Cut(e.Request.URL, "#"); u != url {
			add("the page asks for %.200s", e.Request.URL)
		}
	case *page.EventJavascriptDialogOpening:
		add("the page opens a dialog: %s", e.Message)
	}
}

func (p *Page) run(actions ...chromedp.Action) {
	p.t.Helper()
	if err := chromedp.Run(p.ctx, actions...); err != nil {
		p.t.Fatalf("drive the browser: %v", err)
	}
}

// Settle waits until what was asked for has been drawn.
func (p *Page) Settle() {
	p.t.Helper()
	p.Ask(`new Promise(f => requestAnimationFrame(() => requestAnimationFrame(() => f(true))))`, new(bool))
}

// Ask evaluates an expression and stores its value. A promise is awaited.
func (p *Page) Ask(js string, value any) {
	p.t.Helper()
	p.run(chromedp.Evaluate(js, value,
		func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
}

// Text is what a person reads in the first element of the selector, "" if there is none.
func (p *Page) Text(selector string) (s string) {
	p.t.Helper()
	p.Ask(fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector), &s)
	return s
}

// Count is how many elements there are of the selector that can be seen.
func (p *Page) Count(selector string) (n int) {
	p.t.Helper()
	p.Ask(fmt.Sprintf(`[...document.querySelectorAll(%q)].filter(e => e.offsetParent !== null).length`, selector), &n)
	return n
}

// Click clicks the first element of the selector.
func (p *Page) Click(selector string) {
	p.t.Helper()
	p.run(chromedp.ScrollIntoView(selector, chromedp.ByQuery), chromedp.Click(selector, chromedp.ByQuery))
	p.Settle()
}

// Type gives the first element of the selector the focus and types keys.
func (p *Page) Type(selector, keys string) {
	p.t.Helper()
	p.run(chromedp.Focus(selector, chromedp.ByQuery), chromedp.KeyEvent(keys))
	p.Settle()
}

// Drag presses the left button at one part of an element's width and releases it at another.
func (p *Page) Drag(selector string, from, to float64) {
	p.t.Helper()
	var r struct{ X, Y, Width, Height float64 }
	p.run(chromedp.ScrollIntoView(selector, chromedp.ByQuery))
	p.Ask(fmt.Sprintf(`(r => ({X: r.x, Y: r.y, Width: r.width, Height: r.height}))(document.querySelector(%q).getBoundingClientRect())`, selector), &r)
	y := r.Y + r.Height/3
	at := func(part float64) float64 { return r.X + r.Width*part }
	p.run(chromedp.MouseEvent("mouseMoved", at(from), y),
		chromedp.MouseEvent("mousePressed", at(from), y, chromedp.ButtonLeft, chromedp.ClickCount(1)),
		chromedp.MouseEvent("mouseMoved", at((from+to)/2), y, chromedp.ButtonLeft),
		chromedp.MouseEvent("mouseMoved", at(to), y, chromedp.ButtonLeft),
		chromedp.MouseEvent("mouseReleased", at(to), y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	p.Settle()
}

// Screenshot is the whole page as PNG.
func (p *Page) Screenshot() (png []byte) {
	p.t.Helper()
	p.run(chromedp.FullScreenshot(&png, 100))
	return png
}

// Problems is what went wrong on the page so far.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.problems...)
}
