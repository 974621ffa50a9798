package goruntime

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// editorDump is the stacks that GoLand's debugger writes: "Goroutine 7", a line for each call with
// its place in parentheses, and who started it. It has no states, no arguments and no times.
var editorDump = &attach.Kind{
	Name:    "goroutines as an editor lists them",
	Hints:   []string{"Goroutine ", "/src/runtime/"},
	Claim:   claimEditor,
	Reports: true,
	Read: func(p *attach.Part) attach.Reading {
		return readDump(p, parseEditor(p.Lines))
	},
}

var (
	// A word behind the number is the function, or what a person named it.
	editorHead  = pattern.New(`^\s*\*?\s*Goroutine (\d{1,9})(?: [^-:]{1,120})?:?$`)
	editorFrame = pattern.New(`^\s*(created at: )?(\S{1,400}) \((\S.{0,400}:\d{1,7}|<[\w .]{1,40}>)\)$`)
)

// editorCall parses "  sync.(*Mutex).Lock (/usr/local/go/src/sync/mutex.go:81)".
func editorCall(s string) (f frame, created, ok bool) {
	if !strings.HasSuffix(s, ")") { // the cheap question first
		return f, false, false
	}
	m := editorFrame.FindStringSubmatch(s)
	if m == nil || !strings.Contains(m[2], ".") {
		return f, false, false
	}
	at, isPlace := parsePlace(m[3])
	if !isPlace && !strings.HasPrefix(m[3], "<") {
		return f, false, false
	}
	return frame{fn: goName(m[2]), at: at}, m[1] != "", true
}

// claimEditor takes headers and calls. Without a call of the runtime, which is on top of each stack
// that waits, it could be another program's.
func claimEditor(lines []paste.Line) int {
	heads, calls, own := 0, 0, 0
	end := 0
	for i, line := range lines {
		if line.Command != "" {
			break
		}
		f, _, isCall := editorCall(line.Text)
		switch {
		case isCall:
			calls++
			if strings.HasPrefix(f.fn, "runtime.") {
				own++
			}
		case editorHead.MatchString(line.Text):
			heads++
		case strings.TrimSpace(line.Text) == "" || line.Elided:
			continue
		case calls > 0 && end == i && strings.HasPrefix(line.Text, " ") && i+1 == len(lines):
			// the last line is cut
		default:
			return attach.ClaimIf(heads > 0 && calls > 1 && own > 0, end)
		}
		end = i + 1
	}
	return attach.ClaimIf(heads > 0 && calls > 1 && own > 0, end)
}

func parseEditor(lines []paste.Line) *dump {
	d := &dump{timeless: true}
	var s *stack
	for _, line := range lines {
		if m := editorHead.FindStringSubmatch(line.Text); m != nil {
			s = &stack{count: 1}
			s.id, _ = whole(m[1])
			if len(d.stacks) < maxStacks {
				d.stacks = append(d.stacks, s)
			}
			continue
		}
		f, created, ok := editorCall(line.Text)
		if !ok {
			continue
		}
		if s == nil { // the head of the first one is cut off
			s = &stack{count: 1}
			d.stacks = append(d.stacks, s)
		}
		if created {
			s.created = f.fn
		} else if len(s.frames) < 256 {
			s.frames = append(s.frames, f)
		}
	}
	return d
}
