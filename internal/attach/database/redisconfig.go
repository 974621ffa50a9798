package database

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// redisConfig reads the answer to CONFIG GET: names and values by turns.
var redisConfig = &attach.Kind{
	Name:     "Redis CONFIG GET",
	Prompted: true,
	Context:  true,
	Hints:    []string{"CONFIG GET", "config get", "Config Get"},
	Claim: func(lines []paste.Line) int {
		if !redisAsks.MatchString(lines[0].Command) {
			return 0
		}
		n := 1
		for n < len(lines) && lines[n].Command == "" && redisItem.MatchString(strings.TrimSpace(lines[n].Text)) {
			n++
		}
		return attach.ClaimIf(n > 2, n)
	},
	Read: readRedisConfig,
}

var (
	redisAsks = pattern.New(`(?i)^(?:redis-cli .*)?config get \S`)
	redisItem = pattern.New(`^(?:\d+\) )?"?([^"]*)"?$`)
)

func readRedisConfig(p *attach.Part) attach.Reading {
	r := &result{}
	r.Title = "Redis' settings, as CONFIG GET tells them"
	for i := 0; i+1 < len(p.Lines); i += 2 {
		name, value := redisItem.FindStringSubmatch(strings.TrimSpace(p.Lines[i].Text)),
			redisItem.FindStringSubmatch(strings.TrimSpace(p.Lines[i+1].Text))
		if name != nil && value != nil && len(r.Figures) < 3 {
			r.figure(name[1] + " = " + short(value[1]))
		}
	}
	r.Means = "Settings: they cost nobody time by themselves."
	return r.done(attach.Context)
}
