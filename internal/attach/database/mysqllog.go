package database

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// mysqlLog is what the error log of MySQL and MariaDB says of the flushing of pages.
var mysqlLog = &attach.Kind{
	Name:      "MySQL error log",
	Hints:     []string{"intended loop took", "age cleaner took", "ifficult to find free blocks"},
	Marks:     []string{"intended loop took", "age cleaner took", "ifficult to find free blocks"},
	Single:    true,
	Scattered: true,
	Claim:     func(lines []paste.Line) int { return run(lines, isMySQLLog) },
	Read:      readMySQLLog,
}

var (
	// "page_cleaner: 1000ms intended loop took 4138ms. ... (flushed=2002 and evicted=0, during the
	// time.)", "Page cleaner took 5310ms to flush 120 and evict 0 pages"
	cleaner57  = pattern.New(`page_cleaner: (\d+)ms intended loop took (\d+)ms\.(?:.*\(flushed=(\d+))?`)
	cleaner80  = pattern.New(`Page cleaner took (\d+)ms to flush (\d+)(?: and evict \d+)? pages`)
	noFreePage = pattern.New(`InnoDB\]?:? .*[Dd]ifficult to find free blocks`)
)

func isMySQLLog(text string) bool {
	return cleaner57.MatchString(text) || cleaner80.MatchString(text) || noFreePage.MatchString(text)
}

// asleep is how long a round that flushed nothing takes where the machine was suspended.
const asleep = 30.0

func readMySQLLog(p *attach.Part) attach.Reading {
	r := &result{}
	var took, slept []float64
	flushed, blocks := 0.0, 0
	for _, l := range p.Lines {
		var ms, pages float64
		said := true
		if m := cleaner57.FindStringSubmatch(l.Text); m != nil {
			ms, _ = number(m[2])
			pages, said = number(m[3])
		} else if m := cleaner80.FindStringSubmatch(l.Text); m != nil {
			ms, _ = number(m[1])
			pages, _ = number(m[2])
		} else {
			blocks++
			continue
		}
		if said && pages == 0 && ms >= asleep*1e3 {
			slept = append(slept, ms/1e3)
			continue
		}
		took = append(took, ms/1e3)
		flushed += pages
	}
	r.Title = "MySQL's error log, " + attach.Plural(len(p.Lines), "line") + " of InnoDB's page cleaner"
	if len(took) > 0 {
		line := fmt.Sprintf("rounds of flushing that are meant for 1 s took longer: %s, median %s, at most %s; %s pages in all",
			times(len(took)), dur(attach.Median(took)), dur(slices.Max(took)), count(flushed))
		r.figure(line)
		r.Means = "Rounds of flushing took longer than they are meant to: the disk does not keep up, the cleaner's threads had no CPU, or there was too much for one round."
		r.candidate("disk-wait", line)
		r.candidate("cpu-contention", line)
		r.Not = "Whether any statement waited: pages are flushed in the background, and statements wait where no page is free or the log is full."
		r.next("iostat -x 1 10; mysql -e 'SHOW ENGINE INNODB STATUS\\G'", "w_await of the disk, and pending writes")
	}
	if blocks > 0 {
		r.figure("no free page was found in the buffer pool: " + times(blocks))
	}
	if len(slept) > 0 {
		r.figure(fmt.Sprintf("rounds without a page to flush that lasted up to %s: %s",
			long(slices.Max(slept)), times(len(slept))))
		if r.Means == "" {
			r.Means = "Nothing was flushed in that time: the machine was suspended or its clock was set. That is no slow disk."
		}
	}
	return r.done(attach.CannotTell)
}
