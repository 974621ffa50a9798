package kinds

import (
	"slices"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// named are the kinds that people attach most, of which samples must show both sides: one that says
// something of a cause, or leaves something open where others of the kind do not; and one that says
// nothing of any cause, or is of another kind and looks alike.
var named = []string{
	"gctrace", "gcpacertrace", "Go scavenger lines", "schedtrace", "goroutine dump",
	"goroutine profile as text", "heap profile as text", "contention profile as text",
	"threadcreate profile as text", "pprof -top", "stack of a profile as text", "runtime/metrics",
	"memstats", "go test -bench", "benchstat",

	"/proc/vmstat", "buddyinfo", "/proc/pagetypeinfo", "/proc/zoneinfo", "/proc/meminfo",
	"/proc/slabinfo", "interrupts", "PSI", "smaps", "numa_maps", "/proc/PID/status",
	"/proc/PID/stat", "/proc/PID/sched", "wchan list", "/proc/PID/stack", "cpu.stat", "cpu.max",
	"memory.stat", "memory.events", "io.stat", "mounts", "sysctl", "kernel log",

	"top", "htop", "ps", "free", "vmstat N", "mpstat", "iostat", "pidstat", "sar", "numastat", "ss",
	"perf report", "perf stat", "perf script", "perf sched latency", "perf sched timehist",
	"perf sched map", "perf trace -s", "strace -c", "strace", "ltrace -c", "BPF histogram",
	"runqslower", "BPF stacks", "folded stacks", "drsnoop", "LinuxKI report",

	"gdb backtrace", "eu-stack", "jstack", "py-spy dump",

	"TiDB slow log", "TiDB plan", "TiDB coprocessor log", "TiKV log", "etcd log", "InnoDB status",
	"Redis LATENCY DOCTOR", "Redis SLOWLOG", "Redis INFO", "redis-cli --intrinsic-latency",
	"PostgreSQL log",
}

// mute are those of which no text speaks of a cause, each with the reason.
var mute = map[string]string{
	"stack of a profile as text":   "one stack has no amount",
	"heap profile as text":         "who holds memory says nothing of a wait",
	"threadcreate profile as text": "it counts since the program started",
	"runtime/metrics":              "it is one reading since the start",
	"Go scavenger lines":           "memory that goes back to the system costs nobody a wait",
	"gcpacertrace":                 "it shows what the pacer aims at, and not what it costs",
	"/proc/PID/stat":               "it counts since the process started",
	"/proc/slabinfo":               "it says who has the kernel's memory, and not whether memory is short",
	"mounts":                       "it says where files are",
	"perf sched map":               "it draws who ran, and not who waited",
	"perf stat":                    "it counts of one run",
	"strace -c":                    "its seconds are of waits that may be idle",
	"ltrace -c":                    "its seconds are of waits that may be idle",
}

// shown is what samples have of a kind.
type shown struct{ speaks, open, quiet, healthy, alike bool }

func TestSamplesOfBothSides(t *testing.T) {
	of := map[string]*shown{}
	for _, k := range All() {
		of[k.Name] = &shown{}
	}
	for _, s := range samples(t) {
		parts, _ := attach.Cut("", paste.Lines(s.paste), Table())
		for _, p := range parts {
			k := of[p.Kind.Name]
			if k == nil {
				continue
			}
			if p.Kind.Read == nil {
				k.speaks = true // that it is refused is what it says
				continue
			}
			r := p.Kind.Read(p)
			speaks := r.State == attach.Ill || slices.ContainsFunc(r.Signs, func(s attach.Sign) bool { return s.Grade != attach.Against })
			k.speaks, k.quiet = k.speaks || speaks, k.quiet || !speaks
			k.open, k.healthy = k.open || r.State == attach.CannotTell, k.healthy || r.State == attach.Healthy
		}
		if len(parts) == 0 {
			for _, k := range All() {
				if resembles(k, string(s.paste)) {
					of[k.Name].alike = true
				}
			}
		}
	}
	var rest []string
	for _, k := range All() {
		if lacks := of[k.Name].lacks(k.Name); lacks != "" && slices.Contains(named, k.Name) {
			t.Errorf("%s: no sample that %s", k.Name, lacks)
		} else if lacks != "" {
			rest = append(rest, k.Name+": "+lacks)
		}
	}
	for _, name := range named {
		if of[name] == nil {
			t.Errorf("%s is the name of no kind", name)
		}
	}
	t.Logf("of kinds that are seldom attached, %d lack a sample:\n%s", len(rest), strings.Join(rest, "\n"))
}

func (s *shown) lacks(kind string) string {
	var l []string
	if !s.speaks && !(s.open && s.healthy) && mute[kind] == "" {
		l = append(l, "speaks of a cause")
	}
	if !s.quiet && !s.alike {
		l = append(l, "is quiet, or only looks alike")
	}
	return strings.Join(l, ", and none that ")
}

// resembles reports whether a text has what lines of a kind start with. A kind without hints is
// asked about every line.
func resembles(k *attach.Kind, text string) bool {
	return slices.ContainsFunc(k.Hints, func(h string) bool { return len(h) >= 4 && strings.Contains(text, h) })
}
