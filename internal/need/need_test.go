package need

import (
	"fmt"
	"testing"
)

// outcome is a testing.TB that remembers how the test ended instead of ending it.
type outcome struct {
	testing.TB
	how, text string
}

func (o *outcome) Helper()                   {}
func (o *outcome) Fatalf(f string, a ...any) { o.how, o.text = "failed", fmt.Sprintf(f, a...) }
func (o *outcome) Skipf(f string, a ...any)  { o.how, o.text = "skipped", fmt.Sprintf(f, a...) }

func TestMissing(t *testing.T) {
	for _, c := range []struct{ require, need, want string }{
		{"", "wrk", "skipped"},
		{"bpf", "wrk", "skipped"},
		{"bpf, wrk", "wrk", "failed"},
		{"all", "wrk", "failed"},
		{"wrk2", "wrk", "skipped"},
	} {
		t.Setenv(Require, c.require)
		o := &outcome{TB: t}
		Missing(o, c.need, "not here")
		if o.how != c.want {
			t.Errorf("%s=%q: a test that needs %s is %s, want %s", Require, c.require, c.need, o.how, c.want)
		}
	}
}

func TestTool(t *testing.T) {
	t.Setenv(Require, "")
	o := &outcome{TB: t}
	if Tool(o, "go"); o.how != "" {
		t.Errorf("go, which runs this test, is not found: %s", o.text)
	}
	if Tool(o, "no-such-tool-7"); o.how != "skipped" {
		t.Errorf("a missing tool: %q, want skipped", o.how)
	}
}
