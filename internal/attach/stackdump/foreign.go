package stackdump

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// windows knows the stacks that WinDbg and cdb print, of programs which do not run on Linux.
var windows = &attach.Kind{
	Name:    "WinDbg stacks",
	Hints:   []string{"!", "RetAddr", "Child-SP", "Suspend: "},
	Refused: "These are stacks of a program on Windows, into which whystall cannot look. Of a program on Linux: gdb -p PID -batch -ex 'thread apply all bt'.",
	Claim: func(lines []paste.Line) int {
		frames, heads := 0, 0
		n := attach.ClaimWhile(lines, func(_ int, text string) bool {
			text = strings.TrimSpace(text)
			switch {
			case windowsFrame.MatchString(text), windowsShort.MatchString(text):
				frames++
			case windowsHead.MatchString(text):
				heads++
			default:
				return false
			}
			return true
		})
		return attach.ClaimIf(frames > 1 || frames > 0 && heads > 0, n)
	},
}

var (
	// "014cfe64 77f6cc7b 00000460 ntdll!NtWaitForSingleObject+0xb", with or without its number
	windowsFrame = pattern.New("^(?:[0-9a-f]{1,3} )?[0-9a-f`]{8,17} [0-9a-f`]{8,17}(?: : [0-9a-f` ]+ :)?(?: [0-9a-f`]{8,17})* +[A-Za-z]\\w*!\\S.*$")
	// "0b clr!Thread::Block", of kc, and
	// "02 (Inline Function) --------`--------     ntdll!RtlpWaitOnAddress+0xb7"
	windowsShort = pattern.New("^[0-9a-f]{2,3} (?:\\(Inline Function\\) [-`]{8,} +)?\\*{0,2}[A-Za-z][\\w.]*!.*$")
	windowsHead  = pattern.New(`^(?:# +)?Child(?:EBP|-SP) +RetAddr\b|^# Call Site$|^[.#]? *\d+ +[Ii]d: [0-9a-f]+\.[0-9a-f]+ +Suspend: \d|^\d{1,3}:\d{3}> `)
)

// erlang reads what Erlang's virtual machine writes when it ends by itself.
var erlang = &attach.Kind{
	Name:  "Erlang crash dump",
	Hints: []string{"=erl_crash_dump:"},
	Claim: func(lines []paste.Line) int {
		if !strings.HasPrefix(lines[0].Text, "=erl_crash_dump:") {
			return 0
		}
		return attach.ClaimWhile(lines, func(i int, text string) bool {
			return i < 3 || erlangLine.MatchString(text) || strings.HasPrefix(lines[i-1].Text, "=")
		})
	},
	Read: func(p *attach.Part) attach.Reading {
		r := attach.Reading{Title: "crash dump of Erlang's virtual machine", State: attach.CannotTell,
			Means: "The virtual machine ended by itself and wrote what it had: nothing in it says how long anybody waited.",
			Not:   "Whether anything was slow before the end is not in it."}
		for _, l := range p.Lines {
			if why, ok := strings.CutPrefix(l.Text, "Slogan: "); ok && len(r.Figures) == 0 {
				r.Figures = append(r.Figures, "it ended with: "+cutName(why))
			}
		}
		return r
	},
}

// erlangLine is a section of the dump, or a line in one.
var erlangLine = pattern.New(`^(?:=[a-z_]+(?::.*)?|[A-Za-z][\w /()+,.-]{0,60}:(?: .*|)|[0-9A-F]+:.*|y\d+:.*|0x[0-9a-fA-F]+:.*|End of \w+|.*<\d+\.\d+\.\d+>.*)$`)
