package database

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// zooMntr reads what ZooKeeper answers to the command mntr: a name and a value each line.
var zooMntr = &attach.Kind{
	Name:  "ZooKeeper mntr",
	Hints: []string{"zk_"},
	Claim: func(lines []paste.Line) int {
		own := 0
		n := attach.ClaimWhile(lines, func(_ int, text string) bool {
			if len(text) > 300 || !zooRow.MatchString(text) {
				return false
			}
			if zooOwn.MatchString(text) {
				own++
			}
			return true
		})
		return attach.ClaimIf(own > 1, n)
	},
	Read: readZooMntr,
}

var (
	zooRow = pattern.New(`^(zk_\w*)(?:[ \t]+(\S.*))?$`)
	zooOwn = pattern.New(`^zk_(?:version|server_state|avg_latency|max_latency|min_latency|outstanding_requests|pending_syncs|num_alive_connections|znode_count)[ \t]`)
)

// Of ZooKeeper's answers: requests that wait at one moment, and a time in s, which are much.
const (
	zooQueue = 10
	zooSlow  = 0.1
)

func readZooMntr(p *attach.Part) attach.Reading {
	f := map[string]string{}
	for _, l := range p.Lines {
		if m := zooRow.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil {
			f[strings.TrimPrefix(m[1], "zk_")] = m[2]
		}
	}
	num := func(name string) (float64, bool) { return number(f[name]) }
	r := &result{}
	r.Glance = true
	r.Title = "ZooKeeper mntr"
	if f["server_state"] != "" {
		r.Title += ", " + f["server_state"]
	}
	average, said := num("avg_latency")
	most, mostSaid := num("max_latency")
	if said && mostSaid {
		r.figure(fmt.Sprintf("a request took %s on average and %s at most, since the start or the last reset", dur(average/1e3), dur(most/1e3)))
	}
	waiting, waits := num("outstanding_requests")
	if waits {
		r.figure(count(waiting) + " requests outstanding at this instant")
	}
	if v, ok := num("pending_syncs"); ok {
		r.figure(count(v) + " syncs of followers pending")
	}
	if up, ok := num("uptime"); ok {
		got, counted := num("packets_received")
		line := "up " + dur(up/1e3)
		if counted {
			line += fmt.Sprintf("; %s packets received", count(got))
		}
		r.figure(line)
	}
	r.Not = "The average and the maximum have no moment: an average hides, and a maximum may be old."
	switch {
	case waits && waiting >= zooQueue:
		r.Means = "Requests wait inside ZooKeeper at this instant; for what, it does not say."
		r.next("the server's log: fsync-ing the write ahead log ... took", "whether its disk is slow")
		return r.done(attach.CannotTell)
	case said && mostSaid && waits && most < zooSlow*1e3:
		r.Means = "No request took long, and hardly any waits at this instant."
		return r.done(attach.Healthy)
	case mostSaid && most >= zooSlow*1e3:
		r.Means = "Some request took long; when, and for what, it does not say."
		r.next("the server's log: fsync-ing the write ahead log ... took", "whether its disk is slow")
	default:
		r.Means = "The lines that say how long requests took, and how many wait, are not all here."
	}
	return r.done(attach.CannotTell)
}
