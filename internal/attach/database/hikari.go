package database

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// hikari is what HikariCP, the usual pool of connections of Java programs, logs of itself.
var hikari = &attach.Kind{
	Name:      "HikariCP log",
	Hints:     hikariMarks,
	Marks:     hikariMarks,
	Single:    true,
	Scattered: true,
	Claim:     func(lines []paste.Line) int { return run(lines, isHikari) },
	Read:      readHikari,
}

var hikariMarks = []string{"request timed out after ", "housekeeper delta=", ", waiting=",
	"onnection leak detection", "connection leak detected", "HikariPool-", "connection elided"}

var (
	// "(total=10, active=10, idle=0, waiting=52)"
	hikariStats = pattern.New(`\(total=(\d+)(?:/\d+)?, active=(\d+), idle=(\d+)(?:/\d+)?, waiting=(\d+)\)`)
	hikariOut   = pattern.New(`Connection is not available, request timed out after (\d+)ms`)
	hikariDelta = pattern.New(`housekeeper delta=([\dhmsuµn.]+)\)`)
	// Since 5.0: threads that wait, and connections that were asked for and are not open yet.
	hikariElided = pattern.New(`Add connection elided, waiting (\d+), queue (\d+)`)
	hikariLeak   = pattern.New(`[Cc]onnection leak detect(?:ed|ion triggered)`)
	hikariOther  = pattern.New(`\bHikariPool-\d+ - \S`)
)

func isHikari(text string) bool {
	return hikariStats.MatchString(text) || hikariOut.MatchString(text) ||
		hikariDelta.MatchString(text) || hikariLeak.MatchString(text) ||
		hikariElided.MatchString(text) || hikariOther.MatchString(text)
}

// leaped is the delay of the pool's own timer from which on it is a machine that slept rather than
// one without CPU.
const leaped = 300.0

// hikariSaid is what the lines say.
type hikariSaid struct {
	stats, full         int     // lines with the pool's size; those with none idle and somebody waiting
	total, active, most float64 // of the line with the most waiting
	limits              []float64
	deltas              []float64 // s
	leaks               int
	waiting, queued     []float64 // threads that wait; connections that are being opened
}

func (h *hikariSaid) line(text string) {
	if m := hikariStats.FindStringSubmatch(text); m != nil {
		h.stats++
		total, _ := number(m[1])
		active, _ := number(m[2])
		idle, _ := number(m[3])
		waiting, _ := number(m[4])
		if idle == 0 && waiting > 0 {
			h.full++
		}
		if waiting > h.most || h.stats == 1 {
			h.total, h.active, h.most = total, active, waiting
		}
	}
	if m := hikariOut.FindStringSubmatch(text); m != nil {
		ms, _ := number(m[1])
		h.limits = append(h.limits, ms/1e3)
	}
	if m := hikariDelta.FindStringSubmatch(text); m != nil {
		if d, err := time.ParseDuration(m[1]); err == nil && d > 0 {
			h.deltas = append(h.deltas, d.Seconds())
		}
	}
	if m := hikariElided.FindStringSubmatch(text); m != nil {
		waiting, _ := number(m[1])
		queued, _ := number(m[2])
		h.waiting, h.queued = append(h.waiting, waiting), append(h.queued, queued)
	}
	if hikariLeak.MatchString(text) {
		h.leaks++
	}
}

func readHikari(p *attach.Part) attach.Reading {
	var h hikariSaid
	for _, l := range p.Lines {
		h.line(l.Text)
	}
	r := &result{}
	r.Title = "HikariCP's log of a pool of connections, " + attach.Plural(len(p.Lines), "line")
	if h.stats > 0 {
		r.figure(fmt.Sprintf("at the worst %.0f of %.0f connections in use, and %s waiting for one; all in use in %d of %d lines",
			h.active, h.total, attach.Plural(int(h.most), "thread"), h.full, h.stats))
	}
	if len(h.limits) > 0 {
		r.figure(h.gaveUp())
	}
	if len(h.deltas) > 0 {
		r.figure(h.lateness())
	}
	if h.leaks > 0 {
		r.figure("connections that were held longer than the leak threshold: " + times(h.leaks))
	}
	if len(h.waiting) > 0 {
		r.figure(fmt.Sprintf("%.0f threads at most wait for a connection, the last line says %.0f; up to %.0f connections are asked for and not open yet",
			slices.Max(h.waiting), h.waiting[len(h.waiting)-1], slices.Max(h.queued)))
	}
	h.judge(r)
	if len(r.Signs) == 0 && r.Means == "" {
		r.Means = "The pool complains of nothing here."
		return r.done(attach.Context)
	}
	return r.done(attach.CannotTell)
}

