package stackdump

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// jstack reads the JVM's thread dumps: jstack, jcmd Thread.print, and what SIGQUIT prints, from
// JDK 5 to 24. Locks have addresses and holders there.
var jstack = &attach.Kind{
	Name: "jstack",
	Hints: []string{"Full thread dump", "\"", "java.lang.Thread.State: ", "\tat ",
		"Found one Java-level deadlock", "Threads class SMR", " at ", ":"},
	Claim: claimJVM,
	When: func(p *attach.Part) time.Time {
		t, _ := time.Parse(time.DateTime, p.Lines[0].Text) // zero where it is something else
		return t
	},
	Read: func(p *attach.Part) attach.Reading { return readJVM(p.Lines) },
}

var (
	jvmHeader = pattern.New(`^\s*"(.*)"(?: #(\d+))?(?: \[(\d+)\])?(?: (?:daemon|virtual))* (?:.*\b)?(?:prio=\d+|os_prio=\S+|tid=0x[0-9a-f]+|nid=\S+|Id=\d+|id=\d+ in [A-Z_]+\b|- Thread t@\d+|virtual\b|#\d+)`)
	// jvmUnnamed is a header whose name stands in another line, or is lost.
	jvmUnnamed = pattern.New(`^os_prio=\d+ (?:cpu=\S+ elapsed=\S+ )?tid=0x[0-9a-f]+ nid=\S+ `)
	// jvmTorn is a header whose name lost its first quote, or all but its end.
	jvmTorn = pattern.New(`^[^"\s][^"]{0,120}"(?: #\d+)?(?: \[\d+\])?(?: (?:daemon|virtual))* (?:prio=\d+|os_prio=\S+|tid=0x[0-9a-f]+|nid=\S+).* nid=\S+`)
	jvmIn   = pattern.New(`" id=(\d+) in ([A-Z_]+)\b|" - Thread t@(\d+)`) // of profilers and VisualVM
	// jvmWord is what profilers and Android's runtime say of a thread in its header.
	jvmWord  = pattern.New(`\btid=(?:0x[0-9a-f]+|(\d+)) (?:in )?(RUNNABLE|BLOCKED|WAITING|TIMED_WAITING|Blocked|Waiting|TimedWaiting|Sleeping)$`)
	jvmOwner = pattern.New(`<((?:0x)?[0-9a-f]+)> .*\bheld by thread (\d+)$`)
	// jvmSays is what HotSpot says of a thread at the end of its header.
	jvmSays = pattern.New(` waiting for monitor entry(?: \[0x[0-9a-f]+\])?$`)
	// jvmBroken is the end of a header that somebody broke.
	jvmBroken = pattern.New(`^Id=\d+$|^\s*(?:waiting |waiting on |waiting for |in )?(?:on condition|for monitor entry|monitor entry|condition|Object\.wait\(\)|runnable)? ?\[0x[0-9a-f]{8,16}(?:\.\.0x[0-9a-f]{8,16})?\][0-9a-fx.()\]]{0,48}$`)
	jvmNID    = pattern.New(`\bnid=(0x[0-9a-f]+|\d+)`)
	jvmState  = pattern.New(`^\s*java\.lang\.Thread\.State: (\w+)(?: \((.*)\))?`)
	jvmFrame  = pattern.New(`^\s+at ([\w$.@/<>:-]+) ?\((.*)\)\s*$`)
	jvmBare   = pattern.New(`^at ([\w$.@/<>:-]+\.[\w$<>]+)\((.*(?:\.\w+:\d+|Native Method|Unknown Source|\.java|\.gen|<generated>))\)\s*$`)
	jvmLock   = pattern.New(`^\s*- (waiting to lock|locked|waiting on|parking to wait for|waiting to re-lock in wait\(\)|eliminated|lock is eliminated|waiting on the Class initialization monitor for|Class initialization lock of|<no)\s*(?:<((?:0x)?[0-9a-f]+)>|<no object reference available>|(\S+))?(?: \(a (.*)\)| \(owned by \d+\))?`)
	jvmOwned  = pattern.New(`^\s*- <(0x[0-9a-f]+)> \(a (.*)\)`)
	jvmBits   = pattern.New(`^(Full thread dump|Threads class SMR|_java_thread_list|0x[0-9a-f]{8,}[, 0xa-f0-9]*$|\}$|JNI global ref|Found (one|\d+) (Java-level )?deadlock|=====|Java stack information|which is held by|waiting to lock [Mm]onitor|waiting for ownable|JNI|Heap$)`)
	jvmStart  = pattern.New(`^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d+:)$`)
	jvmInner  = pattern.New(`^(?:Blocked: \d+\[|User CPU: |- synchronizer <)|^\s+(--? |\| |native: #|#\d\d pc |\^-- |java\.lang\.Thread\.State|Locked ownable|No compile task|Compiling:|Locked synchronizers|which is held by|waiting (to lock|for)|in object 0x|Carrying virtual|Mounted on carrier|- |at |JavaThread state|Thread:|Number of locked|total|space|Metaspace|class space|region size|PSYoungGen|ParOldGen|PSOldGen|PSPermGen|par new|concurrent|def new|tenured|eden|from|to |the space|compacting|garbage-first|object space|None$|\.\.\. \d+ more|Caused by)`)
)

