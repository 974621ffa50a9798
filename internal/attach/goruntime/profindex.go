package goruntime

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// pprofIndex is the page /debug/pprof/ of a Go program: which profiles there are, and how many
// records each has.
var pprofIndex = &attach.Kind{
	Name: "index of /debug/pprof/",
	Hints: []string{"debug/pprof", "rofiles", "allocs", "block", "cmdline", "goroutine", "Count",
		"Set debug=1"},
	Claim: func(lines []paste.Line) int {
		if indexLine(lines[0].Text) == indexNone {
			return 0
		}
		known := map[string]bool{}
		n := attach.ClaimWhile(lines, func(_ int, s string) bool {
			if name, _ := indexRow(s); runtimePages[name] {
				known[name] = true
			}
			return indexLine(s) != indexNone
		})
		return attach.ClaimIf(known["goroutine"] && len(known) >= 3, n)
	},
	Reports: true,
	Read:    readIndex,
}

// runtimePages are the pages that net/http/pprof has.
var runtimePages = map[string]bool{"allocs": true, "block": true, "cmdline": true, "goroutine": true, "heap": true,
	"mutex": true, "profile": true, "symbol": true, "threadcreate": true, "trace": true}

type indexKind int

const (
	indexNone  indexKind = iota
	indexOwn             // a heading, a link, a description
	indexCount           // how many records a profile has
)

var (
	tags = pattern.New(`<[^<>]*>`)
	// "[heap](http://shop:6060/debug/pprof/heap?debug=1)"
	linked = pattern.New(`\[([\w .-]+)\]\([^()]*\)`)
	// "62  goroutine"
	indexed = pattern.New(`^\|? ?(\d+)\s*\|?\s+([A-Za-z][\w./-]*) ?\|?$`)
	// "mutex: Stack traces of holders of contended mutexes"
	described = pattern.New(`^[-*] ?[a-z]+: ?\S|^(?:allocs|block|cmdline|goroutine|heap|mutex|profile|symbol|threadcreate|trace): ?`)
)

// indexRow reads a row, with the marks of a page or without them.
func indexRow(s string) (name string, n int) {
	s = strings.Join(strings.Fields(linked.ReplaceAllString(tags.ReplaceAllString(s, " "), "$1")), " ")
	if m := indexed.FindStringSubmatch(s); m != nil {
		n, _ = whole(m[1])
		return m[2], n
	}
	return "", 0
}

func indexLine(s string) indexKind {
	if len(s) > 1000 {
		return indexNone
	}
	if name, _ := indexRow(s); name != "" {
		return indexCount
	}
	bare := strings.Trim(linked.ReplaceAllString(tags.ReplaceAllString(s, " "), "$1"), " \t|-")
	bare = strings.Join(strings.Fields(strings.ReplaceAll(bare, "|", " ")), " ")
	switch {
	case bare == "" && s != "", strings.HasSuffix(bare, "/debug/pprof/"), bare == "profiles:",
		bare == "Count Profile", bare == "full goroutine stack dump",
		strings.HasPrefix(bare, "Types of profiles available"), strings.HasPrefix(bare, "Profile Descriptions"),
		strings.HasPrefix(bare, "Set debug=1 as a query parameter"), described.MatchString(bare):
		return indexOwn
	}
	return indexNone
}

func readIndex(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "index of /debug/pprof/", State: attach.CannotTell, Glance: true,
		Means: "it says how many goroutines there are in one moment, and how many places each profile has; what they wait for is not in it",
		Not:   "how many of them wait, nor whether their number grows"}
	counts := map[string]int{}
	for _, line := range p.Lines {
		if name, n := indexRow(line.Text); name != "" {
			counts[name] = n
		}
	}
	line := count(counts["goroutine"], "goroutine", "goroutines")
	if n, ok := counts["threadcreate"]; ok {
		line += fmt.Sprintf("; %s made since the start", count(n, "thread was", "threads were"))
	}
	r.Figures = []string{line}
	r.Facts = []attach.Fact{{Name: FactGoroutines, Value: float64(counts["goroutine"])}}
	mutex, ok1 := counts["mutex"]
	block, ok2 := counts["block"]
	if ok1 && ok2 {
		if mutex+block == 0 {
			r.Figures = append(r.Figures, "the profiles of mutexes and of blocking are empty: nobody waited, or the program has not switched them on")
		} else {
			r.Figures = append(r.Figures, fmt.Sprintf("%s waited at in the profile of mutexes, %d in that of blocking",
				count(mutex, "place", "places"), block))
		}
	}
	r.Next = []attach.Next{{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=1'",
		Why: "all stacks, each with how many have it"}}
	return r
}
