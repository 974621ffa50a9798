package stackdump

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// pyStack reads pystack of a process or of a core: who has the GIL, and the innermost call last.
var pyStack = &attach.Kind{
	Name:  "pystack",
	Hints: []string{"Traceback for thread ", "Core file information:"},
	Claim: claimPyStack,
	Read: func(p *attach.Part) attach.Reading {
		d := parsePyStack(p.Lines)
		d.tool, d.whole = "pystack", "pystack remote "+d.pidWord()
		r := d.readPython()
		if len(d.threads) == 1 && d.threads[0].gil() && len(r.Signs) == 0 {
			r.Means = "It has the GIL: it computes at this instant, or is in a call that keeps the GIL."
		}
		for _, l := range p.Lines {
			text := strings.TrimSpace(l.Text)
			if strings.HasPrefix(text, "Core file information:") {
				r.Next = nil // that process may be long gone
			}
			if strings.HasPrefix(text, "The core file seems to have been generated on demand") {
				r.Figures = append(r.Figures, "a core that was made on demand: the process did not crash")
			}
			if signal, ok := strings.CutPrefix(text, "The process died due receiving signal "); ok {
				r.Figures = append(r.Figures, "the process died of "+signal)
			}
		}
		return r
	},
}

var (
	stackHead  = pattern.New(`^Traceback for thread (\d+)(?: \((.*?)\))? \[(.*?)\] \(most recent call last\):`)
	stackFrame = pattern.New(`^ {2,}\((Python|C)\) File "(.*)", line (\d+), in (.+?)(?: \(inlined\))?(?: \((?:/.*|\?+)\))?$`)
	stackCore  = pattern.New(`^(?:Core file information:$|state: \S+ zombie: |pid: \d+ ppid: |uid: \d+ gid: |executable: .* arguments: |The core file seems to have been|The process died due )`)
	stackPID   = pattern.New(`^pid: (\d+) ppid: `)
)

func claimPyStack(lines []paste.Line) int {
	n, heads := 0, 0
	for i, l := range lines {
		text := l.Text
		switch {
		case i > 0 && l.Command != "":
			return done(n, heads)
		case stackHead.MatchString(text):
			heads++
			n = i + 1
		case heads == 0 && stackCore.MatchString(text), heads > 0 && strings.HasPrefix(text, "    "):
			n = i + 1
		case strings.TrimSpace(text) == "" && i > 0:
		default:
			return done(n, heads)
		}
	}
	return done(n, heads)
}

func parsePyStack(lines []paste.Line) *dump {
	d := &dump{}
	var t *thread
	waits := map[*thread]bool{}
	for _, l := range lines {
		if m := stackPID.FindStringSubmatch(l.Text); m != nil {
			d.pid = atoi(m[1])
		} else if m := stackHead.FindStringSubmatch(l.Text); m != nil {
			t = &thread{name: m[2], id: atoi(m[1]), n: 1}
			if t.name == "" {
				t.name = "thread " + m[1]
			}
			if strings.Contains(m[3], "Has the GIL") {
				t.state = "active+gil"
			}
			waits[t] = strings.Contains(m[3], "Waiting for the GIL")
			d.threads = append(d.threads, t)
		} else if m := stackFrame.FindStringSubmatch(l.Text); m != nil && t != nil && len(t.frames) <= 400 {
			t.frames = append(t.frames, frame{fn: m[4], file: tail(m[2]), path: m[2], args: m[3]})
		}
	}
	all := len(d.threads)
	d.dropEmpty()
	d.bare = all - len(d.threads)
	for _, t := range d.threads {
		slices.Reverse(t.frames)
		t.placePython()
		if waits[t] {
			t.doing, t.kind, t.site = lock, interpreter, "take_gil"
		}
	}
	return d
}
