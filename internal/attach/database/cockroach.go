package database

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// cockroach is what CockroachDB says of its disk.
var cockroach = &attach.Kind{
	Name:      "CockroachDB log",
	Hints:     roachMarks,
	Marks:     roachMarks,
	Single:    true,
	Scattered: true,
	Claim:     func(lines []paste.Line) int { return run(lines, roachLine.MatchString) },
	Read:      readRoach,
}

var roachMarks = []string{"disk slowness detected", "disk stall detected", "raft commit",
	"file write stall", "slow heartbeat took ", "node liveness heartbeat", " liveness epoch ",
	" runtime stats: ", "epoch increment"}

// roachLive is the start of a line of its log: what it says of the record by which a node lives.
const roachLive = `^[IWEF]\d{6} \d\d:\d\d:\d\d\.\d+ .*(?:slow heartbeat took [\d.]+m?s|failed node liveness heartbeat: |heartbeat failed on epoch increment|liveness epoch to \d+|runtime stats: .*%\(u/s\)time)`

var (
	roachBeat = pattern.New(`slow heartbeat took ([\d.]+m?s)`)
	roachUse  = pattern.New(`runtime stats: .*, ([\d.]+)/([\d.]+) %\(u/s\)time, ([\d.]+) %gc`)
	roachHas  = pattern.New(`runtime stats: ([\d.]+ [KMGT]?i?B) RSS, (\d+) goroutines, .* ([\d.]+) ?(?:CGO|cgo)/sec`)
	roachLine = pattern.New(`disk slowness detected: |disk stall detected: |slow (?:non-blocking )?raft commit: |file write stall detected: |` + roachLive)
	roachDisk = pattern.New(`(?:disk slowness|disk stall|file write stall) detected: (?:unable to sync log files within ([\d.]+m?s)|.*?(?:for|been ongoing for) ([\d.]+m?s)?)`)
)

// roachSaid is what its lines say.
type roachSaid struct {
	disk, commits, beats, missed int
	limit                        string
	slow                         float64 // the longest heartbeat, in s
	cpus, gc                     float64 // of the line with the most CPU; stops in percent of the time
	asPrinted                    string  // its CPU, where the unit is not known; "": it is
	memory                       string  // the last line's memory, goroutines and calls of C
	used                         bool
}

func (s *roachSaid) line(text string) {
	if m := roachUse.FindStringSubmatch(text); m != nil {
		user, _ := number(m[1])
		system, _ := number(m[2])
		if cpus := (user + system) / 100; !s.used || cpus > s.cpus {
			s.cpus, s.used = cpus, true
			s.gc, _ = number(m[3])
			// Versions that print two decimals call CPUs per cent as well.
			if s.asPrinted = ""; twoDecimals(m[1]) {
				s.asPrinted = m[1] + "/" + m[2]
			}
		}
		if m := roachHas.FindStringSubmatch(text); m != nil {
			s.memory = fmt.Sprintf("%s resident, %s goroutines, %s calls of C a second", m[1], m[2], m[3])
		}
	} else if m := roachBeat.FindStringSubmatch(text); m != nil {
		s.beats++
		v, _ := seconds(m[1])
		s.slow = max(s.slow, v)
	} else if strings.Contains(text, "failed node liveness heartbeat") {
		s.missed++
	} else if m := roachDisk.FindStringSubmatch(text); m != nil {
		s.disk++
		s.limit = cmp.Or(s.limit, m[1]+m[2])
	} else if strings.Contains(text, "raft commit") {
		s.commits++
	}
}

func readRoach(p *attach.Part) attach.Reading {
	var s roachSaid
	for _, l := range p.Lines {
		s.line(l.Text)
	}
	r := &result{}
	r.Title = "CockroachDB's log, " + attach.Plural(len(p.Lines), "line")
	r.Not = "Whether the device was slow or others filled it, the log does not say."
	if s.disk > 0 {
		line := "writes to the disk that did not end in time: " + times(s.disk)
		if s.limit != "" {
			line += ", for " + s.limit + " or longer"
		}
		r.figure(line)
		r.found("disk-wait", finding.Possible, line, 0)
		r.Means = "CockroachDB measured its own disk: a sync did not end, and what has to be durable waited."
	}
	if s.commits > 0 {
		line := "slow raft commits: " + times(s.commits)
		r.figure(line)
		if s.disk == 0 {
			r.candidate("disk-wait", line)
			r.candidate("cpu-contention", line)
			r.Means = "Commits were slow: the disk, the network to other nodes, or a lack of CPU."
		}
	}
	s.alive(r)
	if s.disk+s.commits+s.beats+s.missed > 0 {
		r.next("iostat -x 1 30", "whether the disk is slow, and who writes")
	} else {
		r.Means, r.Not = "CockroachDB complains of no disk, no commit and no late heartbeat in these lines.", ""
	}
	return r.done(attach.CannotTell)
}

// alive says what the record of the node's life shows: each node writes it again every few seconds.
func (s *roachSaid) alive(r *result) {
	if s.beats+s.missed > 0 {
		line := "heartbeats of the node's record that it lives were slow: " + times(max(s.beats, s.missed))
		if s.slow > 0 {
			line += ", the longest " + dur(s.slow)
		}
		if s.missed > 0 {
			line += "; given up: " + times(s.missed)
		}
		r.figure(line)
		if s.disk+s.commits == 0 {
			r.candidate("disk-wait", line)
			r.candidate("cpu-contention", line)
			r.Means = "The node did not write the record that it lives in time: its disk, that of the node which holds the record, the network between, or a lack of CPU."
			r.Not = "Which of them it was. A node that misses it is not dead: it loses its leases."
		}
	}
	if s.memory != "" {
		r.figure(s.memory)
	}
	switch {
	case !s.used:
	case s.asPrinted != "":
		r.figure(fmt.Sprintf("its own count of CPU (user/system) is %s, called per cent, which may be CPUs; stops of the world took %s %% of the time", s.asPrinted, three(s.gc)))
	default:
		r.figure(fmt.Sprintf("the process used %s CPUs by its own count; stops of the world took %s %% of the time", three(s.cpus), three(s.gc)))
	}
}

// twoDecimals reports whether a number has them.
func twoDecimals(s string) bool {
	_, decimals, _ := strings.Cut(s, ".")
	return len(decimals) == 2
}
