package systool

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// setting knows what says on how many CPUs and with which limits something may run: context for
// the other parts.
var setting = &attach.Kind{
	Name:     "CPUs and limits",
	Hints:    []string{"affinity", "scheduling p", "parameters: ", " size", "(-", "nproc", "cpuinfo", "NPROCESSORS"},
	Context:  true,
	Claim:    claimSetting,
	Read:     readSetting,
	Prompted: true,
}

var (
	tasksetLine = pattern.New(`^pid (\d+)'s (?:current|new) affinity (?:list|mask): ([0-9a-f,-]+)$`)
	chrtLine    = pattern.New(`^pid (\d+)'s (?:current|new) (?:scheduling (policy|priority)|runtime/deadline/period parameters): (.+)$`)
	ulimitLine  = pattern.New(`^(core file size|data seg size|scheduling priority|file size|pending signals|max locked memory|max memory size|open files|pipe size|POSIX message queues|real-time priority|real-time non-blocking time|stack size|cpu time|max user processes|virtual memory|file locks)\s+\(.*\)\s+(\S+)$`)
)

func settingLine(text string) bool {
	return tasksetLine.MatchString(text) || chrtLine.MatchString(text) || ulimitLine.MatchString(text)
}

// nprocCommand: only the prompt says that a bare number is the number of CPUs.
func nprocCommand(command string) bool {
	f := strings.Fields(command)
	return len(f) > 0 && (f[0] == "nproc" || strings.HasPrefix(command, "getconf _NPROCESSORS") ||
		strings.HasPrefix(command, "grep -c") && strings.Contains(command, "cpuinfo") || strings.Contains(command, "cpuinfo") && strings.HasSuffix(command, "wc -l"))
}

func claimSetting(lines []paste.Line) int {
	if lines[0].Command != "" {
		if !nprocCommand(lines[0].Command) || len(lines) < 2 {
			return 0
		}
		if _, ok := whole(strings.TrimSpace(lines[1].Text)); !ok || lines[1].Command != "" {
			return 0
		}
		return 2
	}
	return attach.ClaimWhile(lines, func(_ int, text string) bool { return len(text) < 1<<14 && settingLine(strings.TrimSpace(text)) })
}

func readSetting(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "CPUs and limits"
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		switch {
		case nprocCommand(p.Command) && len(p.Lines) == 1:
			if n, ok := whole(text); ok {
				v.figure("%s", attach.Plural(n, "CPU"))
				v.fact(CPUs, float64(n))
			}
		case tasksetLine.MatchString(text):
			m := tasksetLine.FindStringSubmatch(text)
			v.Who.PID, _ = whole(m[1])
			v.figure("process %s may use the CPUs %s", m[1], m[2])
		case chrtLine.MatchString(text):
			m := chrtLine.FindStringSubmatch(text)
			v.Who.PID, _ = whole(m[1])
			v.figure("scheduling %s of process %s: %s", m[2], m[1], m[3])
		case ulimitLine.MatchString(text):
			if m := ulimitLine.FindStringSubmatch(text); m[1] == "open files" || m[1] == "max user processes" {
				v.figure("%s: %s", m[1], m[2])
			}
		}
	}
	v.means("it is context for the other parts: it says nothing of slowness by itself")
	return v.done()
}