// jrockitState is the end of a header of JRockit: "tid=77 prio=5 alive, in native, native_waiting".
var jrockitState = pattern.New(`\bidx=0x[0-9a-f]+ tid=\d+ prio=\d+ alive((?:, [\w ]+)*)$`)

// jrockitWord is HotSpot's word for what JRockit says of a thread; "": it runs.
func jrockitWord(words string) string {
	switch {
	case strings.Contains(words, "blocked"):
		return "BLOCKED"
	case strings.Contains(words, "sleeping"):
		return "TIMED_WAITING"
	case strings.Contains(words, "waiting"), strings.Contains(words, "parked"):
		return "WAITING"
	}
	return ""
}

// threadDump reads what jcmd's Thread.dump_to_file writes: virtual threads too, without locks.
var threadDump = &attach.Kind{
	Name:  "JVM Thread.dump_to_file",
	Hints: []string{"#"},
	Claim: func(lines []paste.Line) int {
		return claimStacks(lines, toFileTask.MatchString,
			func(t string) bool { return toFileFrame.MatchString(t) || toFileNote.MatchString(t) })
	},
	Read: func(p *attach.Part) attach.Reading {
		d := parseStacks(p.Lines, "JVM threads by Thread.dump_to_file", toFileTask, toFileFrame)
		for _, t := range d.threads {
			for i := range t.frames {
				t.frames[i].fn = modless(t.frames[i].fn)
			}
			t.state = "RUNNABLE" // the dump has no states: only names can tell
			placeJVM(t)
		}
		r := d.read()
		r.Not = "This dump has no states and no locks: jcmd PID Thread.print has them, for platform threads."
		if r.State == attach.Healthy {
			r.State = attach.CannotTell
		}
		return r
	},
}

var (
	toFileTask  = pattern.New(`^#(\d+) "(.*)"(?: virtual)?(?: [A-Z_]+)?(?: \d{4}-\d\d-\d\dT\S+)?$`)
	toFileFrame = pattern.New(`^\s{4,}([\w$.@/<>:-]+)\([^()]*\)$`)
	toFileNote  = pattern.New(`^\s{4,}- (?:locked|waiting|parked|blocked|waiting to lock)`)
)

func claimJVM(lines []paste.Line) int {
	first := lines[0].Text
	if jvmStart.MatchString(first) {
		for _, l := range lines[1:min(3, len(lines))] {
			if strings.HasPrefix(l.Text, "Full thread dump") {
				first = l.Text
			}
		}
	}
	if !fullDump(first) && !isJVMHeader(first) && !jvmState.MatchString(first) &&
		!jvmFrame.MatchString(first) && !jvmBare.MatchString(first) &&
		!startsDeadlock(lines) && !strings.HasPrefix(first, "Threads class SMR") {
		return 0
	}
	n, frames, heads := 0, 0, 0
	for i, l := range lines {
		text := l.Text
		switch {
		case i > 0 && (l.Command != "" || heads > 0 && strings.HasPrefix(text, "Full thread dump")):
			return doneJVM(n, frames, heads)
		case i < 2 && jvmStart.MatchString(text):
		case heads > 0 && jvmStart.MatchString(text) && i+1 < len(lines) &&
			strings.HasPrefix(lines[i+1].Text, "Full thread dump"):
			return doneJVM(n, frames, heads)
		case jvmFrame.MatchString(text), jvmBare.MatchString(text):
			frames++
			n = i + 1
		case isJVMHeader(text), fullDump(text), i == 0 && jvmState.MatchString(text):
			heads++ // a state is as sure a start as the header that was cut off above it
			n = i + 1
		case strings.TrimSpace(text) == "", strings.TrimSpace(text) == "...":
		case heads > 0 && strings.HasPrefix(strings.TrimSpace(text), "//"): // what a person says of the next
		case heads > 0 && jvmBroken.MatchString(text) && isJVMHeader(lines[i-1].Text):
			n = i + 1
		case jvmBits.MatchString(strings.TrimSpace(text)), jvmInner.MatchString(text),
			jvmLock.MatchString(text), jvmOwned.MatchString(text):
			n = i + 1
		case inDeadlock(text) != "":
			if startsDeadlock(lines) {
				heads++
			}
			n = i + 1
		case strings.Contains(text, "java.lang.Thread.State: "), heads > 0 && jvmUnnamed.MatchString(text):
			n = i + 1
		default:
			return doneJVM(n, frames, heads)
		}
	}
	return doneJVM(n, frames, heads)
}