func (h *hikariSaid) lateness() string {
	line := "the pool's own timer was late: " + times(len(h.deltas))
	if len(h.deltas) == 1 {
		return line + ", by " + long(h.deltas[0])
	}
	return line + fmt.Sprintf(", by %s in the median, at most %s", long(attach.Median(h.deltas)),
		long(slices.Max(h.deltas)))
}

func (h *hikariSaid) gaveUp() string {
	return fmt.Sprintf("%s gave up after %s without a connection",
		attach.Plural(len(h.limits), "request"), dur(slices.Max(h.limits)))
}

func (h *hikariSaid) judge(r *result) {
	if len(h.deltas) > 0 {
		h.late(r)
	}
	switch {
	case h.full == 0 && len(h.limits) > 0 && len(h.deltas) > 0:
		r.Means = "The pool's own timer was late as well: nothing of the process ran, or its clock was set. That alone explains a request that waited past its limit."
		r.Not = "That the pool is short of connections: no figure of it is here, and a limit passes while nothing runs, too."
	case h.full == 0 && len(h.limits) > 0:
		r.Means = "A request got no connection within its limit: all were in use, or none could be opened. No figure of the pool at that moment says which."
		r.Not = "That the pool is too small: without its figures (active, idle, waiting) a server that takes no connection looks the same."
		r.candidate("pool-exhaustion", h.gaveUp())
		r.next("the log at DEBUG, where the pool writes its figures each 30 s; jcmd PID Thread.print -l", "whether all connections are in use, and what their holders do")
	case h.full > 0:
		r.Means = "Threads wait for a connection of the pool: all are in use. What their holders do meanwhile decides."
		r.Not = "Why connections are held: a slow statement, a transaction that stays open, or a pool that is too small look the same."
		r.found("pool-exhaustion", finding.Possible, r.Figures[0], 0)
		r.next("jcmd PID Thread.print -l", "shows what the threads do which hold the connections")
	case len(h.waiting) > 0 && slices.Max(h.waiting) > 0:
		r.Means = "Threads wait for a connection while new ones are being opened: the pool is short of them, or opening one takes long."
		r.Not = "How long a thread waits: these lines have no time of a wait."
		r.candidate("pool-exhaustion", r.Figures[len(r.Figures)-1])
		r.next("jcmd PID Thread.print -l",
			"shows what the threads do which hold the connections, and the one that opens them")
	case h.leaks > 0:
		r.Means = "Connections are held for long; nobody is shown to wait for one."
		r.candidate("pool-exhaustion", r.Figures[len(r.Figures)-1])
	}
}

// late says what a late timer means: the whole process did not run, or the timer's own task did not
// end: it closes and tests connections, and a driver may hang in that.
func (h *hikariSaid) late(r *result) {
	line := h.lateness()
	r.Not = "It says nothing of the database, nor that the pool is short of connections."
	r.next("jcmd PID Thread.print, twice while it is late",
		"whether the housekeeper hangs in the driver, or the whole process stands still")
	if attach.Median(h.deltas) >= leaped {
		r.Means = "For minutes the process stood still, or the clock was set, as where a machine was suspended; or the timer's own task hung in the driver."
		return
	}
	r.Means = "The process stood still (no CPU, a pause of the JVM, memory that was swapped out), or the timer's own task hung in the driver."
	r.candidate("cpu-contention", line)
	r.candidate("cpu-throttled", line)
	r.candidate("jvm-safepoint", line)
	r.next("vmstat 1 10; cat /sys/fs/cgroup/CGROUP/cpu.stat", "r says CPUs, si swap, nr_throttled a quota")
}

// long prints minutes and hours as people say them.
func long(s float64) string {
	if s < 100 {
		return dur(s)
	}
	d := time.Duration(s * float64(time.Second)).Round(time.Second).String()
	if strings.HasSuffix(d, "m0s") {
		return strings.TrimSuffix(d, "0s")
	}
	return d
}
