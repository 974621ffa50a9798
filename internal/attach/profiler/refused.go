package profiler

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// refused are tools whose output says nothing of waiting, by name, with what would.
var refused = []*attach.Kind{
	{Name: "dd", Claim: linesLike(2, pattern.New(`^(\d+\+\d+ records (in|out)|\d+ bytes( \(.*\))* copied, .*)$`)),
		Hints:   []string{" records in", " records out"},
		Refused: "dd says how fast it copied once: whether a service waits for a disk is not in it. Record the service: whystall diagnose --pid PID"},
	{Name: "perf bench", Claim: linesLike(2,
		pattern.New(`^(# Running '?[\w/ ]+'? benchmark:|# Executed [\d,]+ .*|# \d+ .* per group|# \d+ groups =+ \d+ .* run|Total time: [\d.,]+ (\[sec\]|\[msec\]|usecs)|[\d.,]+ (usecs|nsecs)/op|[\d,]+ ops/sec)$`)),
		Hints:   []string{"# Running ", "# Executed ", "Total time: "},
		Refused: "perf bench measures calls of the kernel by a program of its own: it says nothing of a service. Record the service itself: whystall diagnose --pid PID"},
	{Name: "valgrind", Claim: linesLike(2, pattern.New(`^(==|--|\*\*)\d+(==|--|\*\*)`)),
		Hints:   []string{"==", "--", "**"},
		Refused: "valgrind runs a program tens of times slower on one CPU: its output finds errors, and nothing of it is true of the service's times. Record the service itself: whystall diagnose --pid PID"},
	{Name: "memleak", Claim: linesLike(2,
		pattern.New(`^(\[\d\d:\d\d:\d\d\] Top \d+ stacks with outstanding allocations:|Attaching to (pid \d+|kernel allocators), Ctrl|\d+ bytes in \d+ allocations from stack|addr = [0-9a-f]+ size = \d+|\S+\+0x[0-9a-f]+ \[.*\]|0x[0-9a-f]+ \S+.*\[.*\])`)),
		Hints: []string{"outstanding allocations", "Attaching to "}, Read: readMemleak},
	{Name: "sslsniff", Claim: claimSniffed, Hints: []string{"----- DATA -----", "TIME(s)",
		"READ/RECV", "WRITE/SEND", "HANDSHAKE"},
		Refused: "sslsniff prints what went through TLS connections as plain text: passwords and personal data may be in it, and nothing of waiting. Take it off the ticket, and record the service: whystall diagnose --pid PID"},
	{Name: "perf record", Context: true, Claim: linesLike(1, recorded), Hints: []string{"[ perf record: ", "Lowering default frequency rate",
		"kernel reference relocation symbol", "Kernel address maps (/proc", "events and lost ", "continuing without symbols",
		"maybe install a debug package", "perf_event_max_sample_rate", "with build id ", "with build-id "},
		Read: func(p *attach.Part) attach.Reading {
			r := attach.Reading{Title: "what perf says of its recording", State: attach.Context,
				Means: "It says how much was recorded, or what perf could not find: what is in it, perf report says."}
			if i := slices.IndexFunc(texts(p), lostEvents.MatchString); i >= 0 {
				r.Figures = []string{texts(p)[i]}
				r.Not = "That what perf report shows is all there was: the kernel wrote events faster than perf read them."
			}
			return r
		}},
	{Name: "systemd-analyze", Claim: claimBoot,
		Hints: []string{"Startup finished in", "graphical.target", "multi-user.target",
			".service", "The time when unit"},
		Refused: "systemd-analyze says how long the machine took to boot: it says nothing of a service that runs"},
	{Name: "perf sched replay", Claim: linesLike(3,
		pattern.New(`^(?:(?:run|sleep) measurement overhead: \d+ nsecs|the (?:run|sleep) test took \d+ nsecs|nr_(?:run|sleep|wakeup)_events: +\d+|(?:target-less|multi-target) wakeups: +\d+|run atoms optimized: \d+|task +\d+ \( *.+: *\d+\), nr_events: \d+|-{20,}|#\d+ *: \d+\.\d+, ravg: .*)$`)),
		Hints:   []string{"measurement overhead: ", "nr_run_events:", "nr_events: ", ", ravg: "},
		Refused: "perf sched replay runs a recorded load again by threads of its own: it says nothing of the service. The same recording says it: perf sched latency"},
}