// fullDump reports whether a line is the head of a dump, and no sentence about one.
func fullDump(text string) bool {
	return strings.HasPrefix(text, "Full thread dump") && (strings.HasSuffix(text, ":") || strings.Contains(text, "VM"))
}

// isJVMHeader reports whether a line is a thread's header.
func isJVMHeader(text string) bool { return jvmHeader.MatchString(text) || jvmTorn.MatchString(text) }

// doneJVM refuses a lone exception's frames: a dump has threads' headers, or the first frames cut
// off before at least one.
func doneJVM(n, frames, heads int) int {
	return attach.ClaimIf(heads > 0, n)
}

func readJVM(lines []paste.Line) attach.Reading {
	d := parseJVM(lines)
	d.tool, d.whole = "JVM thread dump", "jcmd PID Thread.print -l"
	if startsDeadlock(lines) &&
		!slices.ContainsFunc(lines, func(l paste.Line) bool { return isJVMHeader(l.Text) }) {
		d = parseDeadlock(lines)
	} else {
		d.deadlocked(lines)
	}
	said := d.mounted()
	r := d.readJVM()
	d.few(&r)
	d.cpuUse(&r)
	r.Figures = append(said, r.Figures...)
	return r
}

// parseJVM reads threads up to the section about deadlocks, which repeats some of them.
func parseJVM(lines []paste.Line) *dump {
	d := &dump{owners: map[string]int{}}
	var t *thread
	for _, l := range lines {
		text := l.Text
		trimmed := strings.TrimSpace(text)
		if strings.HasPrefix(trimmed, "Found") && strings.Contains(trimmed, "deadlock") {
			d.cycle = true
			if len(d.threads) > 0 {
				break
			}
		}
		head := trimmed // it may stand further in, as in a comment
		if jvmTorn.MatchString(head) {
			head = "\"" + head
		} else if jvmUnnamed.MatchString(head) {
			head = "\"\" " + head
		}
		if m := jvmHeader.FindStringSubmatch(head); m != nil {
			t = &thread{name: m[1], n: 1, id: atoi(m[2]), number: atoi(m[2]),
				virtual: jvmVirtual.MatchString(head[len(m[1])+2:])}
			if n := jvmNID.FindStringSubmatch(head); n != nil {
				t.id = hex(n[1])
			}
			d.info(t, head)
			t.used(head)
			if n := jvmIn.FindStringSubmatch(head); n != nil {
				t.id, t.state = atoi(n[1]+n[3]), n[2]
			}
			if n := jvmWord.FindStringSubmatch(head); n != nil {
				t.id, t.state = max(t.id, atoi(n[1])), jvmWords[n[2]]
			}
			if jvmSays.MatchString(head) {
				t.state = "BLOCKED"
			}
			if n := jrockitState.FindStringSubmatch(head); n != nil {
				t.state = jrockitWord(n[1])
			}
			d.threads = append(d.threads, t)
			continue
		}
		if t == nil {
			if !jvmFrame.MatchString(text) && !jvmState.MatchString(text) {
				continue
			}
			t = &thread{n: 1, cropped: jvmFrame.MatchString(text)}
			d.threads = append(d.threads, t)
		}
		if m := jvmOwner.FindStringSubmatch(trimmed); m != nil && len(d.owners) < 4096 {
			d.owners[m[1]] = atoi(m[2])
		}
		if id, ok := strings.CutPrefix(text, "Id="); ok && t.wants != "" && len(t.frames) == 0 && len(d.owners) < 4096 {
			d.owners[t.wants] = atoi(id) // a header that a mail wrapped before the owner's number
		}
		if m := jvmCarries.FindStringSubmatch(trimmed); m != nil {
			t.carries = atoi(m[1])
		}
		t.line(text, trimmed)
	}
	return d
}

