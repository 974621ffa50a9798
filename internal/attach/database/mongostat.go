package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// mongostat reads rows of mongostat, a second each: rates, and who waits in a queue.
var mongostat = &attach.Kind{
	Name: "mongostat",
	Hints: []string{"insert query update delete", "insert  query update delete",
		"insert  query  update delete", "insert "},
	Joins: true,
	Claim: func(lines []paste.Line) int {
		rows := 0
		n := attach.ClaimWhile(lines, func(i int, text string) bool {
			switch {
			case statHead(text), i > 0 &&
				(strings.HasPrefix(text, "[...") || strings.HasPrefix(text, "...")): // left out
				return true
			case i > 0 && statRow(statCells(text)):
				rows++
				return true
			}
			return false
		})
		return attach.ClaimIf(rows > 0, n)
	},
	Read: readMongostat,
}

var (
	statPair  = pattern.New(`^\d+\|\d+$`)
	statHost  = pattern.New(`^[\w.-]+:\d{2,5}$`)
	statShare = pattern.New(`^(\d+(?:\.\d+)?)%?$`)
)

// statCells are the cells of a line without the server that --discover puts in front.
func statCells(text string) []string {
	f := strings.Fields(text)
	if len(f) > 0 && (f[0] == "host" || statHost.MatchString(f[0])) {
		f = f[1:]
	}
	return f
}

func statHead(text string) bool {
	f := statCells(text)
	return len(f) > 8 && slices.Equal(f[:6], []string{"insert", "query", "update", "delete", "getmore", "command"})
}

// statRow reports whether cells are a row: six rates, the last of which has a bar.
func statRow(f []string) bool {
	if len(f) < 9 || !statPair.MatchString(f[5]) && !allDigits(f[5]) {
		return false
	}
	for _, c := range f[:5] {
		if !allDigits(strings.TrimLeft(c, "*")) {
			return false
		}
	}
	return true
}

// Of WiredTiger's cache, in percent: where threads of requests have to evict pages themselves.
const (
	dirtyMuch = 20.0
	usedMuch  = 95.0
	// wholeCache is more than any cache holds: a counter of it fell below zero.
	wholeCache = 1000.0
	statQueue  = 5.0 // operations in the queues, the median
)

func readMongostat(p *attach.Part) attach.Reading {
	r := &result{}
	var head []string
	hosts := map[string]bool{}
	var ops, queued, dirty, used []float64
	wrong := 0.0 // the largest share of the cache, which may be impossible
	for _, l := range p.Lines {
		f := statCells(l.Text)
		if all := strings.Fields(l.Text); len(all) > len(f) && all[0] != "host" && len(hosts) < mostOwners {
			hosts[all[0]] = true
		}
		if statHead(l.Text) {
			head = statCells(strings.NewReplacer("% dirty", "dirty", "% used", "used").Replace(l.Text))
			continue
		}
		if !statRow(f) {
			continue
		}
		sum := 0.0
		for _, c := range f[:4] {
			v, _ := number(strings.TrimLeft(c, "*"))
			sum += v
		}
		ops = append(ops, sum)
		for _, c := range f[6:] {
			if statPair.MatchString(c) { // readers and writers who wait; the next pair is those at work
				a, b, _ := strings.Cut(c, "|")
				x, _ := number(a)
				y, _ := number(b)
				queued = append(queued, x+y)
				break
			}
		}
		for name, list := range map[string]*[]float64{"dirty": &dirty, "used": &used} {
			if i := slices.Index(head, name); i >= 0 && i < len(f) {
				m := statShare.FindStringSubmatch(f[i])
				if m != nil {
					v, _ := number(m[1])
					wrong = max(wrong, v)
					if v <= wholeCache {
						*list = append(*list, v)
					}
				}
			}
		}
	}
	r.Title = "mongostat, " + attach.Plural(len(ops), "sample")
	if len(hosts) > 0 {
		r.Title += " of " + attach.Plural(len(hosts), "server")
	}
	r.figure(fmt.Sprintf("%s inserts, queries, updates and deletes a second (median)", count(attach.Median(ops))))
	wait := 0.0
	if len(queued) > 0 {
		wait = attach.Median(queued)
		r.figure(fmt.Sprintf("in the queues: %s in the median, %s at most", count(wait), count(slices.Max(queued))))
	}
	if len(dirty) > 0 && len(used) > 0 {
		r.figure(fmt.Sprintf("cache: up to %s %% in use, up to %s %% dirty",
			three(slices.Max(used)), three(slices.Max(dirty))))
	}
	r.Not = "How long an operation takes: only rates and lengths of queues are in it."
	full := len(dirty) > 0 && len(used) > 0 && (attach.Median(dirty) >= dirtyMuch || attach.Median(used) >= usedMuch)
	switch {
	case wrong > wholeCache:
		line := fmt.Sprintf("the cache's share is %.0f %%, which is impossible; operations a second: %s at most, %s in the last row", wrong, count(slices.Max(ops)), count(ops[len(ops)-1]))
		r.Figures = append([]string{line}, r.Figures...)
		r.outside("a count of WiredTiger's cache that is wrong: it takes the cache for too full, and lets operations evict", line, 0)
		r.Not = "That the cache is full, or the disk slow: the figure is none."
		return r.done(attach.CannotTell)
	case full:
		r.Means = "The cache is so full that operations have to evict pages themselves before they go on."
		r.candidate("disk-wait", r.Figures[len(r.Figures)-1])
		r.next("iostat -x 1 10", "whether the disk keeps up with what is written")
	case len(queued) == 0:
		r.Means = "The lengths of MongoDB's queues are not among these columns."
		return r.done(attach.CannotTell)
	case wait >= statQueue:
		r.Means = "Operations wait in MongoDB's queues; for a lock, a ticket or the disk, the columns do not say."
		r.next("db.currentOp({waitingForLock: true})", "who waits, and for what")
		return r.done(attach.CannotTell)
	case slices.Max(queued) >= statQueue:
		r.Means = "Operations wait in MongoDB's queues in single samples, and not in the median."
		r.next("db.currentOp({waitingForLock: true})", "while they wait: who, and for what")
		return r.done(attach.CannotTell)
	case slices.Max(queued) > 0:
		r.Means = "Hardly anybody waits in MongoDB's queues."
	default:
		r.Means = "Nobody waits in MongoDB's queues."
	}
	return r.done(attach.Healthy)
}
