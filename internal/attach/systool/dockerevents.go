package systool

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// dockerEvents is docker events: what happened to containers, and when.
var dockerEvents = &attach.Kind{
	Name:  "docker events",
	Hints: []string{" container ", "(from ", `"timeNano"`, `{"status":"`},
	Claim: func(lines []paste.Line) int {
		return attach.ClaimWhile(lines, func(at int, _ string) bool {
			_, ok := dockerEventOf(lines[at])
			return ok
		})
	},
	Read: readDockerEvents,
}

var (
	dockerNew = pattern.New(`^(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[-+]\d\d:?\d\d)) (container|network|volume|image|plugin|daemon) (\w+)(:[^(]*)? (\S+)(?: \((.*)\)?)?$`)
	dockerOld = pattern.New(`^(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[-+]\d\d:?\d\d)) (\S+): \(from ([^)]*)\) (\w+)$`)
	exitCode  = pattern.New(`\bexitCode=(\d+)`)
	nameOf    = pattern.New(`\bname=([^,)]+)`)
)

type dockerEvent struct {
	at         time.Time
	what       string
	id, name   string
	code, note string
}

// dockerEventOf reads a line; a logger's prefix may have been taken for its time.
func dockerEventOf(l paste.Line) (e dockerEvent, ok bool) {
	text := strings.TrimSpace(l.Text)
	if l.Raw != "" {
		text = strings.TrimSpace(l.Raw)
	}
	if len(text) > 4000 {
		return e, false
	}
	if strings.HasPrefix(text, "{") {
		return dockerEventJSON(text)
	}
	if m := dockerNew.FindStringSubmatch(text); m != nil {
		e.at, e.what, e.note, e.id = stamp(m[1]), m[3], strings.TrimPrefix(m[4], ": "), m[5]
		if c := exitCode.FindStringSubmatch(m[6]); c != nil {
			e.code = c[1]
		}
		if c := nameOf.FindStringSubmatch(m[6]); c != nil {
			e.name = c[1]
		}
		return e, true
	}
	if m := dockerOld.FindStringSubmatch(text); m != nil {
		return dockerEvent{at: stamp(m[1]), id: m[2], name: m[3], what: m[4]}, true
	}
	return e, false
}

// dockerCut is the start of an event as JSON, of which the rest may be cut off.
var dockerCut = pattern.New(`^\{"status":"(\w+)(?:: ?([^"]*))?","id":"([0-9a-f]{12,64})"?`)

// dockerEventJSON reads an event as the API and --format json write it.
func dockerEventJSON(text string) (e dockerEvent, ok bool) {
	var j struct {
		Status, ID, Type, Action string
		Time, TimeNano           int64
		Actor                    struct {
			ID         string
			Attributes map[string]string
		}
	}
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		m := dockerCut.FindStringSubmatch(text)
		if m == nil {
			return e, false
		}
		return dockerEvent{what: m[1], note: m[2], id: m[3], name: short(m[3])}, true
	}
	id := cmp.Or(j.ID, j.Actor.ID)
	what, note, _ := strings.Cut(cmp.Or(j.Status, j.Action), ":")
	if what == "" || id == "" || j.Time == 0 && j.TimeNano == 0 || j.Status == "" && j.Type == "" {
		return e, false
	}
	e = dockerEvent{at: time.Unix(j.Time, 0), what: what, note: strings.TrimSpace(note), id: id,
		code: j.Actor.Attributes["exitCode"]}
	if j.TimeNano > 0 {
		e.at = time.Unix(0, j.TimeNano)
	}
	e.name = cmp.Or(j.Actor.Attributes["name"], short(id))
	return e, true
}

// short is an id as docker shows it.
func short(id string) string { return id[:min(12, len(id))] }

func stamp(s string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s)
	return t
}

func readDockerEvents(p *attach.Part) attach.Reading {
	v := &verdict{}
	started := map[string]time.Time{}
	n, ooms, killed, ill := 0, 0, 0, ""
	died, oomOf, oomAfter := "", "", ""
	for _, l := range p.Lines {
		e, ok := dockerEventOf(l)
		if !ok {
			continue
		}
		n++
		called := cmp.Or(e.name, e.id)
		switch e.what {
		case "start":
			if len(started) < 4096 {
				started[e.id] = e.at
			}
		case "oom":
			ooms++
			oomOf, oomAfter = called, ""
			if after := afterStart(started[e.id], e.at); after != "" {
				oomAfter = "," + after
			}
		case "kill":
			killed++
		case "health_status":
			if strings.Contains(e.note, "unhealthy") {
				ill = called
			}
		case "die":
			died = called + " ended" + afterStart(started[e.id], e.at)
			if e.code != "" {
				died += ", exit code " + e.code + exitWords(e.code)
			}
		}
	}
	v.Title, v.unsure = "docker events, "+attach.Plural(n, "event"), true
	if ooms > 0 {
		v.figure("%s reached its memory limit (oom, %s)%s", oomOf, attach.Plural(ooms, "event"), oomAfter)
		v.risk("direct-reclaim",
			"a container reached its memory limit: its threads may have had to free memory themselves, or stand still where its OOM killer is off")
		v.means("a container reached its memory limit: a process in it is killed, or stands still where the OOM killer is switched off for it")
		v.next("docker inspect -f '{{.State.OOMKilled}} {{.HostConfig.Memory}} {{.HostConfig.OomKillDisable}}' CONTAINER", "its limit, and whether it is killed or frozen at it")
	}
	if died != "" {
		v.figure("%s", died)
	}
	if killed > 0 {
		v.figure("%s by the API (docker kill or stop)", attach.Plural(killed, "kill"))
	}
	if ill != "" {
		v.figure("the health check of %s failed", ill)
		v.means("a health check does not get its answer: a symptom and no cause")
	}
	if died != "" {
		v.means("a container ended: requests of that moment fail, and nothing here is a wait")
	}
	if len(v.Figures) == 0 {
		v.unsure = false
	}
	v.means("it says what happened to containers, and nothing of how fast they are")
	return v.done()
}

// afterStart says how long after its start something happened to a container; "": it is not known.
func afterStart(from, to time.Time) string {
	if from.IsZero() || !to.After(from) {
		return ""
	}
	return fmt.Sprintf(" %s after its start", to.Sub(from).Round(time.Millisecond))
}

// exitWords says which signal an exit code of a container stands for.
func exitWords(code string) string {
	switch code {
	case "137":
		return " (SIGKILL: by the kernel for lack of memory, by the runtime after its grace, or by a person)"
	case "143":
		return " (SIGTERM)"
	case "139":
		return " (SIGSEGV)"
	case "134":
		return " (SIGABRT)"
	}
	return ""
}