var (
	jvmVirtual = pattern.New(`^[^"]*\bvirtual\b`)
	jvmCarries = pattern.New(`^Carrying virtual thread #(\d+)`)
)

// mounted leaves out virtual threads whose carrier is in the dump with their frames: the two are
// one thread that runs. It says so.
func (d *dump) mounted() (said []string) {
	for _, c := range d.threads {
		if c.carries == 0 || len(c.frames) == 0 {
			continue
		}
		i := slices.IndexFunc(d.threads, func(t *thread) bool {
			return t.virtual && t.number == c.carries && len(t.frames) > 0 && t.frames[0] == c.frames[0]
		})
		if i >= 0 {
			said = append(said, fmt.Sprintf("%q runs the virtual thread #%d, in %s", c.name, c.carries, c.frames[0].fn))
			d.threads = slices.Delete(slices.Clone(d.threads), i, i+1)
		}
	}
	return said
}

// jvmWords are HotSpot's words for those of other runtimes.
var jvmWords = map[string]string{"RUNNABLE": "RUNNABLE", "BLOCKED": "BLOCKED", "WAITING": "WAITING",
	"TIMED_WAITING": "TIMED_WAITING",
	"Blocked":       "BLOCKED", "Waiting": "WAITING", "TimedWaiting": "TIMED_WAITING", "Sleeping": "TIMED_WAITING"}

// line takes what a line says of the thread that it stands under.
func (t *thread) line(text, trimmed string) {
	if m := jvmState.FindStringSubmatch(text); m != nil {
		t.state = m[1]
		return
	}
	if m := jvmFrame.FindStringSubmatch(text); m != nil && len(t.frames) < 400 {
		t.frames = append(t.frames, frame{fn: modless(m[1]), file: m[2]})
		return
	}
	if m := jvmBare.FindStringSubmatch(trimmed); m != nil && len(t.frames) < 400 {
		t.frames = append(t.frames, frame{fn: modless(m[1]), file: m[2]})
		return
	}
	if m := jvmOwned.FindStringSubmatch(text); m != nil {
		t.holds = append(t.holds, m[1])
		return
	}
	if m := infoLock.FindStringSubmatch(text); m != nil {
		if _, of := object(m[2]); m[1] == "locked" && of != t.wants {
			t.holds = append(t.holds, of)
		}
		return
	}
	m := jvmLock.FindStringSubmatch(text)
	if m == nil {
		return
	}
	if m[1] == "waiting to re-lock in wait()" && t.wait.call == "waiting on" && t.state != "BLOCKED" {
		return // JDK 11 prints it of every thread in Object.wait: it has not been notified yet
	}
	switch m[1] {
	case "waiting to lock", "waiting to re-lock in wait()", "parking to wait for",
		"waiting on the Class initialization monitor for":
		t.wants, t.what = m[2]+m[3], m[4]
		t.wait.call = m[1]
	case "waiting on":
		t.wants, t.what, t.wait.call = m[2], m[4], m[1]
	case "locked", "Class initialization lock of":
		// A thread in Object.wait has given back the monitor that it lists as locked.
		if strings.Contains(m[4], "ProcessPipeInputStream") {
			t.pipe = true
		}
		if len(t.frames) > 0 && len(t.frames) <= 3 && t.wants == "" && m[2] != "" &&
			strings.HasPrefix(t.frames[0].fn, "java.lang.Object.wait") {
			// Before JDK 7 only its caller's frame shows the monitor that it gave back.
			t.wants, t.what, t.wait.call = m[2], m[4], "waiting on"
			return
		}
		if t.state == "BLOCKED" && len(t.frames) == 1 && t.wait.call == "" && m[2] != "" {
			// HotSpot before JDK 7 prints the monitor that a thread waits to enter as locked by it.
			t.wants, t.what, t.wait.call = m[2], m[4], "waiting to lock"
			return
		}
		if m[2] != "" && m[2] != t.wants {
			t.holds = append(t.holds, m[2])
		}
	}
}

// modless takes a module's name and version off a frame: java.base@17/java.lang.Thread.sleep.
func modless(fn string) string {
	if i := strings.LastIndex(fn, "/"); i >= 0 && !strings.Contains(fn[i:], "$$Lambda") {
		return fn[i+1:]
	}
	return fn
}

func hex(s string) int {
	if h, ok := strings.CutPrefix(s, "0x"); ok {
		n := 0
		for _, c := range h {
			n = n<<4 | strings.IndexRune("0123456789abcdef", c)
			if n < 0 || n > 1<<31 {
				return 0
			}
		}
		return n
	}
	return atoi(s)
}
