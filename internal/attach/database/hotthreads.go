package database

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// hotThreads reads Elasticsearch's and OpenSearch's hot threads: samples over half a second.
var hotThreads = &attach.Kind{
	Name:  "Elasticsearch hot threads",
	Hints: []string{"::: {", "::: [", "Hot threads at", "usage by thread"},
	Claim: func(lines []paste.Line) int {
		n, own := 0, 0
		for i, l := range lines {
			t := hotText(lines, i)
			if hotHead.MatchString(t) {
				own++
			}
			switch {
			case i > 0 && l.Command != "":
				return attach.ClaimIf(own > 0, n)
			case hotUse.MatchString(t):
				own++
				n = i + 1
			case i > 0 && hotWrapped.MatchString(strings.TrimSpace(lines[i-1].Text)), i == 1 &&
				strings.HasPrefix(t, "][inet["):
				n = i + 1
			case hotNode(t), strings.HasPrefix(t, "Hot threads at"):
				n = i + 1
			case own > 0 && (hotShare.MatchString(t) || hotFrame.MatchString(t) ||
				strings.HasPrefix(l.Text, "       ")):
				n = i + 1
			case t == "" || i == 0:
				if i == 0 {
					return 0
				}
			default:
				return attach.ClaimIf(own > 0, n)
			}
		}
		return attach.ClaimIf(own > 0, n)
	},
	Read: readHotThreads,
}

var (
	hotHead  = pattern.New(`^Hot threads at \d{4}-\d\d-\d\dT[\d:.]+Z?, interval=\S+, busiestThreads=(\d+)`)
	hotUse   = pattern.New(`^([\d.,]+)% (?:\[cpu=([\d.]+)%, (?:other=[\d.]+%, )?(other|idle)=([\d.]+)%\] )?\(([\d.,]+\w+) out of (\d+ms|[\d.]+s)\) (cpu|block|wait|mem)(?: usage)? ?(?:usage )?by thread '(.*)'$`)
	hotFrame = pattern.New(`^(?:[\w.@-]+/)*[\w.$@<>/-]+\.[\w$<>]+\((?:[\w$.-]+(?::\d+)?|Native Method|Unknown Source)\)$`)
	hotShare = pattern.New(`^(\d+)/(\d+) snapshots sharing following (\d+) elements|^unique snapshot$`)
)

// hotWrapped is the heading of a thread that a mail's width broke before the thread's name.
var hotWrapped = pattern.New(`^[\d.,]+% .*\([\d.,]+\w+ out of \S+\) (?:cpu|block|wait|mem).* by thread$`)

// hotText is a line, with the name that was broken off a heading.
func hotText(lines []paste.Line, i int) string {
	t := strings.TrimSpace(lines[i].Text)
	if i+1 < len(lines) && hotWrapped.MatchString(t) {
		t += " " + strings.TrimSpace(lines[i+1].Text)
	}
	return t
}

// hotNode reports whether a line names a node; old versions use brackets.
func hotNode(t string) bool { return strings.HasPrefix(t, "::: {") || strings.HasPrefix(t, "::: [") }

func readHotThreads(p *attach.Part) attach.Reading {
	r := &result{}
	r.Glance = true
	n, busy, cpu, nodes, total := 0, 0, 0, 0, 0.0
	for i := range p.Lines {
		t := hotText(p.Lines, i)
		if hotNode(t) {
			nodes++
		}
		m := hotUse.FindStringSubmatch(t)
		if m == nil {
			continue
		}
		n++
		line := fmt.Sprintf("%s %% %s: %s", m[1], m[7], m[8])
		if m[7] == "cpu" && m[2] == "" {
			line = fmt.Sprintf("%s %% of a CPU over %s: %s", m[1], m[6], m[8])
		}
		if m[3] == "other" {
			line = fmt.Sprintf("%s %% of a CPU over %s: %s", m[2], m[6], m[8])
		}
		if m[3] == "idle" {
			line = fmt.Sprintf("%s %% of a CPU, idle %s %% of the time: %s", m[2], m[4], m[8])
		}
		v, _ := number(strings.Replace(cmp.Or(m[2], m[1]), ",", ".", 1))
		if v >= 5 {
			busy++
		}
		if m[7] == "cpu" {
			cpu, total = cpu+1, total+v
		}
		if len(r.Figures) < 3 {
			r.figure(line)
		}
	}
	r.Title = "Elasticsearch hot threads, " + attach.Plural(n, "thread")
	if n == 0 {
		r.figure("no thread is listed below the heading of its node")
		r.Means = "No thread of these nodes was busy in the sample, as far as the text goes."
		r.Not = "Threads that wait: idle ones are left out. A node whose lines were cut off says nothing."
		return r.done(attach.CannotTell)
	}
	if n > 0 && busy == 0 {
		r.Means = "None of these threads is busy: they wait for work."
		r.Not = "What other threads wait for: only those listed were sampled."
		return r.done(attach.Healthy)
	}
	if cpu < n {
		r.Means = "It names the threads that were blocked or waited longest in a sample; an idle thread waits too."
		r.Not = "That requests waited: no queue is in it."
		return r.done(attach.CannotTell)
	}
	if n > 1 && nodes < 2 {
		r.Figures = append([]string{fmt.Sprintf("the %d threads listed used %.2f CPUs together", n,
			total/100)}, r.Figures...)
	}
	r.Means = "It names the threads that used the CPU most in a sample; whether requests waited, it does not say."
	r.Not = "Busy threads are no cause: no queue and no wait is in it. The stacks are of other moments than the shares, and do not divide them."
	r.next("curl -s localhost:9200/_cat/thread_pool?v", "has queued and rejected requests of each pool")
	return r.done(attach.CannotTell)
}
