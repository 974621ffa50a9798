package fleet

import (
	"context"
	"slices"
	"time"
)

// when says at what times a member was ill.
type when struct {
	ill     bool
	worst   time.Time
	largest float64
	start   time.Time // of the last bout
	err     time.Duration
	bouts   int
	gaps    bool
	earlier bool // it was ill from the first value on: it may have started before
}

// mostSteps is how many values a series may have: engines allow 11 000, and an answer for twenty
// members has to stay small.
const mostSteps = 240

// step is the distance of values over the time asked for.
func (l *look) step() time.Duration {
	interval := max(time.Duration(l.r.Coverage.IntervalNS), 15*time.Second)
	s := max(l.o.Since/mostSteps, interval)
	return s.Round(time.Second)
}

// whens asks when each candidate lost more than the rule's least. A rate over a window sees the
// start of a bout late, by up to the window; so the last start is then asked for by the counter
// itself, scrape by scrape.
func (l *look) whens(ctx context.Context, r *Rule, e *env, cs []*candidate) error {
	step := l.step()
	at := *e
	at.window = max(2*step, 4*max(time.Duration(l.r.Coverage.IntervalNS), 15*time.Second))
	names := l.p.labels(r.Key)
	series, err := l.engine.Range(ctx, r.Loss(&at), l.o.At.Add(-l.o.Since), l.o.At, step)
	if err != nil {
		return err
	}
	for _, c := range cs {
		i := slices.IndexFunc(series, func(s Series) bool { return s.Labels.at(names) == c.labels.at(names) })
		if i < 0 {
			continue
		}
		c.when = bouts(series[i].Points, r.Least, step, r.Levels, l.o.Since)
		c.when.err = step + at.window
		c.when.earlier = len(series[i].Points) > 0 && c.when.start.Equal(series[i].Points[0].At)
		if !c.when.earlier && !r.Levels {
			l.zoom(ctx, r, c, e)
		}
	}
	return nil
}

// bouts finds the stretches in which a member lost at least so much. A gap in the series ends one:
// nothing is known of it. One value below does not.
func bouts(points []Point, least float64, step time.Duration, level bool, since time.Duration) (w when) {
	var (
		inBout  bool
		quiet   int
		above   time.Duration
		last    time.Time
		longest time.Duration
		from    time.Time
	)
	for _, p := range points {
		if !last.IsZero() && p.At.Sub(last) > step*3/2 {
			w.gaps, inBout, above = true, false, 0
		}
		last = p.At
		if p.Value < least {
			if quiet++; quiet > 1 {
				inBout, above = false, 0
			}
			continue
		}
		quiet = 0
		if !inBout {
			inBout, from, above = true, p.At, 0
		}
		above += step
		if longest = max(longest, above); above >= min(leastBout, since/2) && (w.bouts == 0 || w.start.Before(from)) {
			w.bouts++
			w.start = from
		}
		if p.Value >= 0.99*w.largest { // of equals the last: series may have started in the first
			w.largest, w.worst = max(w.largest, p.Value), p.At
		}
	}
	w.ill = w.bouts > 0 || level && len(points) > 0 && w.largest >= least
	if w.worst.IsZero() && len(points) > 0 {
		w.worst = points[len(points)-1].At
	}
	return w
}

// zoom asks for ten minutes around the start, at the scrape interval and over two scrapes: the
// first that grew faster than the least is the start.
func (l *look) zoom(ctx context.Context, r *Rule, c *candidate, e *env) {
	interval := max(time.Duration(l.r.Coverage.IntervalNS), 5*time.Second)
	at := *l.of(r, []Labels{c.labels})
	at.window, at.start = 2*interval+interval/2, true
	from, to := c.when.start.Add(-5*time.Minute), minTime(c.when.start.Add(5*time.Minute), l.o.At)
	series, err := l.engine.Range(ctx, r.Loss(&at), from, to, interval)
	if err != nil {
		return
	}
	names := l.p.labels(r.Key)
	for _, s := range series {
		if s.Labels.at(names) != c.labels.at(names) {
			continue
		}
		// The start is the last rise before the bout that was seen: quiet before, and loud after.
		start := time.Time{}
		for i, p := range s.Points {
			if p.Value >= r.Least && (i == 0 || s.Points[i-1].Value < r.Least) &&
				!p.At.After(c.when.start.Add(2*interval)) {
				start = p.At
			}
		}
		if !start.IsZero() {
			c.when.start, c.when.err = start.Add(-interval), interval
		}
	}
}
