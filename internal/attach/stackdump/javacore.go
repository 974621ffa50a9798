package stackdump

import (
	"cmp"
	"slices"
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
		"XMFULLTHDDUMP", "XMTHDINFO", "NULL ", "2LKMON", "3LKMONOBJECT"},
	Claim: func(lines []paste.Line) int {
		if !coreTag.MatchString(lines[0].Text) {
			return 0
		}
		return claimSure(lines, func(text string) bool {
			return coreHead.MatchString(text) || coreBlock.MatchString(text) || coreOwned.MatchString(text)
		},
			func(text string) bool { return coreTag.MatchString(text) || strings.Trim(text, "-") == "" })
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
	coreTag    = pattern.New(`^(?:[0-9][A-Z]{2,6}[A-Z0-9]{2,20}|NULL)(?:\s|$)`)
	coreHead   = pattern.New(`^3XMTHREADINFO\s+"(.*)" .*\bstate: ?([A-Z]+)\b`)
	coreVM     = pattern.New(`^3XMTHREADINFO1\s.*\bnative thread ID:0x([0-9A-Fa-f]+).*\bvmstate:([A-Z]+)\b`)
	coreLine   = pattern.New(`^4XESTACKTRACE\s+at ([\w$./<>]+)\((.*)\)`)
	coreHeld   = pattern.New(`^5XESTACKTRACE\s+\(entered lock: \S+@\**(0x[0-9A-Fa-f]+)`)
	coreOwned  = pattern.New(`^3LKMONOBJECT\s+(\S+?)@(0x[0-9A-Fa-f]+): (?:Flat locked by|owner) "(.*)" \(`)
	coreWaiter = pattern.New(`^3LKWAITER\s+"(.*)" \(`)
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
	var locks coreLocks
	for _, l := range lines {
		text := l.Text
		if locks.line(text) {
			continue
		}
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
	if len(d.threads) == 0 {
		d.threads = locks.threads
	}
	return d
}

// coreLocks is the section of locks where it stands alone: who has a monitor, and who waits to
// enter it.
type coreLocks struct {
	threads    []*thread
	what, addr string
}

// of is the thread with a name.
func (c *coreLocks) of(name string) *thread {
	if i := slices.IndexFunc(c.threads, func(t *thread) bool { return t.name == name }); i >= 0 {
		return c.threads[i]
	}
	c.threads = append(c.threads, &thread{name: name, n: 1, id: len(c.threads) + 1})
	return c.threads[len(c.threads)-1]
}

func (c *coreLocks) line(text string) bool {
	if m := coreOwned.FindStringSubmatch(text); m != nil {
		c.what, c.addr = strings.ReplaceAll(m[1], "/", "."), m[2]
		t := c.of(m[3])
		t.holds = append(t.holds, c.addr)
		return true
	}
	if m := coreWaiter.FindStringSubmatch(text); m != nil && c.addr != "" {
		t := c.of(m[1])
		t.state, t.what, t.wants, t.wait.call = "BLOCKED", c.what, c.addr, "waiting to lock"
		return true
	}
	if strings.HasPrefix(text, "2LKMONINUSE") || strings.HasPrefix(text, "3LKNOTIFYQ") {
		c.addr = ""
	}
	return false
}
