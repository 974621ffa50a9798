package stackdump

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// coreStacks reads the stacks that systemd-coredump writes when a process ends by a signal, as
// coredumpctl info and the journal show them. The first thread is the one that got the signal.
var coreStacks = &attach.Kind{
	Name:  "coredumpctl",
	Hints: []string{"Stack trace of thread ", "dumped core", "PID: ", "#"},
	Claim: claimCore,
	Read:  readCore,
}

var (
	coreThread = pattern.New(`^\s*(?:Message:.*)?Stack trace of thread (\d+):$`)
	// coreFrame may have lost the blank behind its number. The library is in parentheses.
	coreFrame  = pattern.New(`^\s*#(\d{1,3}?)\s*(0x[0-9a-f]{16}|0x[0-9a-f]{8})\s+(\S.*?)\s+\((\S+)(?: \+ 0x[0-9a-f]+)?\)$`)
	coreFrame0 = pattern.New(`^\s*#\d{1,3}?\s*0x[0-9a-f]{8,16}(?:\s|$)`)
	coreEnded  = pattern.New(`\bProcess (\d+) \((.+?)\) of user \d+ (?:dumped core|terminated abnormally)`)
	coreSignal = pattern.New(`^\s*Signal: \d+ \(([A-Z0-9]+)\)$`)
	coreKey    = pattern.New(`^\s*(?:PID|UID|GID|Signal|Timestamp|Command Line|Executable|Control Group|Unit|User Unit|Slice|Session|Owner UID|Boot ID|Machine ID|Hostname|Storage|Disk Size|Size on Disk|Package|build-id|Message|Coredump|Reason): `)
	coreBeside = pattern.New(`^\s*(?:Found module \S+|(?:Found )?Module \S+.*|Stack trace of thread n/a:|ELF object binary architecture: .*|Metadata for module .*|Could not parse number of program headers.*|#)$`)
)

func claimCore(lines []paste.Line) int {
	threads, frames, inside := 0, 0, false
	end := attach.ClaimWhile(lines, func(at int, text string) bool {
		switch {
		case coreThread.MatchString(text):
			threads, inside = threads+1, true
		case coreFrame0.MatchString(text):
			if coreFrame.MatchString(text) {
				frames++
			}
			return inside || at == 0
		case coreEnded.MatchString(text), coreKey.MatchString(text), coreBeside.MatchString(text):
		default:
			return false
		}
		return true
	})
	return attach.ClaimIf(threads > 0 && frames > 0, end)
}

func readCore(p *attach.Part) attach.Reading {
	d := &dump{tool: "stacks of a core dump (systemd-coredump)", owners: map[string]int{}}
	var t *thread
	for _, l := range p.Lines {
		if m := coreEnded.FindStringSubmatch(l.Text); m != nil {
			d.pid, d.name = atoi(m[1]), m[2]
		}
		if m := coreSignal.FindStringSubmatch(l.Text); m != nil {
			d.signal = "SIG" + strings.TrimPrefix(m[1], "SIG")
		}
		if m := coreThread.FindStringSubmatch(l.Text); m != nil {
			t = &thread{id: atoi(m[1]), n: 1, headed: true}
			d.threads = append(d.threads, t)
			continue
		}
		m := coreFrame.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		if t == nil { // the text starts inside of a stack
			t = &thread{n: 1, cropped: atoi(m[1]) > 0}
			d.threads = append(d.threads, t)
		}
		f := frame{fn: unmangled(m[3]), file: m[4], at: m[2]}
		if f.fn == "n/a" || f.fn == "_start" && len(t.frames) == 0 {
			f.fn = m[2]
		}
		if len(t.frames) == 0 && t.headed {
			t.cropped = atoi(m[1]) > 0
		}
		if len(t.frames) < 400 {
			t.frames = append(t.frames, f)
		}
	}
	d.dropEmpty()
	if len(d.threads) > 0 && d.threads[0].headed && d.signal != "" {
		d.shown = &d.threads[0].frames[0]
	}
	for _, t := range d.threads {
		place(t, native)
	}
	r := d.read()
	if r.State == attach.Healthy {
		r.State = attach.CannotTell
	}
	if d.signal == "" {
		r.Not = "Why the process ended: systemd writes such stacks when one does, and the signal stands above them. It may have hung, and somebody ended it."
	}
	return r
}

// unmangled is a C++ function's qualified name, where nothing but plain names is in it; any other
// name is as it was.
func unmangled(fn string) string {
	rest, ok := strings.CutPrefix(fn, "_ZN")
	if !ok {
		return fn
	}
	rest = strings.TrimLeft(rest, "VKR")
	var names []string
	if after, is := strings.CutPrefix(rest, "St"); is {
		names, rest = append(names, "std"), after
	}
	for {
		n, at := 0, 0
		for at < len(rest) && at < 4 && rest[at] >= '0' && rest[at] <= '9' {
			n, at = n*10+int(rest[at]-'0'), at+1
		}
		if n == 0 || at+n >= len(rest) {
			break
		}
		names, rest = append(names, rest[at:at+n]), rest[at+n:]
	}
	if len(names) < 2 || rest == "" || rest[0] != 'E' {
		return fn
	}
	return strings.Join(names, "::")
}
