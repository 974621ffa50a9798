package stackdump

import (
	"cmp"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// javaCore reads what the JVMs of IBM and OpenJ9 write at SIGQUIT: each line has a tag, and locks
// have addresses and owners.
var javaCore = &attach.Kind{
	Name: "javacore",
	Hints: []string{"THREADINFO", "4XESTACKTRACE", "3XMTHREADBLOCK", "0SECTION", "1TISIGINFO",
		"XMFULLTHDDUMP", "XMTHDINFO", "NULL "},
	Claim: func(lines []paste.Line) int {
		n, heads := 0, 0
		for i, l := range lines {
			text := l.Text
			switch {
			case i > 0 && l.Command != "", i == 0 && !coreTag.MatchString(text):
				return done(n, heads)
			case coreHead.MatchString(text), coreBlock.MatchString(text):
				heads++
				n = i + 1
			case coreTag.MatchString(text):
				n = i + 1
			case strings.TrimSpace(text) == "", strings.Trim(text, "-") == "":
			default:
				return done(n, heads)
			}
		}
		return done(n, heads)
	},
	Read: func(p *attach.Part) attach.Reading {
		d := parseCore(p.Lines)
		d.tool, d.whole = "javacore", "kill -QUIT PID"
		r := d.readJVM()
		d.few(&r)
		return r
	},
}

var (
	coreTag  = pattern.New(`^(?:[0-9][A-Z]{2,6}[A-Z0-9]{2,20}|NULL)(?:\s|$)`)
	coreHead = pattern.New(`^3XMTHREADINFO\s+"(.*)" .*\bstate: ?([A-Z]+)\b`)
	coreVM   = pattern.New(`^3XMTHREADINFO1\s.*\bnative thread ID:0x([0-9A-Fa-f]+).*\bvmstate:([A-Z]+)\b`)
	coreLine = pattern.New(`^4XESTACKTRACE\s+at ([\w$./<>]+)\((.*)\)`)
	coreHeld = pattern.New(`^5XESTACKTRACE\s+\(entered lock: \S+@\**(0x[0-9A-Fa-f]+)`)
	// coreBlock has the owner's name, or a word such as <unowned>.
	coreBlock = pattern.New(`^3XMTHREADBLOCK\s+(Blocked|Waiting|Parked) on: (\S+?)@\**(0x[0-9A-Fa-f]+)\**(?: Owned by: (?:"(.*)" \(|<(\w+)>))?`)
)

// coreStates are HotSpot's words for the JVM's own.
var coreStates = map[string]string{"R": "RUNNABLE", "CW": "WAITING", "MW": "BLOCKED", "B": "BLOCKED", "P": "WAITING"}

// coreCalls are HotSpot's words for what a thread waits for.
var coreCalls = map[string]string{"Blocked": "waiting to lock", "Waiting": "waiting on",
	"Parked": "parking to wait for"}

func parseCore(lines []paste.Line) *dump {
	d := &dump{owners: map[string]int{}}
	owned := map[string][]string{} // a thread's name, and what others say that it holds
	var t *thread
	for _, l := range lines {
		text := l.Text
		if strings.HasPrefix(text, "1LKDEADLOCK") && strings.Contains(text, "detected") {
			d.cycle = true
		}
		if m := coreHead.FindStringSubmatch(text); m != nil {
			t = &thread{name: m[1], state: coreStates[m[2]], n: 1, id: len(d.threads) + 1}
			d.threads = append(d.threads, t)
			continue
		}
		if t == nil {
			if !coreBlock.MatchString(text) {
				continue
			}
			t = &thread{n: 1, id: 1}
			d.threads = append(d.threads, t)
		}
		if m := coreVM.FindStringSubmatch(text); m != nil {
			t.id, t.state = hex("0x"+strings.ToLower(m[1])), cmp.Or(coreStates[m[2]], t.state)
		} else if m := coreLine.FindStringSubmatch(text); m != nil && len(t.frames) < 400 {
			t.frames = append(t.frames, frame{fn: strings.ReplaceAll(m[1], "/", "."), file: m[2]})
		} else if m := coreHeld.FindStringSubmatch(text); m != nil && m[1] != t.wants {
			t.holds = append(t.holds, m[1])
		} else if m := coreBlock.FindStringSubmatch(text); m != nil {
			t.what, t.wants, t.wait.call = strings.ReplaceAll(m[2], "/", "."), m[3], coreCalls[m[1]]
			t.owner = m[4]
			if m[4] != "" && m[4] != t.name && len(owned) < 4096 {
				owned[m[4]] = append(owned[m[4]], m[3])
			}
		}
	}
	for _, t := range d.threads {
		t.holds = append(t.holds, owned[t.name]...)
	}
	return d
}
