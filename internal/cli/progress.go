package cli

import (
	"fmt"

	"github.com/whystall/whystall/internal/collect"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
)

// progress shows how a recording goes: on a terminal as a line that changes, else as one line at
// its start and one for each note.
type progress struct {
	con   *console
	live  bool
	shown int // width of the line that stands there
	said  bool
}

func (con *console) progress() *progress {
	return &progress{con: con, live: terminal(con.stderr) && con.getenv("TERM") != "dumb"}
}

func (p *progress) update(u collect.Progress) {
	if u.Note != "" {
		p.clear()
		p.con.say("%s", u.Note)
		return
	}
	if !p.live {
		if u.Of > 0 && !p.said {
			p.said = true
			p.con.say("recording for %s; Ctrl-C ends it early and keeps what was recorded", u.Of)
		}
		return
	}
	p.line(tick(&u))
}

// line replaces the last line.
func (p *progress) line(s string) {
	if wide := columns(p.con.stderr); wide > 1 && len(s) >= wide {
		s = s[:wide-1] // a line that breaks cannot be replaced
	}
	// Blanks instead of an escape sequence: they clear a line on every terminal.
	fmt.Fprintf(p.con.stderr, "\r%-*s", p.shown, s)
	p.shown = len(s)
}

func (p *progress) clear() {
	if p.shown > 0 {
		fmt.Fprintf(p.con.stderr, "\r%*s\r", p.shown, "")
		p.shown = 0
	}
}

// tick is the line that stands while a recording goes on: how long it takes yet, and what counters
// that are read anyway say of the target. What matters most comes first, as the line is cut at the
// terminal's width. All of it is ASCII.
func tick(u *collect.Progress) string {
	line := u.Doing
	if u.Of > 0 {
		line = fmt.Sprintf("%.0f s left (Ctrl-C ends it)", max(0, u.Of-u.Elapsed).Seconds())
	}
	add := func(counter evidence.Counted, format string, args ...any) {
		if u.Load != nil && u.Load.Seen[counter] {
			line += ", " + fmt.Sprintf(format, args...)
		}
	}
	if l := u.Load; l != nil {
		add(evidence.CountedCPU, "CPU %.2f", l.CPUs)
		add(evidence.CountedThrottled, "throttled %d ms", l.ThrottledNS/1e6)
		add(evidence.CountedQueued, "stalls %d/%d", l.Stalled, l.Readings)
		add(evidence.CountedSwitches, "%.0f switches/s", l.Switches)
	}
	if u.Of > 0 {
		line += ", " + finding.Bytes(u.Received)
	}
	return line
}