var (
	recorded = pattern.New(`^(?:\[ perf record: (?:Woken up|Captured and wrote) .*\]$|(?:info|warning|WARNING): Kernel address maps \(/proc|WARNING: Kernel address maps|Couldn't record kernel reference relocation symbol|Symbol resolution may be skewed if relocation|Check /proc/kallsyms permission or run as root|check /proc/sys/kernel/kptr_restrict|Samples in kernel (?:functions|modules) (?:may not|won't) be resolved|file is not found in the buildid cache|Lowering default frequency rate|Please consider tweaking /proc/sys/kernel/perf_event_max_sample_rate|Processed \d+ events and lost \d+|Check IO/CPU overload!|Failed to open \S+, continuing without symbols|no symbols found in \S+, maybe install a debug package|(?:No kallsyms or vmlinux with build-id|\[kernel\.kallsyms\] with build id) \S+)`)
	// "Processed 91202 events and lost 11 chunks!"
	lostEvents = pattern.New(`^Processed \d+ events and lost \d+`)
)

// linesLike claims lines of a form, if there are enough of them.
func linesLike(least int, form *pattern.Regexp) func([]paste.Line) int {
	return func(lines []paste.Line) int {
		rows := 0
		n := claimed(lines, func(_ int, text string) bool {
			if !form.MatchString(text) {
				return false
			}
			rows++
			return true
		})
		if rows < least {
			return 0
		}
		return n
	}
}

var sniffed = pattern.New(`^(FUNC +TIME\(s\) +COMM +PID +LEN\b|(READ/RECV|WRITE/SEND|HANDSHAKE) +\d+\.\d{6,} )`)

// claimSniffed takes all that stands between the marks of data, whatever it is.
func claimSniffed(lines []paste.Line) int {
	if !sniffed.MatchString(strings.TrimSpace(lines[0].Text)) {
		return 0
	}
	end, data := 0, false
	for i, l := range lines {
		text := strings.TrimSpace(l.Text)
		switch {
		case strings.HasPrefix(text, "----- DATA -----"):
			data = true
		case strings.HasPrefix(text, "----- END DATA"):
			data, end = false, i+1
		case sniffed.MatchString(text):
			end = i + 1
		case !data && text != "":
			return end
		}
	}
	if data { // its end was cut off
		return len(lines)
	}
	return end
}

var blameRow = pattern.New(`^(?:\d+min )?(?:\d+\.\d+s|\d+ms) \S+\.(service|mount|device|socket|target|swap|timer|slice|scope|path)$`)

func claimBoot(lines []paste.Line) int {
	sure := 0
	n := claimed(lines, func(_ int, text string) bool {
		switch {
		case blameRow.MatchString(text):
			sure++
		case strings.HasPrefix(text, "Startup finished in ") && strings.Contains(text, "(kernel)"),
			strings.HasPrefix(text, "The time when unit became active"):
			sure += 2
		case strings.HasPrefix(text, "The time the unit took to start"),
			strings.Contains(text, ".target reached after"),
			strings.HasPrefix(text, "graphical.target @"), strings.HasPrefix(text, "multi-user.target @"),
			strings.Contains(text, " @") && strings.HasPrefix(text, "└─"),
			strings.Contains(text, ".target @"), strings.Contains(text, ".service @"):
		default:
			return false
		}
		return true
	})
	return attach.ClaimIf(sure >= 2, n)
}
