package kernelfile

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// killers is what programs log that end processes before the kernel has to: earlyoom, nohang and
// systemd-oomd, and oomctl's list of what systemd-oomd watches.
var killers = &attach.Kind{
	Name: "userspace OOM killer", Scattered: true, Yields: []string{"free", "container usage"},
	Marks: []string{"mem avail:", "systemd-oomd", "earlyoom", "nohang", "MemAvail: ", "PSI avg",
		"due to memory", "Memory Pressure Limit", "Memory pressure for", "Swap Used Limit", "low memory! at"},
	Claim: func(lines []paste.Line) int {
		if !killerStart(lines[0]) {
			return 0
		}
		n := 1
		for n < len(lines) && lines[n].Command == "" && strings.TrimSpace(lines[n].Text) != "" &&
			(killerStart(lines[n]) || killerGoesOn(lines[n].Text)) {
			n++
		}
		return n
	},
	Read: readKillers,
}

var (
	earlyAvail = pattern.New(`mem avail(?:able)?: *(\d+) of +(\d+) ?MiB(?: \( *([\d.]+) ?%\))?,? *swap free: *(\d+) of +(\d+) ?MiB(?: \( *([\d.]+) ?%\))?`)
	earlyKill  = pattern.New(`(?:sending (SIG\w+) to process (\d+)(?: uid \d+)? "([^"]*)".*?(?:badness|oom_score):? (\d+)|Killing process '?([^']*?)'? with signal (\d+), pid: (\d+))(?:.*?VmRSS:? (\d+) ?MiB)?`)
	earlyRule  = pattern.New(`(?:sending )?(SIGTERM|SIGKILL) when mem(?: avail)? *<=? *([\d.]+) ?%(?: *(and|or) swap(?: free)? *<=? *([\d.]+) ?%)?`)
	// Its first versions.
	earlyOut   = pattern.New(`^Out of memory! avail: (\d+) MiB < min: (\d+) MiB`)
	earlyFirst = pattern.New(`^Killing process (\d+) \((.{1,64})\)$`)
	earlyLow   = pattern.New(`^low memory! at or below (SIGTERM|SIGKILL) limits: mem +([\d.]+) ?%, swap +([\d.]+) ?%`)
	earlyOther = pattern.New(`(?i)^(?:earlyoom[: ]|earlyoom v|.*\bearlyoom(?:\[\d+\])?: |(?:user )?mem total: +\d+ ?MiB|(?:swap )?total: .*MiB, min|low memory! at or below|escalating to SIGKILL|process \d*\s*(?:did not exit|exited) |kill failed|Could not .* process|notify_ext|mem avail: *$)`)

	nohangLine  = pattern.New(`PSI avg:? |PSI avg \(|MemAvail: *\d+ M|_psi_exceeded|psi_\w+_timer|psi_threshold|min_delay_after_sigterm|Thresholds? is not exceeded|Process with highest badness|Found \d+ (?:tasks|processes) with|corrective action|(?:hard|soft|warning)_threshold_\w+|SwapFree \[|MemAvailable \[`)
	nohangState = pattern.New(`(?:PSI avg: *([\d.]+) \| )?MemAvail: *(\d+) M, *([\d.]+) % \| SwapFree: *(\d+) M, *([\d.]+) %`)

	oomdLine  = pattern.New(`(?:Killed|Marked) /\S+\.(?:slice|scope|service)|Killed \S+ due to (?:memory|swap)|Considered \d+ cgroups for killing|[Mm]emory pressure for \S+ (?:being|is) |systemd-oomd killed \d+ process|Swap used \(\d+\)|memory used \(\d+\) / total`)
	oomctlTop = pattern.New(`^(?:Dry Run: (?:yes|no)|Swap Used Limit: [\d.]+%|Default Memory Pressure (?:Limit|Duration): .*|System Context:|Swap Monitored CGroups:|Memory Pressure Monitored CGroups:)$`)
	oomdField = pattern.New(`^(?:Path: /|Memory Pressure Limit: [\d.]+%|Memory Pressure Duration: |Pressure: Avg10: [\d.]+|Current Memory Usage: |Memory (?:Min|Low): |(?:Last )?Pgscan: \d+|Swap Usage: |Memory: Used: |Swap: Used: )`)
)

