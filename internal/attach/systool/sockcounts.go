package systool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// sockCounts knows how people count sockets: by state, with awk or uniq -c behind ss or netstat, or
// one state with grep and wc -l.
var sockCounts = &attach.Kind{
	Name:     "counts of sockets",
	Hints:    []string{"ESTAB", "WAIT", "SYN", "CLOS", "LISTEN", "LAST", "ss ", "netstat "},
	Prompted: true,
	Claim:    claimSockCounts,
	Read:     readSockCounts,
}

var (
	sockCount   = pattern.New(`^(?:(\d+) +([A-Z][A-Z_0-9-]+)|([A-Z][A-Z_0-9-]+)[ :=]+(\d+))$`)
	sockFilter  = pattern.New(`^(?:sudo +)?ss\b[^;&|]*\bstate +([a-z]+(?:-[a-z0-9]+)*)\b[^;&]*\|\s*wc +-l\s*$`) // by ss' own filter
	sockCommand = pattern.New(`^(?:sudo +)?(?:ss|netstat)\b[^;&]*\bgrep\b[^;&|]*?\b(ESTAB\w*|CLOSE?[_-]?\w*|TIME[_-]?\w*|SYN[_-]?\w*|FIN[_-]?\w*|LAST[_-]?\w*|LISTEN\w*)["']?[^;&]*\|\s*wc +-l\s*$`)
)

// sockAsked is the state whose sockets a command counts; "": it counts none.
func sockAsked(command string) string {
	if m := sockFilter.FindStringSubmatch(command); m != nil && slices.Contains(ssStates, strings.ToUpper(m[1])) {
		return strings.ToUpper(m[1])
	}
	if m := sockCommand.FindStringSubmatch(command); m != nil {
		return m[1]
	}
	return ""
}

// sockState takes a line of a count apart.
func sockState(text string) (state string, n int, ok bool) {
	m := sockCount.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return "", 0, false
	}
	state = m[2] + m[3]
	n, ok = whole(m[1] + m[4])
	return state, n, ok && slices.Contains(ssStates, state)
}

func claimSockCounts(lines []paste.Line) int {
	if lines[0].Command != "" {
		if sockAsked(lines[0].Command) == "" || len(lines) < 2 {
			return 0
		}
		if _, ok := whole(strings.TrimSpace(lines[1].Text)); !ok {
			return 0
		}
		return 2
	}
	seen := map[string]bool{}
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		state, _, ok := sockState(text)
		if ok {
			seen[state] = true
		}
		return ok
	})
	return attach.ClaimIf(len(seen) >= 2, n)
}

func readSockCounts(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.Glance = "counts of sockets by state", true
	states := map[string]int{}
	if asked := sockAsked(p.Command); asked != "" && len(p.Lines) > 0 {
		if n, ok := whole(strings.TrimSpace(p.Lines[0].Text)); ok {
			state := asked
			if strings.HasPrefix(state, "CLOSE") { // neither tool lists closed ones
				state = "CLOSE-WAIT"
			}
			states[state] = n
			v.figure("%d lines with %s", n, asked)
		}
	}
	for _, l := range p.Lines {
		if state, n, ok := sockState(l.Text); ok && n < 1<<31 {
			states[state] += n
		}
	}
	if len(v.Figures) == 0 {
		v.figure("%s", stateCounts(states))
	}
	v.unsure = true
	leaked(v, states["CLOSE-WAIT"]+states["CLOSE_WAIT"], states["ESTAB"]+states["ESTABLISHED"])
	v.timeWait(states["TIME-WAIT"] + states["TIME_WAIT"])
	if n := states["SYN-SENT"] + states["SYN_SENT"]; n >= 10 {
		v.means("%d connections have no answer yet: the way there, or a full accept queue", n)
		v.next("ss -lnt", "on the server: whether the accept queue is full")
	}
	v.means("it says how many connections there are, and not how they do")
	v.not("it is a glance; TIME-WAIT costs little, and is how TCP ends a connection")
	return v.done()
}

// leakedMany is more connections that only wait to be closed than a program has that closes them.
const leakedMany = 100

// leaked says that the program does not close what its peers have closed.
func leaked(v *verdict, waiting, open int) {
	if waiting < leakedMany {
		return
	}
	v.unsure = true
	beside := ""
	if open > 0 {
		beside = fmt.Sprintf(", beside %d established", open)
	}
	v.means("%d connections in CLOSE-WAIT%s: the peer hung up, and the program has not closed them: it is stuck, or leaks them until its descriptors run out", waiting, beside)
	v.next("ss -tnp state close-wait | head; ls /proc/PID/fd | wc -l; grep 'open files' /proc/PID/limits", "whose they are, and how far its limit is")
}
