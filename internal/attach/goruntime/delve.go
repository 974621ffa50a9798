package goruntime

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// delve is what the debugger's command goroutines prints: one place for each goroutine.
var delve = &attach.Kind{
	Name:  "delve goroutines",
	Hints: []string{"Goroutine "},
	Claim: claimDelve,
	Read:  readDelve,
}

// With -t, each goroutine has its stack below it: a line of the function, and one of its place.
var (
	delveFrame = regexp.MustCompile(`^\s*\d{1,3}\s+0x[0-9a-f]{8,16} in (\S+)$`)
	delveAt    = regexp.MustCompile(`^\s+at \S.*:\d+$`)
)

func claimDelve(lines []paste.Line) int {
	listed := false
	n := while(lines, func(s string) bool {
		if _, ok := delveLine(s); ok {
			listed = true
			return true
		}
		return listed && (delveFrame.MatchString(s) || delveAt.MatchString(s))
	})
	if n > 0 && n < len(lines) && strings.HasSuffix(strings.TrimSpace(lines[n].Text), " goroutines]") {
		n++
	}
	return n
}

// delveLine parses "* Goroutine 1 - User: ./main.go:12 main.main (0x4a5d6f) [chan receive 5]", also
// with "(thread 7)".
func delveLine(s string) (st stack, ok bool) {
	s = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "* "))
	rest, ok := strings.CutPrefix(s, "Goroutine ")
	d := digits(rest)
	_, place, isDelve := strings.Cut(rest[d:], ": ")
	if !ok || d == 0 || !strings.HasPrefix(rest[d:], " - ") || !isDelve {
		return st, false
	}
	st.id, _ = whole(rest[:min(d, 9)])
	st.count = 1
	f := strings.Fields(place)
	if len(f) < 2 {
		return st, false
	}
	at, isPlace := parsePlace(f[0])
	if !isPlace && !strings.HasPrefix(f[0], "?:") {
		return st, false
	}
	st.frames = []frame{{fn: f[1], at: at}}
	switch { // a delve that is older than the program's Go gives wrong words for the state
	case strings.Contains(f[0], "/sync/mutex.go"):
		st.frames = []frame{{fn: "sync.(*Mutex).lockSlow"}, st.frames[0]}
	case strings.Contains(f[0], "/sync/rwmutex.go"):
		st.frames = []frame{{fn: "sync.(*RWMutex).Lock"}, st.frames[0]}
	}
	if open := strings.LastIndexByte(place, '['); open >= 0 && len(st.frames) == 1 {
		st.state = strings.TrimRight(strings.TrimSuffix(place[open+1:], "]"), " 0123456789")
	}
	if strings.Contains(place, "(thread ") && st.state == "" {
		st.state = "running"
	}
	return st, true
}

func readDelve(p *attach.Part) attach.Reading {
	d := &dump{}
	places := map[string]int{}
	traced := false
	for _, line := range p.Lines {
		if m := delveFrame.FindStringSubmatch(line.Text); m != nil && len(d.stacks) > 0 {
			last := d.stacks[len(d.stacks)-1]
			if !traced {
				last.frames, traced = nil, true
			}
			if len(last.frames) < 256 {
				last.frames = append(last.frames, frame{fn: m[1]})
			}
			continue
		}
		if st, ok := delveLine(line.Text); ok && len(d.stacks) < maxStacks {
			traced = false
			d.stacks = append(d.stacks, &st)
			places[st.frames[len(st.frames)-1].fn]++
		}
	}
	pic := lookAt(d)
	r := attach.Reading{Title: fmt.Sprintf("goroutines as delve lists them, %d", len(d.stacks)), State: attach.Healthy, Glance: true,
		Facts: []attach.Fact{{Name: FactGoroutines, Value: float64(len(d.stacks))}}}
	r.Figures = []string{pic.kindsText()}
	if keys := byMost(places); len(keys) > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%d in %s", places[keys[0]], keys[0]))
	}
	if traced {
		r.Means = "where each goroutine is at one moment, with who called it"
	} else {
		r.Means = "one place for each goroutine, without who called it: who waits for whom is not in it"
	}
	r.Not = "how long each has waited: a debugger stops the program at one moment"
	pic.readLocks(&r)
	return r
}
