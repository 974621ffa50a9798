package database

import (
	"fmt"
	"slices"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// pgCheckpoints is what a log says of checkpoints; times in seconds.
type pgCheckpoints struct {
	sync     []float64 // the longest fsync of each checkpoint
	write    []float64 // how long each wrote
	all      []float64 // how long all fsyncs of each took
	wrote    float64   // buffers of the one that wrote longest
	distance []float64 // the log of changes between two of them, in bytes
	starts   int
	timed    int       // of them, those that the time since the one before started
	began    []float64 // when they started, in s
	full     int       // of them, those that the size of the log of changes started
	ended    time.Time // when the last one ended
	touching int       // started as soon as the one before had ended
}

var (
	pgCheck    = pattern.New(`checkpoint complete: wrote (\d+) buffers.*write=([\d.]+) s, sync=([\d.]+) s, total=([\d.]+) s; sync files=(\d+), longest=([\d.]+) s`)
	pgStarting = pattern.New(`checkpoint starting:((?: [a-z-]+)+)`)
	pgDistance = pattern.New(`distance=(\d+) kB`)
	pgByLog    = pattern.New(`\b(?:wal|xlog)\b`)
)

// soonAfter is how long after the end of a checkpoint the next one starts that waited for it; s.
const soonAfter = 1

func (c *pgCheckpoints) line(text string) {
	now := pgTimeOf(text)
	if m := pgStarting.FindStringSubmatch(text); m != nil {
		c.starts++
		if m[1] == " time" {
			c.timed++
		}
		if !now.IsZero() {
			c.began = append(c.began, float64(now.UnixMilli())/1e3)
		}
		if pgByLog.MatchString(m[1]) {
			c.full++
			if !c.ended.IsZero() && !now.IsZero() && now.Sub(c.ended).Seconds() <= soonAfter {
				c.touching++
			}
		}
		return
	}
	m := pgCheck.FindStringSubmatch(text)
	if m == nil {
		return
	}
	c.ended = now
	longest, _ := number(m[6])
	sync, _ := number(m[3])
	write, _ := number(m[2])
	if n, _ := number(m[1]); write >= slices.Max(append(c.write, 0)) {
		c.wrote = n
	}
	c.sync, c.write, c.all = append(c.sync, longest), append(c.write, write), append(c.all, sync)
	if d := pgDistance.FindStringSubmatch(text); d != nil {
		kB, _ := number(d[1])
		c.distance = append(c.distance, kB*1024)
	}
}

// pgTimeOf is the time of a line; zero: it has none.
func pgTimeOf(text string) (at time.Time) {
	if m := pgStamp.FindStringSubmatch(text); m != nil {
		at, _ = time.Parse("2006-01-02 15:04:05", m[1])
	}
	return at
}

// forced reports whether the size of the log of changes started most checkpoints, of which there
// are several: it fills too fast for the time between two of them.
func (c *pgCheckpoints) forced() bool { return c.full >= 2 && 2*c.full > c.starts }

// onTime says that all checkpoints were started by the time since the one before, and how far apart
// they started where that is one time for all; "": others started some of them.
func (c *pgCheckpoints) onTime() string {
	if c.timed == 0 || c.timed < c.starts {
		return ""
	}
	text := fmt.Sprintf("all %d checkpoints whose start is here were started by the time (checkpoint_timeout), and not by the size of the log of changes", c.starts)
	if c.starts == 1 {
		text = "the checkpoint was started by the time (checkpoint_timeout), and not by the size of the log of changes"
	}
	if len(c.began) < 3 || len(c.began) < c.starts {
		return text
	}
	least, most := c.began[1]-c.began[0], 0.0
	for i := 1; i < len(c.began); i++ {
		least, most = min(least, c.began[i]-c.began[i-1]), max(most, c.began[i]-c.began[i-1])
	}
	if least < 1 || most > 1.1*least {
		return text
	}
	return text + fmt.Sprintf("; one each %s", dur((c.began[len(c.began)-1]-c.began[0])/float64(len(c.began)-1)))
}

// tell says how long the fsyncs took, and what started the checkpoints.
func (c *pgCheckpoints) tell(r *result) {
	if len(c.sync) > 0 {
		line := fmt.Sprintf("%s: longest fsync of one file %s (median of checkpoints %s)",
			attach.Plural(len(c.sync), "checkpoint"), dur(slices.Max(c.sync)), dur(attach.Median(c.sync)))
		if len(c.sync) == 1 {
			line = fmt.Sprintf("1 checkpoint: longest fsync of one file %s", dur(c.sync[0]))
		}
		if all := slices.Max(c.all); all >= soonAfter {
			line += fmt.Sprintf(", all fsyncs of one checkpoint together up to %s", dur(all))
		}
		r.figure(line)
		if slices.Max(c.sync) >= 1 {
			r.fact(FactFsync, slices.Max(c.sync)*1e3, "checkpoint")
			r.found("disk-wait", finding.Possible, line, 0)
			r.Means = "A checkpoint's fsync took a second or more: what has to reach the disk meanwhile waits."
			r.next("iostat -x 1 30", "says whether the disk is slow")
		}
	}
	if c.full > 0 {
		line := fmt.Sprintf("%d of %s started since the log of changes had filled max_wal_size",
			c.full, attach.Plural(c.starts, "checkpoint"))
		if c.touching > 0 {
			line += fmt.Sprintf(", %d of them right when the one before had ended", c.touching)
		}
		r.figure(line)
	}
	if text := c.onTime(); text != "" {
		r.figure(text)
	}
	if len(c.distance) > 0 {
		line := fmt.Sprintf("log of changes from one checkpoint to the next: median %s, at most %s",
			bytesText(attach.Median(c.distance)), bytesText(slices.Max(c.distance)))
		if len(c.distance) == 1 {
			line = "log of changes since the checkpoint before: " + bytesText(c.distance[0])
		}
		r.figure(line)
	}
	if len(c.sync) == 0 {
		return
	}
	if w := slices.Max(c.write); w >= 1 {
		r.figure(fmt.Sprintf("the longest wrote for %s, %s buffers: spread over that time on purpose, unless it ends a recovery or a shutdown, or was asked for at once", dur(w), count(c.wrote)))
	}
}
