package goruntime

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// errorStack is the stack of an error, as zap and packages of errors print it: each call without
// arguments, its place below it, and no goroutine. It is where the error was made or logged.
var errorStack = &attach.Kind{
	Name:    "stack of an error",
	Hints:   []string{".(*", ".func", "main.", ".com/", ".org/", ".io/"},
	Claim:   claimErrorStack,
	Reports: true,
	Read:    readErrorStack,
}

// errorCall knows "main.(*shop).price" alone on its line.
func errorCall(s string) bool {
	s = strings.TrimSpace(s)
	slash := strings.LastIndexByte(s, '/')
	if len(s) < 3 || len(s) > 400 || strings.ContainsAny(s, " \t,;=\"'<>@%") || !isName(s[0]) {
		return false
	}
	name := s[slash+1:]
	dot := strings.IndexByte(name, '.')
	return dot > 0 && dot+1 < len(name) && (isName(name[dot+1]) || name[dot+1] == '(') &&
		!strings.HasSuffix(name, ")") && !strings.Contains(name, ":")
}

func isName(b byte) bool { return isLetter(b) || b == '_' }

// errorPlace knows the place below a call: a tab, a path, and nothing behind the line's number.
func errorPlace(s string) bool {
	_, ok := parsePlace(s)
	return ok && !strings.Contains(s, "+0x") && strings.ContainsAny(s[:min(len(s), 1)], " \t")
}

// leastCalls is how many calls with their places are no chance.
const leastCalls = 2

func claimErrorStack(lines []paste.Line) int {
	n := 0
	for n+1 < len(lines) && lines[n].Command == "" && lines[n+1].Command == "" &&
		errorCall(lines[n].Text) && errorPlace(lines[n+1].Text) {
		n += 2
	}
	if n > 0 && n < len(lines) && n+1 >= len(lines) && lines[n].Command == "" && errorCall(lines[n].Text) {
		n++ // its place is cut off
	}
	return attach.ClaimIf(n >= 2*leastCalls, n)
}

// errorMakers are packages whose functions make errors or log them.
var errorMakers = []string{"github.com/pkg/errors.", "github.com/pingcap/errors.",
	"github.com/cockroachdb/errors", "golang.org/x/xerrors.", "go.uber.org/zap", "errors.",
	"github.com/go-logr/", "github.com/pingcap/log", "github.com/sirupsen/logrus", "runtime."}

func readErrorStack(p *attach.Part) attach.Reading {
	var frames []frame
	for i, line := range p.Lines {
		if errorCall(line.Text) && len(frames) < 256 {
			f := frame{fn: goName(strings.TrimSpace(line.Text))}
			if i+1 < len(p.Lines) {
				f.at, _ = parsePlace(p.Lines[i+1].Text)
			}
			frames = append(frames, f)
		}
	}
	r := attach.Reading{Title: "the stack of an error of a Go program, " + count(len(frames), "call", "calls"),
		State: attach.CannotTell,
		Means: "it says where an error was made or logged",
		Not:   "that anybody waits there, or how long anything took"}
	for i, f := range frames {
		if hasPrefix(f.fn, errorMakers) {
			continue
		}
		line := "in " + f.fn + at(f.at)
		if i+1 < len(frames) {
			line += fmt.Sprintf(", called by %s%s", frames[i+1].fn, at(frames[i+1].at))
		}
		r.Figures = []string{line}
		break
	}
	return r
}