// killerStart reports whether a line can be nothing else.
func killerStart(l paste.Line) bool {
	text := strings.TrimSpace(l.Text)
	if len(text) > 600 || len(text) < 8 {
		return false
	}
	if strings.Contains(l.Raw, "]: ") {
		if _, own := killerText(l.Raw); own {
			return true
		}
	}
	text, own := killerText(text)
	if own || killerStarted.MatchString(text) {
		return true
	}
	return strings.HasPrefix(text, "low memory!") && earlyLow.MatchString(text) ||
		strings.Contains(text, "mem avail") && earlyAvail.MatchString(text) ||
		(strings.Contains(text, "badness") || strings.Contains(text, "oom_score ")) && earlyKill.MatchString(text) ||
		strings.Contains(text, "signal") && earlyKill.MatchString(text) ||
		strings.Contains(text, " when mem") && earlyRule.MatchString(text) ||
		strings.Contains(text, "M, ") && nohangState.MatchString(text) ||
		strings.Contains(text, "PSI avg ") && nohangLine.MatchString(text) ||
		(strings.Contains(text, "memory") || strings.Contains(text, "cgroups for") ||
			strings.Contains(text, "oomd killed")) && oomdLine.MatchString(text) ||
		strings.Contains(text, "Default Memory Pressure") && oomctlTop.MatchString(text) ||
		strings.HasPrefix(text, "Swap Used Limit: ") || strings.HasPrefix(text, "Dry Run: ")
}

// killerStarted is what systemd says of their start.
var killerStarted = pattern.New(`\bStart(?:ed|ing) (?:Early OOM Daemon|Userspace Out-Of-Memory|nohang|Sophisticated low memory handler)`)

// killerText takes the logger's prefix off where it names one of them.
func killerText(text string) (rest string, own bool) {
	for _, name := range []string{"systemd-oomd[", "earlyoom[", "nohang["} {
		if i := strings.Index(text, name); i >= 0 && i < 100 {
			if pid, rest, ok := strings.Cut(text[i+len(name):], "]: "); ok && isDigits(pid) {
				return strings.TrimSpace(rest), true
			}
		}
	}
	return text, false
}

// killerLine reports whether one of them wrote a line, or systemd one of what systemd-oomd killed,
// whatever stamp stands in front.
func killerLine(l paste.Line) bool {
	if !strings.Contains(l.Text, "]: ") {
		return false
	}
	_, own := killerText(l.Text)
	return own || strings.Contains(l.Text, "systemd-oomd killed ")
}

// killerGoesOn reports whether a line is theirs among their own.
func killerGoesOn(text string) bool {
	text = strings.TrimSpace(text)
	return oomdField.MatchString(text) || oomctlTop.MatchString(text) ||
		earlyOther.MatchString(text) || nohangLine.MatchString(text) || oomdUnit.MatchString(text)
}

// oomdUnit is what systemd says of a unit that was killed, and what a list of processes in it has.
var oomdUnit = pattern.New(`: (?:Consumed .* CPU time|Failed with result 'oom-kill'|A process of this unit has been killed by the OOM killer|Main process exited, code=killed)`)

// killerFigures is what any of them says.
type killerFigures struct {
	out   attach.Reading
	tools []string
}

func (k *killerFigures) tool(name string) {
	for _, t := range k.tools {
		if t == name {
			return
		}
	}
	k.tools = append(k.tools, name)
}

func readKillers(p *attach.Part) attach.Reading {
	k := &killerFigures{out: attach.Reading{State: attach.Healthy, Time: p.Lines[0].Time}}
	early, hang, oomd := &earlyLog{}, &nohangLog{}, &oomdLog{}
	for _, l := range p.Lines {
		text, _ := killerText(strings.TrimSpace(l.Text))
		switch {
		case hang.read(text):
			k.tool("nohang")
		case early.read(text):
			k.tool("earlyoom")
		case oomd.read(text):
			k.tool("systemd-oomd")
		}
	}
	if len(k.tools) == 0 {
		k.tool("a program that kills before the kernel has to")
	}
	k.out.Title = "log of " + strings.Join(k.tools, " and ")
	early.say(&k.out)
	hang.say(&k.out)
	oomd.say(&k.out)
	k.out.Means = strings.TrimSpace(k.out.Means)
	if k.out.Means == "" {
		k.out.State = attach.CannotTell
		k.out.Means = "No figure of memory is in it, and no line that says what was killed."
	}
	return k.out
}

// shortOfMemory adds the cause that lack of memory fits: threads free memory before they get any.
func shortOfMemory(out *attach.Reading, proof string) {
	out.Signs = append(out.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Candidate, Proof: []string{proof}})
	out.Next = append(out.Next,
		attach.Next{Command: "cat /proc/pressure/memory; grep -E 'allocstall|pgmajfault' /proc/vmstat; sleep 10; grep -E 'allocstall|pgmajfault' /proc/vmstat", Why: "whether threads wait for memory now"})
}
