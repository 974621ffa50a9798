package stackdump

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// gameWatchdog reads what the watchdog of Minecraft servers (Spigot, Paper) writes of all threads
// into the log. Every line has the logger's prefix, and the level says nothing of the threads.
var gameWatchdog = &attach.Kind{
	Name:  "watchdog's thread dump",
	Hints: []string{"Current Thread: ", "PID: ", "Stack:"},
	Claim: claimGameWatchdog,
	Read:  readGameWatchdog,
}

var (
	// gamePrefix is a logger's: a time, and a level or a thread in brackets.
	gamePrefix = pattern.New(`^(?:\d{4}-\d\d-\d\d )?\[?\d\d:\d\d:\d\d\]? ?\[[^\]]*\]:? ?`)
	gameThread = pattern.New(`^Current Thread: (.+)$`)
	gameState  = pattern.New(`^PID: (\d+) \| Suspended: (?:true|false) \| Native: (?:true|false) \| State: ([A-Z_]+)$`)
	gameFrame  = pattern.New(`^(?:\S+//?)?([\w$.@/<>-]+\.[\w$<>]+)\(([^()]*)\)( \[.*)?$`)
	gameNote   = pattern.New(`^(?:-{10,}|Stack:|Thread is waiting on monitor\(s\):|Locked on:.*|Server thread dump .*|Entire Thread Dump:|The server has (?:stopped|not) .*)$`)
)

// gameText is a line without its prefix; false: it has none.
func gameText(text string) (string, bool) {
	at := gamePrefix.FindStringIndex(text)
	if at == nil {
		return "", false
	}
	return strings.TrimSpace(text[at[1]:]), true
}

func claimGameWatchdog(lines []paste.Line) int {
	first, ok := gameText(lines[0].Text)
	if !ok || !gameThread.MatchString(first) && !gameState.MatchString(first) &&
		!gameFrame.MatchString(first) && !gameNote.MatchString(first) {
		return 0
	}
	states, frames := 0, 0
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		text, ok := gameText(text)
		switch {
		case !ok:
			return false
		case gameState.MatchString(text):
			states++
		case gameFrame.MatchString(text):
			frames++
		default:
			return gameThread.MatchString(text) || gameNote.MatchString(text)
		}
		return true
	})
	return attach.ClaimIf(states > 0 && frames > 0, n)
}

func readGameWatchdog(p *attach.Part) attach.Reading {
	d := &dump{owners: map[string]int{}, tool: "watchdog's thread dump", whole: "jcmd PID Thread.print -l"}
	var t *thread
	name, server := "", false
	for _, l := range p.Lines {
		text, _ := gameText(l.Text)
		if m := gameThread.FindStringSubmatch(text); m != nil {
			name, t = m[1], nil
			server = server || name == "Server thread"
			continue
		}
		if m := gameState.FindStringSubmatch(text); m != nil {
			t = &thread{n: 1, id: atoi(m[1]), name: name, state: m[2]}
			d.threads = append(d.threads, t)
			name = ""
			continue
		}
		if m := gameFrame.FindStringSubmatch(text); m != nil && t != nil && len(t.frames) < 400 &&
			!strings.HasPrefix(text, "Locked on:") {
			t.frames = append(t.frames, frame{fn: modless(m[1]), file: m[2]})
		}
	}
	r := d.readJVM()
	if !server && len(r.Signs) == 0 {
		r.State = attach.CannotTell
		r.Figures = append(r.Figures, "the server's own thread, which the watchdog found late, is not in it")
	}
	r.Not = "The level of these lines, such as SEVERE, is the watchdog's and says nothing of a thread. It is one instant."
	return r
}
