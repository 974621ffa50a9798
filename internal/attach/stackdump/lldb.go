package stackdump

import (
	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// lldb reads "bt" and "bt all" of LLVM's debugger.
var lldb = &attach.Kind{
	Name:  "lldb backtrace",
	Hints: []string{"thread #", "frame #"},
	Claim: func(lines []paste.Line) int {
		return claimStacks(lines, lldbTask.MatchString, lldbFrame.MatchString)
	},
	Read: func(p *attach.Part) attach.Reading {
		d := parseStacks(p.Lines, "lldb backtrace", lldbTask, lldbFrame)
		d.whole = "lldb -p PID --batch -o 'bt all'"
		for _, l := range p.Lines {
			if m := lldbStop.FindStringSubmatch(l.Text); m != nil && d.signal == "" {
				d.signal = m[1]
			}
		}
		for _, t := range d.threads {
			place(t, native)
		}
		return d.read()
	},
}

var (
	lldbTask = pattern.New(`^(?:[* ] ? ?)?thread #(\d+)(?:: tid = \w+)?(?:,.*?\bname = '([^']*)')?(?:,.*)?$`)
	// lldbFrame has the function behind the mark between it and its library.
	lldbFrame = pattern.New("^ *(?:[*] )?frame #\\d+: 0x[0-9a-f]+ [^`]+`([+-]\\[[^\\]]+\\]|[^(\\s]+(?: const)?)(?:\\(.*\\))?(?: \\+ \\d+)?(?: at \\S+)?(?: \\[.*\\])?$")
	// lldbStop is a stop by what the program did itself; a debugger stops it by SIGSTOP.
	lldbStop = pattern.New(`stop reason = (?:signal )?(SIG(?:SEGV|BUS|FPE|ILL|SYS|ABRT)|EXC_BAD_ACCESS)\b`)
)
