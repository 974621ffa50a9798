package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A test of pages is worth nothing if it does not hear what goes wrong.
func TestHearsProblems(t *testing.T) {
	b := New(t)
	for want, html := range map[string]string{
		"boom":             `<script>throw new Error("boom")</script>`,
		"oops":             `<script>console.error("oops")</script>`,
		"asks for":         `<img src="x.png">`,
		"Content Security": `<meta http-equiv="Content-Security-Policy" content="script-src 'none'"><script>1</script>`,
	} {
		name := filepath.Join(t.TempDir(), "bad.html")
		if err := os.WriteFile(name, []byte("<!doctype html><body>"+html), 0o600); err != nil {
			t.Fatal(err)
		}
		p := b.Open(t, name, Look{Width: 300, Height: 300})
		if said := strings.Join(p.Problems(), "\n"); !strings.Contains(said, want) {
			t.Errorf("%s: heard %q", html, said)
		}
	}
	name := filepath.Join(t.TempDir(), "good.html")
	if err := os.WriteFile(name,
		[]byte(`<!doctype html><button onclick="this.textContent='hit'">x</button>`), 0o600); err != nil {
		t.Fatal(err)
	}
	p := b.Open(t, name, Look{Width: 300, Height: 300})
	p.Click("button")
	if p.Text("button") != "hit" || len(p.Problems()) != 0 {
		t.Errorf("a good page: %q, %q", p.Text("button"), p.Problems())
	}
}

// A golden forgives what smoothing changes, and nothing that a person would see.
func TestGolden(t *testing.T) {
	b := New(t)
	shot := func(html string) []byte {
		name := filepath.Join(t.TempDir(), "page.html")
		if err := os.WriteFile(name,
			[]byte("<!doctype html><meta charset=utf-8><body style='margin:0'>"+html), 0o600); err != nil {
			t.Fatal(err)
		}
		return b.Open(t, name, Look{Width: 600, Height: 400}).Screenshot()
	}
	golden := filepath.Join(t.TempDir(), "golden.png")
	page := func(colour, word string) string {
		return `<div style="height:200px;background:` + colour + `"></div><p>` + word + `</p>`
	}
	if err := Golden(shot(page("#c33", "one")), golden, true); err != nil {
		t.Fatal(err)
	}
	if err := Golden(shot(page("#c33", "two")), golden, false); err != nil {
		t.Errorf("another word: %v", err)
	}
	if err := Golden(shot(page("#33c", "one")), golden, false); err == nil {
		t.Error("another colour is not seen")
	}
}
