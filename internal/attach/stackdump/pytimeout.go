package stackdump

import (
	"slices"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// pyTimeout reads the stacks that pytest-timeout prints of a test which took too long: the
// outermost call first, and a line of source below each.
var pyTimeout = &attach.Kind{
	Name:  "pytest-timeout stacks",
	Hints: []string{"~~ Stack of ", "++ Timeout ++"},
	Claim: func(lines []paste.Line) int {
		source := false
		return claimSure(lines, timeoutHead.MatchString, func(text string) bool {
			frame := pyBTFrame.MatchString(text)
			mine := frame || timeoutBar.MatchString(text) || source && len(text) > 4 && text[:4] == "    "
			source = source || frame
			return mine
		})
	},
	Read: func(p *attach.Part) attach.Reading {
		d := &dump{tool: "pytest-timeout's stacks", whole: "py-spy dump --pid PID", interpreted: true}
		var t *thread
		for _, l := range p.Lines {
			if m := timeoutHead.FindStringSubmatch(l.Text); m != nil {
				t = &thread{name: m[1], id: len(d.threads) + 1, n: 1}
				d.threads = append(d.threads, t)
			} else if f, ok := pyBTFrameOf(l.Text); ok && t != nil && len(t.frames) < 400 {
				t.frames = append(t.frames, f)
			}
		}
		d.dropEmpty()
		for _, t := range d.threads {
			slices.Reverse(t.frames)
			t.placePython()
		}
		r := d.readPython()
		r.Figures = append(r.Figures, "a test took longer than its limit; the thread that printed these stacks is not among them")
		return r
	},
}

var (
	timeoutHead = pattern.New(`^~{3,} Stack of (.*) \((?:\d+|<unknown>)\) ~{3,}$`)
	timeoutBar  = pattern.New(`^\+{3,} Timeout \+{3,}$`)
)
