package stackdump

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// dotnetDump reads what dotnet-dump and SOS print: syncblk, who has which monitor, and clrstack.
var dotnetDump = &attach.Kind{
	Name:  "dotnet-dump",
	Hints: []string{"OS Thread Id: 0x", "MonitorHeld", "Child SP"},
	Claim: claimDotnetDump,
	Read:  readDotnetDump,
}

var (
	sosHead   = pattern.New(`^Index +SyncBlock +MonitorHeld +Recursion +Owning Thread Info +SyncBlock Owner`)
	sosRow    = pattern.New(`^ *(\d+) +[0-9a-fA-F]{8,16} +(\d{1,9}) +\d+ +[0-9a-fA-F]{8,16} +([0-9a-f]{1,8}|none) +(\d+|none|XXX) +[0-9a-f]{8,16}(?: (\S.*))?$`)
	sosThread = pattern.New(`^OS Thread Id: 0x([0-9a-f]{1,8}) \((\d+)\)$`)
	sosFrame  = pattern.New(`^[0-9a-fA-F]{8,16} [0-9a-fA-F]{8,16} (?:\[(\w+): [0-9a-f]+\] ?)?(.*)$`)
	sosOther  = pattern.New(`^\s*Child.SP +IP +Call Site$|^-{10,}$|^(?:Total|CCW|RCW|ComClassFactory|Free) +\d+$|^>? ?(?:syncblk|clrstack|setthread|~\*e|Unable to walk the managed stack|!clrstack|!syncblk)\b`)
	sosLocals = pattern.New(`^ {4,}(?:PARAMETERS:|LOCALS:|\S+ \(.*\) = \S+|<\S+> = \S+|<no data>)`)
)

func claimDotnetDump(lines []paste.Line) int {
	n, own := 0, 0
	for i, l := range lines {
		text := l.Text
		switch {
		case i > 0 && l.Command != "" && !sosOther.MatchString(l.Command):
			return done(n, own)
		case sosRow.MatchString(text), own > 0 && sosFrame.MatchString(text):
			own++
			n = i + 1
		case sosThread.MatchString(text) && i+2 < len(lines) && strings.Contains(lines[i+1].Text, "Call Site"):
			own++
			n = i + 1
		case sosHead.MatchString(text), sosOther.MatchString(text), own > 0 && sosLocals.MatchString(text):
			n = i + 1
		case strings.TrimSpace(text) == "" && i > 0:
		case l.Command != "":
		default:
			return done(n, own)
		}
		if own == 0 && i > 4 {
			return 0
		}
	}
	return done(n, own)
}

// monitor is a row of syncblk: an object whose monitor threads have or want.
type monitor struct {
	index, waiters int
	owner, what    string // owner: "" where none has it
}

func readDotnetDump(p *attach.Part) attach.Reading {
	d := &dump{tool: "dotnet-dump clrstack", whole: "dotnet-stack report -p PID"}
	var monitors []monitor
	var t *thread
	for _, l := range p.Lines {
		if m := sosRow.FindStringSubmatch(l.Text); m != nil && len(monitors) < 4096 {
			held := atoi(m[2])
			w := monitor{index: atoi(m[1]), waiters: held / 2, what: m[5]}
			if held%2 == 1 && m[3] != "none" {
				w.owner = "0x" + m[3]
			}
			monitors = append(monitors, w)
		} else if m := sosThread.FindStringSubmatch(l.Text); m != nil {
			t = &thread{n: 1, id: hex("0x" + m[1]), name: "0x" + m[1]}
			d.threads = append(d.threads, t)
		} else if m := sosFrame.FindStringSubmatch(l.Text); m != nil && t != nil && len(t.frames) < 400 &&
			!strings.HasPrefix(m[2], "[") && m[2] != "" {
			fn, _, _ := strings.Cut(m[2], "(")
			t.frames = append(t.frames, frame{fn: fn})
		}
	}
	d.dropEmpty()
	for _, t := range d.threads {
		place(t, dotnetRules)
	}
	if len(monitors) == 0 {
		return d.read()
	}
	return d.readMonitors(monitors)
}

// readMonitors says which monitors threads wait for, and what their owners do if their stacks are
// in the same text.
func (d *dump) readMonitors(monitors []monitor) attach.Reading {
	r := attach.Reading{Title: "dotnet-dump syncblk, " + attach.Plural(len(monitors), "monitor"),
		State: attach.Healthy, Glance: true}
	r.Means = "No thread waits for one of these monitors."
	r.Not = "MonitorHeld is no number of threads: it counts 1 for the owner, and 2 for each thread that waits."
	first, stuck := monitor{}, 0
	for _, m := range monitors {
		if m.waiters == 0 {
			continue
		}
		has := "which no thread has at this moment"
		if m.owner != "" {
			has = fmt.Sprintf("which thread %s has", m.owner)
			if t := d.only(func(t *thread) bool { return t.name == m.owner }); t != nil {
				has += ": " + t.does()
				stuck += b2i(t.doing == lock)
			}
		}
		line := fmt.Sprintf("%s for the monitor of sync block %d, %s", waits(m.waiters), m.index, has)
		if len(r.Figures) < 4 {
			r.Figures = append(r.Figures, line)
		}
		if m.waiters > first.waiters {
			first = m
		}
	}
	if first.waiters == 0 {
		return r
	}
	sign := attach.Sign{Cause: "lock-contention", Grade: attach.Candidate, Proof: r.Figures}
	r.State, r.Means = attach.CannotTell,
		"Threads wait for monitors that others have: the stacks of the owners say why they keep them."
	if first.waiters > 2 {
		sign.Grade, sign.Sure, r.State = attach.Found, finding.Possible, attach.Ill
	}
	if stuck > 1 {
		r.Means = "Owners of monitors wait for monitors themselves: a deadlock fits, and which monitor each of them wants is not printed."
	}
	r.Signs = []attach.Sign{sign}
	r.Next = []attach.Next{{Command: "setthread " + cmp.Or(first.owner, "TID") + "; clrstack",
		Why: "what the owner does meanwhile: an owner that waits for a monitor as well fits a deadlock"}}
	return r
}
