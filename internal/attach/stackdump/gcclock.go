package stackdump

import (
	"strings"
	"time"
)

// gcClock is the time that the lines of a log cover, by one of their clocks.
type gcClock struct {
	first, last float64   // of the run of the JVM that is read: its first line and its last, in s
	before      float64   // covered by runs that ended within the log, in s
	runs        int       // of them
	by          clock     // whose time counts
	zero        time.Time // of the first line that a logger wrote
}

// clock says whose time a line has. The JVM's own counts where some lines have it.
type clock int

const (
	noClock clock = iota
	loggers       // a date
	uptime        // since the JVM's start
)

// mostRuns is how many runs of a JVM a log has at most. With more of them, lines of several JVMs
// are written into each other.
const mostRuns = 8

// tick takes the time of a line. A clock that goes back is that of a JVM which was started anew.
func (c *gcClock) tick(text string, logged time.Time) {
	at, by := c.read(text, logged)
	switch {
	case by == noClock || by < c.by:
		return
	case by > c.by:
		*c = gcClock{first: at, last: at, by: by, zero: c.zero}
	case at < c.last-1:
		c.before += c.last - c.first
		c.runs++
		c.first, c.last = at, at
	default:
		c.last = max(c.last, at)
	}
}

// read is when a line was written, in s.
func (c *gcClock) read(text string, logged time.Time) (float64, clock) {
	if m := gcRockit.FindStringSubmatch(text); m != nil {
		return seconds(m[1], 1)
	}
	if m := gcUptime.FindStringSubmatch(text); m != nil {
		if m[2] == "ms" {
			return seconds(m[1], 1e-3)
		}
		return seconds(m[1], 1)
	}
	if m := gcOldAt.FindStringSubmatch(text); m != nil {
		return seconds(m[1], 1)
	}
	if m := gcISO.FindStringSubmatch(text); m != nil {
		t, err := time.Parse("2006-01-02T15:04:05.000", strings.Replace(m[1], ",", ".", 1))
		if err == nil {
			logged = t
		}
	}
	if logged.IsZero() {
		return 0, noClock
	}
	if c.zero.IsZero() {
		c.zero = logged
	}
	return logged.Sub(c.zero).Seconds(), loggers
}

// seconds is an uptime in s.
func seconds(text string, unit float64) (float64, clock) {
	s, ok := decimal(text)
	if !ok {
		return 0, noClock
	}
	return s * unit, uptime
}

// covers is the time that the log covers: from its first line to its last, and the pause at one of
// the two, since a line has the time of the start of a pause or of its end. 0: not known.
func (c *collections) covers() float64 {
	if len(c.pauses) == 0 || c.by == noClock || c.runs > mostRuns {
		return 0
	}
	return c.before + c.last - c.first + max(c.pauses[0], c.pauses[len(c.pauses)-1])
}
