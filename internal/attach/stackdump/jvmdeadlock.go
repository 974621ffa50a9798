package stackdump

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// deadlockHead is the first line of what the JVM says of a deadlock below its threads.
const deadlockHead = "Found one Java-level deadlock"

var (
	// "  waiting to lock monitor 0x7f00 (object 0x71b0, a java.lang.Object),"
	deadMonitor = pattern.New(`^waiting to lock (?:M|m)onitor \S+ \((?:O|o)bject (0x[0-9a-f]+)(?:, an? (.+))?\),?$`)
	// "  waiting for ownable synchronizer 0x71b0, (a java.util.concurrent.locks.X$Sync),"
	deadOwnable = pattern.New(`^waiting for ownable synchronizer (0x[0-9a-f]+), \(an? (.+)\),?$`)
	deadHolder  = pattern.New(`^(?:in JNI, )?which is held by "(.*)"$`)
)

// inDeadlock is the thread's name in a line that is a name and a colon; "": it is none.
func inDeadlock(text string) string {
	if name, ok := strings.CutPrefix(text, "\""); ok && strings.HasSuffix(name, "\":") {
		return strings.TrimSuffix(name, "\":")
	}
	return ""
}

// startsDeadlock reports whether lines start the report of a deadlock: with its first line, or with
// a thread and what it waits for, where a fence or a heading stands between.
func startsDeadlock(lines []paste.Line) bool {
	if strings.HasPrefix(lines[0].Text, deadlockHead) {
		return true
	}
	if len(lines) < 2 || inDeadlock(lines[0].Text) == "" {
		return false
	}
	next := strings.TrimSpace(lines[1].Text)
	return deadMonitor.MatchString(next) || deadOwnable.MatchString(next)
}

// deadlocked adds to a dump's threads what the section below them says of a deadlock: a text may
// have been shortened to it. Threads that share a name are left as they are.
func (d *dump) deadlocked(lines []paste.Line) {
	at := slices.IndexFunc(lines, func(l paste.Line) bool {
		return strings.HasPrefix(strings.TrimSpace(l.Text), deadlockHead)
	})
	if at < 0 {
		return
	}
	for _, dead := range parseDeadlock(lines[at:]).threads {
		found := d.only(func(t *thread) bool { return t.name == dead.name })
		switch {
		case found != nil && found.wants == "":
			found.wants, found.what, found.wait.call = dead.wants, dead.what, dead.wait.call
			fallthrough
		case found != nil:
			found.holds = append(found.holds, dead.holds...)
		case !slices.ContainsFunc(d.threads, func(t *thread) bool { return t.name == dead.name }):
			d.threads = append(d.threads, dead)
		}
	}
}

// parseDeadlock reads the section about deadlocks where it stands alone: who waits for what, who
// holds it, and then the stacks of these threads.
func parseDeadlock(lines []paste.Line) *dump {
	d := &dump{owners: map[string]int{}, cycle: true, tool: "the JVM's report of a deadlock",
		whole: "jcmd PID Thread.print -l"}
	byName := map[string]*thread{}
	of := func(name string) *thread {
		if byName[name] == nil {
			byName[name] = &thread{name: name, n: 1, state: "BLOCKED"}
			d.threads = append(d.threads, byName[name])
		}
		return byName[name]
	}
	var t *thread
	for _, l := range lines {
		text := strings.TrimSpace(l.Text)
		if name := inDeadlock(text); name != "" {
			t = of(name)
			continue
		}
		if t == nil {
			continue
		}
		if m := deadMonitor.FindStringSubmatch(text); m != nil {
			t.wants, t.what, t.wait.call = m[1], m[2], "waiting to lock"
		} else if m := deadOwnable.FindStringSubmatch(text); m != nil {
			t.wants, t.what, t.wait.call = m[1], m[2], "parking to wait for"
		} else if m := deadHolder.FindStringSubmatch(text); m != nil {
			if h := of(m[1]); t.wants != "" {
				h.holds = append(h.holds, t.wants)
			}
		} else {
			t.line(l.Text, text)
		}
	}
	return d
}

// javaFrame reports whether a line is a frame, indented or not.
func javaFrame(text string) bool { return jvmFrame.MatchString(text) || jvmBare.MatchString(text) }

// deadStacks reads the stacks that stand below the report of a deadlock, where a fence or a heading
// parts them from it: a thread's name and a colon, and then its frames.
var deadStacks = &attach.Kind{
	Name:    "JVM stacks without headers",
	Hints:   []string{"\":"},
	Reports: true,
	Claim: func(lines []paste.Line) int {
		if len(lines) < 2 || inDeadlock(lines[0].Text) == "" || !javaFrame(lines[1].Text) {
			return 0
		}
		return attach.ClaimWhile(lines, func(i int, text string) bool {
			cut := i+1 == len(lines) && strings.HasPrefix(strings.TrimSpace(text), "at ")
			return inDeadlock(text) != "" || javaFrame(text) || jvmLock.MatchString(text) || cut
		})
	},
	Read: func(p *attach.Part) attach.Reading {
		d := parseDeadlock(p.Lines)
		d.tool, d.cycle = "JVM stacks without headers", false
		return d.readJVM()
	},
}
