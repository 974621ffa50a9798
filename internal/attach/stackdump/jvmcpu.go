package stackdump

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// jvmUse is what the JVM says of a thread's CPU time, from JDK 11 on: cpu=12.3ms elapsed=45.67s.
var jvmUse = pattern.New(`\bcpu=(\d{1,15}(?:\.\d{1,6})?)ms elapsed=(\d{1,12}(?:\.\d{1,6})?)s\b`)

// used takes a thread's CPU time and age from its header.
func (t *thread) used(header string) {
	if m := jvmUse.FindStringSubmatch(header); m != nil {
		ms, _ := strconv.ParseFloat(m[1], 64)
		t.age, _ = strconv.ParseFloat(m[2], 64)
		t.cpu = ms / 1000
	}
}

const (
	youngThread = 0.5 // seconds: younger ones have no average worth the word
	hardAtWork  = 0.5 // of a CPU since the thread's start
	longUp      = 60  // seconds that a JVM is up before its average says anything
)

// cpuUse says what threads used of CPUs since their start: first those that computed most of the
// time, then all that are shown.
func (d *dump) cpuUse(r *attach.Reading) {
	var hard []*thread
	all, collectors, vm, up := 0.0, 0.0, 0.0, 0.0
	n := 0
	for _, t := range d.threads {
		if t.age <= 0 {
			continue
		}
		n++
		all += t.cpu
		up = max(up, t.age)
		if t.name == "VM Thread" {
			vm += t.cpu
		}
		if collector(t.name) {
			collectors += t.cpu
		}
		if t.age >= youngThread && t.cpu >= hardAtWork*t.age && len(t.frames) > 0 {
			hard = append(hard, t)
		}
	}
	if len(hard) > 0 {
		d.hard(r, hard)
	}
	if n < 2 || up < longUp && collectors < 0.1*up {
		return
	}
	r.Figures = append(r.Figures,
		fmt.Sprintf("the %d threads shown used %s of CPU since they started, the oldest %s ago: %s on average", n,
			span(all), span(up), ofCPU(all/up)))
	if vm > 0.01*up {
		r.Figures = append(r.Figures, fmt.Sprintf("of it the VM Thread %s, %s on average", span(vm), ofCPU(vm/up)))
	}
	if collectors/up >= 0.01 {
		r.Figures = append(r.Figures, fmt.Sprintf("of it the collector's threads %s, %s on average", span(collectors),
			ofCPU(collectors/up)))
	}
}

// few names the threads that have frames where there are one to three of them: a text that was
// shortened looks so.
func (d *dump) few(r *attach.Reading) {
	var words []string
	for _, t := range d.threads {
		if len(t.frames) > 0 {
			t.from = 0
			line := t.who() + " in " + t.first(3)
			if t.doing == idle || t.doing == signal {
				line = t.who() + ": " + t.does()
				if t.site != "" && t.socket == "" && !strings.HasSuffix(line, t.site) {
					line += ", called from " + t.site
				}
			}
			words = append(words, line)
		}
	}
	if len(words) == 0 || len(words) > 3 || len(words) == len(d.threads) || len(r.Signs) > 0 {
		return
	}
	r.Figures = append([]string{fmt.Sprintf("%s with frames: %s", threads(len(words)),
		strings.Join(words, "; "))}, r.Figures...)
	r.Not = "What other threads of the program do: the text shows no more with frames, and may be shortened."
	if r.State == attach.Healthy {
		r.State = attach.CannotTell
	}
}

// hard reports threads that computed most of the time since they started.
func (d *dump) hard(r *attach.Reading, list []*thread) {
	slices.SortStableFunc(list, func(a, b *thread) int { return cmp.Compare(b.cpu/b.age, a.cpu/a.age) })
	first, last := list[0], list[len(list)-1]
	first.from = 0
	share := fmt.Sprintf("%.1f %%", 100*min(1, first.cpu/first.age))
	if low := fmt.Sprintf("%.1f %%", 100*last.cpu/last.age); low != share {
		share = low + " to " + share
	}
	since := "since its start"
	if len(list) > 1 {
		since = "each since their start"
	}
	line := fmt.Sprintf("%s used %s of a CPU %s: %s, which started %s ago, now in %s",
		threads(len(list)), share, since, first.who(), span(first.age), first.first(3))
	r.Figures = append([]string{line}, r.Figures...)
	if len(r.Signs) > 0 {
		return
	}
	r.State = attach.CannotTell
	r.Means = fmt.Sprintf("%s: no threads queue behind one lock.", computes(len(list)))
	r.Not = "The CPU time is an average since a thread's start: what it did in the last seconds, two dumps tell."
	r.Next = append(r.Next, attach.Next{Command: "jcmd PID Thread.print; sleep 10; jcmd PID Thread.print",
		Why: "the difference of cpu= is what each thread used in these seconds"})
}

func computes(n int) string {
	if n == 1 {
		return "One thread computed most of the time since its start"
	}
	return fmt.Sprintf("%d threads computed most of the time since their start", n)
}

// collector reports whether a thread is one of the JVM's collectors, by the names that HotSpot
// gives them.
func collector(name string) bool {
	for _, p := range []string{"GC Thread#", "ParGC Thread#", "GC task thread#", "Gang worker#",
		"G1 Conc#", "G1 Refine#",
		"G1 Main Marker", "G1 Concurrent", "G1 Parallel Marking",
		"Concurrent Mark-Sweep", "ZWorker", "ZDriver", "Shenandoah GC", "XWorker"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

func ofCPU(share float64) string {
	if share >= 1.5 {
		return fmt.Sprintf("%.1f CPUs", share)
	}
	return fmt.Sprintf("%.3g %% of one CPU", 100*share)
}
