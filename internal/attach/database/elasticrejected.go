package database

import (
	"fmt"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// elasticRejected is Elasticsearch's refusal of a task, which its log has and its clients get: it
// tells the state of the pool of threads that had no room.
var elasticRejected = &attach.Kind{
	Name:      "Elasticsearch rejections",
	Hints:     []string{"rejected execution of "},
	Marks:     []string{"rejected execution of "},
	Single:    true,
	Scattered: true,
	Claim:     func(lines []paste.Line) int { return run(lines, rejectedPool.MatchString) },
	Read:      readRejected,
}

// rejectedPool has the pool's name, its queue's size, its threads, those at work, and the queue.
var rejectedPool = pattern.New(`\[(?:name = )?([\w./\-]+), queue capacity = (\d+),[^\[\]]*(\S+@[0-9a-f]+)\[Running, pool size = (\d+), active threads = (\d+), queued tasks = (\d+)`)

func readRejected(p *attach.Part) attach.Reading {
	r := &result{}
	n, full := 0, ""
	pools := map[string]string{}
	for _, l := range p.Lines {
		for _, m := range rejectedPool.FindAllStringSubmatch(l.Text, 1000) {
			n++
			room, _ := number(m[2])
			threads, _ := number(m[4])
			active, _ := number(m[5])
			queued, _ := number(m[6])
			line := fmt.Sprintf("pool %s: %.0f of %.0f threads at work, %.0f of %.0f places in its queue taken", short(m[1]), active, threads, queued, room)
			if len(pools) < mostOwners {
				pools[m[3]] = line
			}
			if active >= threads && queued >= room && full == "" {
				full = line
			}
		}
	}
	r.Title = "Elasticsearch's rejections, " + attach.Plural(n, "task")
	for _, id := range attach.Largest(pools)[:min(2, len(pools))] {
		r.figure(pools[id])
	}
	if len(pools) > 2 {
		r.figure(fmt.Sprintf("%d pools in all", len(pools)))
	}
	r.Means = "A pool of Elasticsearch's threads refused tasks."
	r.Not = "Why the tasks at work take long: load, the disk and collections look the same here. Completed tasks are no backlog."
	if full != "" {
		r.Means = "All threads of a pool of Elasticsearch's are at work and its queue is full: tasks wait in it, and further ones are refused."
		r.found("pool-exhaustion", finding.Possible, full, 0)
	}
	r.next("curl -s http://127.0.0.1:9200/_nodes/hot_threads", "what the pool's threads do")
	return r.done(attach.CannotTell)
}
