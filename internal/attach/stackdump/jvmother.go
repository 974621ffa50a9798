package stackdump

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// ThreadInfo's own text, as beans and test frameworks print it. The header has the state and
// the owner, and locks have a hash of the object in place of an address.
var (
	infoHeader = pattern.New(`^".*" .*\bId=(\d+) (BLOCKED|WAITING|TIMED_WAITING|RUNNABLE|NEW|TERMINATED)\b(?: on (\S+@[0-9a-f]+))?(?: owned by ".*" Id=(\d+))?`)
	infoLock   = pattern.New(`^\s*-\s+(blocked on|locked|waiting on) (\S+@[0-9a-f]+)$`)
)

// object parts "java.lang.Object@32a88bc2" in the type and the hash.
func object(s string) (kind, hash string) {
	if i := strings.LastIndexByte(s, '@'); i > 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// info takes what a header of ThreadInfo says of the thread that it starts.
func (d *dump) info(t *thread, text string) {
	m := infoHeader.FindStringSubmatch(text)
	if m == nil {
		return
	}
	t.id, t.state = atoi(m[1]), m[2]
	t.what, t.wants = object(m[3])
	switch {
	case m[2] == "BLOCKED":
		t.wait.call = "waiting to lock"
	case t.wants != "":
		t.wait.call = "parking to wait for"
	}
	if m[4] != "" && t.wants != "" && len(d.owners) < 4096 {
		d.owners[t.wants] = atoi(m[4])
	}
}

// agent reads jstack -F and jhsdb jstack, which look at the process from outside: a thread that is
// BLOCKED there is in native code, with or without a lock.
var agent = &attach.Kind{
	Name:  "jstack -F",
	Hints: []string{"(state = ", "Attaching to process ID"},
	Claim: func(lines []paste.Line) int {
		heads := 0
		n := attach.ClaimWhile(lines, func(_ int, text string) bool {
			trimmed := strings.TrimSpace(text)
			if agentHeader.MatchString(trimmed) {
				heads++
				return true
			}
			if heads == 0 || strings.HasPrefix(trimmed, "Attaching to process ID") {
				return heads == 0 && agentHead.MatchString(trimmed)
			}
			return agentHead.MatchString(trimmed) || inDeadlock(text) != "" || agentFrame.MatchString(trimmed) ||
				strings.HasPrefix(trimmed, "Locked ownable") || trimmed == "- None"
		})
		return attach.ClaimIf(heads > 0, n)
	},
	Read: func(p *attach.Part) attach.Reading {
		d := &dump{tool: "JVM thread dump from outside (jstack -F)"}
		var t *thread
		for _, l := range p.Lines {
			trimmed := strings.TrimSpace(l.Text)
			if m := agentHead.FindStringSubmatch(trimmed); m != nil {
				d.pid = max(d.pid, atoi(m[1]))
				d.cycle = d.cycle || strings.HasPrefix(trimmed, "Found one Java-level deadlock")
			} else if m := agentHeader.FindStringSubmatch(trimmed); m != nil {
				t = &thread{id: atoi(m[1]), n: 1, state: m[2]}
				d.threads = append(d.threads, t)
			} else if m := agentFrame.FindStringSubmatch(trimmed); m != nil && t != nil && len(t.frames) < 400 {
				t.frames = append(t.frames, frame{fn: modless(m[1])})
			}
		}
		stopped := map[string]int{}
		for _, t := range d.threads {
			blocked := t.state == "BLOCKED"
			t.state = "" // it is no state of Java's
			if placeJVM(t); blocked && t.doing == running && len(t.frames) > 0 {
				t.doing = signal
				stopped[t.frames[0].fn]++
			}
		}
		r := d.read()
		if r.State == attach.Healthy {
			r.State = attach.CannotTell
		}
		for _, fn := range attach.Largest(stopped) {
			if len(r.Figures) < 3 {
				r.Figures = append(r.Figures, fmt.Sprintf("%s for a monitor, or for the JVM, in %s",
					waits(stopped[fn]), fn))
			}
		}
		if !d.cycle {
			r.Means = "It says where threads are, and nothing of locks."
		}
		r.Not = "This dump has no locks, and BLOCKED in it is any wait within the JVM: for a monitor, in Object.wait, parked or asleep."
		r.Next = []attach.Next{{Command: "jcmd PID Thread.print -l", Why: "has the locks and who holds them"}}
		return r
	},
}

var (
	agentHeader = pattern.New(`^Thread (?:t@)?(\d+): \(state = ([A-Z_]+)\)$`)
	agentHead   = pattern.New(`^(?:Attaching to process ID (\d+), please wait|Debugger attached successfully|(?:Client|Server|Core) compiler detected|JVM version is |Deadlock Detection:|No deadlocks found|Found one Java-level deadlock|Found a total of \d+ deadlock)`)
	agentFrame  = pattern.New(`^- ([\w$.@/<>]+)\([^()]*\) @bci=`)
)
