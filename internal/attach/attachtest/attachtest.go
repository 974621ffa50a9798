// Package attachtest runs samples of pastes as tests. A sample is NAME.txtar: its comment says what
// is true of it, in a person's words; the file "paste" is what was attached (or "paste1" and so on,
// each a file of its own); the file "want" says, a line each, in any order:
//
//	kind: vmstat N                      a part, in the order of the paste; all must be listed
//	says: 95 % idle                     stands in the title, figures, meaning or limits of a part
//	state: cannot tell                  of all parts together: the worst
//	sign: found frequent-gc supported   all signs but "against" must be listed; no confidence
//	                                    where the grade is not found; "sign: outside" alone
//	never: disk-wait                    no sign of this cause but "against"
//	unknown: 3-7                        these lines are known to no kind; all must be listed but
//	                                    prompts, and a sentence right above a part, which titles it
//
// A sample that no kind may take for its own has no kind line: all of it is unknown.
package attachtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/attach/kinds"
	"github.com/whystall/whystall/internal/format/paste"
)

// Run runs all samples of a folder.
func Run(t *testing.T, dir string) {
	names, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatal("a room without samples")
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			sample(t, txtar.Parse(data))
		})
	}
}

func sample(t *testing.T, a *txtar.Archive) {
	var got said
	var want []string
	for _, f := range a.Files {
		if f.Name == "want" {
			want = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
			continue
		}
		parts, unknown := attach.Cut(f.Name, paste.Lines(f.Data), kinds.Table())
		for _, p := range parts {
			got.add(p)
		}
		for _, r := range unknown {
			got.unknown = append(got.unknown, fmt.Sprintf("%d-%d", r.First, r.Last))
		}
	}
	if strings.TrimSpace(string(a.Comment)) == "" {
		t.Error("the sample does not say what is true of it")
	}
	wanted := map[string][]string{}
	for _, line := range want {
		key, value, ok := strings.Cut(line, ": ")
		if !ok {
			t.Errorf("want: a line without a key: %q", line)
		}
		wanted[key] = append(wanted[key], strings.TrimSpace(value))
	}
	compare(t, "kind", got.kinds, wanted["kind"])
	compare(t, "unknown", got.unknown, wanted["unknown"])
	slices.Sort(got.signs)
	slices.Sort(wanted["sign"])
	compare(t, "sign", slices.Compact(got.signs), wanted["sign"])
	if s := wanted["state"]; len(got.kinds) > 0 && (len(s) != 1 || s[0] != string(got.state)) {
		t.Errorf("state: got %q, want %q", got.state, s)
	}
	for _, s := range wanted["says"] {
		if !strings.Contains(got.text.String(), s) {
			t.Errorf("says: want %q in\n%s", s, got.text.String())
		}
	}
	for _, cause := range wanted["never"] {
		if slices.Contains(got.causes, cause) {
			t.Errorf("never: %s has a sign", cause)
		}
	}
}

func compare(t *testing.T, what string, got, want []string) {
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// said is what all parts of a sample said.
type said struct {
	kinds, signs, causes, unknown []string
	state                         attach.State
	text                          strings.Builder
}

func (s *said) add(p *attach.Part) {
	s.kinds = append(s.kinds, p.Kind.Name)
	if p.Kind.Read == nil {
		s.text.WriteString(p.Kind.Refused + "\n")
		s.worse(attach.CannotTell)
		return
	}
	r := p.Kind.Read(p)
	s.worse(r.State)
	for _, line := range slices.Concat([]string{r.Title}, r.Figures, []string{r.Means, r.Not}, r.Flaws) {
		s.text.WriteString(line + "\n")
	}
	for _, sign := range r.Signs {
		switch sign.Grade {
		case attach.Against:
			continue
		case attach.Found:
			s.signs = append(s.signs, fmt.Sprintf("%s %s %s", sign.Grade, sign.Cause, sign.Sure))
		case attach.Outside:
			s.signs = append(s.signs, string(sign.Grade))
		default:
			s.signs = append(s.signs, fmt.Sprintf("%s %s", sign.Grade, sign.Cause))
		}
		s.causes = append(s.causes, sign.Cause)
		for _, line := range append(sign.Proof, sign.Where) {
			s.text.WriteString(line + "\n")
		}
	}
}

// worse keeps the worst state of all parts.
func (s *said) worse(state attach.State) {
	rank := []attach.State{"", attach.Healthy, attach.Context, attach.CannotTell, attach.Ill}
	if slices.Index(rank, state) > slices.Index(rank, s.state) {
		s.state = state
	}
}
