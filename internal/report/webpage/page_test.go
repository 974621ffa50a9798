package webpage

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// attacks are what a symbol, a path or a line of a log may hold.
var attacks = []string{
	`</script><script>document.title="attacked"</script>`, `<!--<script>`, `]]>`,
	`</style><img src=x onerror=attack()>`, "\u2028attack()\u2029",
	`javascript:attack()`, `" onload="attack()`, `'-attack()-'`, `&lt;b&gt;`, "\x1b]0;x\x07",
	"\u202egnp.exe", "\xff\xfe", `\x1b`, "\uf8f0forged\uf8f1", `{{7*7}}${7*7}`, "a\x00b",
}

func hostile() *Model {
	m := &Model{Verdict: Verdict{Kind: Found}, Ledger: &Ledger{}}
	for _, a := range attacks {
		m.Title += a
		m.Facts = append(m.Facts, Fact{a, a})
		m.Verdict.Text = append(m.Verdict.Text, a)
		m.Findings = append(m.Findings, Finding{Cause: a, Summary: a, Amount: a,
			Remedy: []string{a}, Evidence: []Evidence{{a, a}}})
		m.Ledger.Rows = append(m.Ledger.Rows, Row{Leaf: a, Label: a, More: []Fact{{a, a}}})
		m.Slowest = append(m.Slowest, Request{Name: a, Why: a, Parts: []Part{{Label: a}}})
	}
	return m
}

// Nothing of the data can end the element in which it lies, or be read as markup outside it.
func TestDataAreNoMarkup(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, hostile()); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	data := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindStringSubmatch(text)
	if data == nil {
		t.Fatal("no data")
	}
	if strings.ContainsAny(data[1], "<>&\u2028\u2029") {
		t.Error("the data hold a character that HTML or an old script would act upon")
	}
	if err := json.Unmarshal([]byte(data[1]), new(Model)); err != nil {
		t.Errorf("the data are no JSON: %v", err)
	}
	for element, want := range map[string]int{"<script": 2, "</script": 2, "<style": 1,
		"</style": 1, "<img": 0, "<!--": 0} {
		if n := strings.Count(text, element); n != want {
			t.Errorf("%q %d times, want %d", element, n, want)
		}
	}
}

// The policy in the file names the very script and style in it, and the page asks for nothing.
func TestPolicy(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, &Model{}); err != nil {
		t.Fatal(err)
	}
	for _, part := range [][]byte{script, style} {
		if len(part) == 0 {
			t.Error("a part of the bundle is empty")
		}
		if bytes.Contains(bytes.ToLower(part), []byte("</s")) {
			t.Error("a part of the bundle would end its own element")
		}
	}
	if strings.Contains(b.String(), "unsafe-") || !strings.Contains(b.String(), "default-src &#39;none&#39;") {
		t.Error("the policy permits more than this script and style")
	}
	if m := regexp.MustCompile(`(?:src|href)="[^"#]+"`).FindString(b.String()); m != "" {
		t.Errorf("the page asks for %s", m)
	}
}

// An escape can be told from a backslash that was in the name, and a mark cannot be forged.
func TestMarked(t *testing.T) {
	for in, want := range map[string]string{
		"main.run":        "main.run",
		`\x1b`:            `\x1b`,
		"\x1b":            "\uf8f0\\x1b\uf8f1",
		"a\nb":            "a\uf8f0\\n\uf8f1b",
		"\xff":            "\uf8f0\\xff\uf8f1",
		"\u202e":          "\uf8f0\\u202e\uf8f1",
		"\uf8f0forged":    "\uf8f0\\uf8f0\uf8f1forged",
		"\U000e0041":      "\uf8f0\\U000e0041\uf8f1",
		"Größe 大小 \ufffd": "Größe 大小 \ufffd",
	} {
		if got := Marked(in); got != want {
			t.Errorf("Marked(%q) = %q, want %q", in, got, want)
		}
	}
}
