package database

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// hotThreads reads Elasticsearch's and OpenSearch's hot threads: samples over half a second.
var hotThreads = &attach.Kind{
	Name:  "Elasticsearch hot threads",
	Hints: []string{"::: {", "Hot threads at", "usage by thread"},
	Claim: func(lines []paste.Line) int {
		n, own := 0, 0
		for i, l := range lines {
			t := strings.TrimSpace(l.Text)
			switch {
			case i > 0 && l.Command != "":
				return infoDone(n, own)
			case hotUse.MatchString(t):
				own++
				n = i + 1
			case strings.HasPrefix(t, "::: {"), strings.HasPrefix(t, "Hot threads at"):
				n = i + 1
			case own > 0 && (hotShare.MatchString(t) || strings.HasPrefix(l.Text, "       ")):
				n = i + 1
			case t == "" || i == 0:
				if i == 0 {
					return 0
				}
			default:
				return infoDone(n, own)
			}
		}
		return infoDone(n, own)
	},
	Read: readHotThreads,
}

var (
	hotUse   = regexp.MustCompile(`^([\d.,]+)% (?:\[cpu=([\d.]+)%, other=([\d.]+)%\] )?\(([\d.,]+\w+) out of (\d+ms|[\d.]+s)\) (cpu|block|wait|mem)(?: usage)? ?(?:usage )?by thread '(.*)'$`)
	hotShare = regexp.MustCompile(`^(\d+)/(\d+) snapshots sharing following (\d+) elements|^unique snapshot$`)
)

func readHotThreads(p *attach.Part) attach.Reading {
	r := &result{}
	r.Glance = true
	n := 0
	for _, l := range p.Lines {
		m := hotUse.FindStringSubmatch(strings.TrimSpace(l.Text))
		if m == nil {
			continue
		}
		n++
		if len(r.Figures) < 3 {
			r.figure(fmt.Sprintf("%s %% %s: %s", m[1], m[6], m[7]))
		}
	}
	r.Title = "Elasticsearch hot threads, " + attach.Plural(n, "thread")
	r.Means = "It names the threads that used the CPU most in half a second; whether requests waited, it does not say."
	r.Not = "Busy threads are no cause: no queue and no wait is in it."
	r.next("curl -s localhost:9200/_cat/thread_pool?v", "has queued and rejected requests of each pool")
	return r.done(attach.CannotTell)
}
