package oncpu

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

var update = flag.Bool("update", false, "rewrite testdata")

// TestStacks: what samples of real programs met. testdata/stacks.txt has a block for each stack:
// what it was recorded of, what it means, the kernel's functions (K) and the program's (U), the
// innermost first, with "scanned" for those that may never have been called.
func TestStacks(t *testing.T) {
	text, err := os.ReadFile("testdata/stacks.txt")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	made := map[string]interpreters{} // by program
	for part := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		b := parseBlock(part)
		in, ok := made[b.of]
		if !ok {
			in = interpreters{modules: map[string]bool{}}
		}
		in.look(b.user)
		made[b.of] = in
		blocks = append(blocks, b)
	}
	var out strings.Builder
	for _, b := range blocks {
		got := describe(workOf(b.kernel, b.user, made[b.of]))
		if got != b.want && !*update {
			t.Errorf("%s\n got %s\nwant %s", strings.Join(b.lines, "\n"), got, b.want)
		}
		fmt.Fprintf(&out, "# %s\nwant %s\n%s\n\n", b.of, got, strings.Join(b.lines, "\n"))
	}
	if *update {
		if err := os.WriteFile("testdata/stacks.txt", []byte(strings.TrimSpace(out.String())+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

type block struct {
	of, want     string
	lines        []string
	kernel, user []kernel.Frame
}

func parseBlock(text string) (b block) {
	for line := range strings.SplitSeq(text, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "#":
			b.of = rest
			continue
		case "want":
			b.want = rest
			continue
		case "K":
			b.kernel = append(b.kernel, kernel.Frame{Func: rest, Module: "kernel"})
		case "U":
			rest, scanned := strings.CutSuffix(rest, " scanned")
			at := strings.LastIndex(rest, "@")
			b.user = append(b.user, kernel.Frame{Func: rest[:at], Module: rest[at+1:], Inferred: scanned})
		}
		b.lines = append(b.lines, line)
	}
	return b
}

func describe(k Key) string {
	s := fmt.Sprintf("%s: %s", k.Kind, k.Name)
	if k.Site.Func != "" {
		s += " | from " + k.Site.Func
	}
	if k.Late != "" {
		s += " | late " + k.Late
	}
	if k.Churn {
		s += " | churn"
	}
	return s
}
