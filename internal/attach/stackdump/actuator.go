package stackdump

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// jsonThreads reads a JVM's threads as Spring Boot's /actuator/threaddump and other beans write
// them in JSON, in one line or in many.
var jsonThreads = &attach.Kind{
	Name:  "JVM threads in JSON",
	Hints: []string{`"threads"`, `"threadName"`, "{", "["},
	Claim: func(lines []paste.Line) int {
		if jsonThreadsLine.MatchString(lines[0].Text) && strings.Contains(lines[0].Text, `"threadState"`) {
			return 1
		}
		return attach.ClaimJSON(lines, func(keys map[string]bool) bool {
			return keys["threadName"] && keys["threadState"] && keys["stackTrace"]
		})
	},
	Read: func(p *attach.Part) attach.Reading {
		d := parseJSONThreads(p.Lines)
		d.tool, d.whole = "JVM threads in JSON", "jcmd PID Thread.print -l"
		r := d.readJVM()
		d.few(&r)
		return r
	},
}

var jsonThreadsLine = pattern.New(`^\s*(?:\{\s*"threads"\s*:\s*)?\[?\s*\{\s*"threadName"\s*:`)

// parseJSONThreads takes threads from lines with one value each. A frame's class comes before or
// after its method. Of the locks only what a thread waits for and who has it is read.
func parseJSONThreads(lines []paste.Line) *dump {
	d := &dump{owners: map[string]int{}}
	var t *thread
	method, class, inStack := "", "", false
	for _, text := range unfolded(lines) {
		m := nodeValue.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		key, v := m[1], m[2]
		if key == "threadName" {
			t = &thread{name: v, n: 1}
			d.threads = append(d.threads, t)
			method, class, inStack = "", "", false
		}
		if t == nil {
			continue
		}
		switch key {
		case "threadId":
			t.id = atoi(v)
		case "threadState":
			t.state = v
		case "lockName":
			if v != "null" {
				t.what, t.wants = object(v)
			}
		case "lockOwnerId":
			if id := atoi(v); id > 0 && t.wants != "" && len(d.owners) < 4096 {
				d.owners[t.wants] = id
			}
		case "stackTrace":
			inStack = true
		case "lockedMonitors", "lockedSynchronizers", "lockInfo":
			inStack = false
		case "className":
			class = v
		case "methodName":
			method = v
		}
		if inStack && method != "" && class != "" && len(t.frames) < 400 {
			t.frames = append(t.frames, frame{fn: class + "." + method})
			method, class = "", ""
		} else if !inStack {
			method, class = "", ""
		}
	}
	for _, t := range d.threads {
		switch {
		case t.state == "BLOCKED":
			t.wait.call = "waiting to lock"
		case t.wants != "":
			t.wait.call = "parking to wait for"
		}
	}
	return d
}
