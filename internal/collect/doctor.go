package collect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// Tiers of evidence, in the order in which doctor lists them.
const (
	TierRuntime = "runtime"
	TierSystem  = "system"
	TierPerf    = "perf_event"
	TierBPF     = "eBPF"
)

var tiers = []string{TierRuntime, TierSystem, TierPerf, TierBPF}

// Ability is one thing that a recording needs from the machine and the user, and whether it is
// there.
type Ability struct {
	Tier  string `json:"tier"` // of a collector, or of what several collectors need
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	Part  bool   `json:"partly,omitempty"` // there, and less than it could be
	Say   string `json:"says"`             // what it is, or why it is not there
	More  string `json:"more,omitempty"`   // the one command that would permit more
}

// Doctor says what a recording of a process could see, without recording. With pid 0 it says so for
// any process; with a pid, and probe set, it asks that process for its pprof index. An [Error]
// means that this process cannot be recorded at all.
func Doctor(ctx context.Context, pid int, probe bool) (t evidence.Target, as []Ability, err error) {
	p := Process{PID: pid, Budget: defaultBudget, Stacks: true}
	if pid != 0 {
		if t, _, err = identify(pid, false); err != nil {
			return t, nil, err
		}
		p.NSPID = t.NSPID
		as = append(as, runtimeOf(ctx, &t, probe), generatedCode(&t))
	} else {
		p.PID, p.NSPID = standIn()
	}
	for _, c := range Locals() {
		a := Ability{Tier: c.Tier, Name: c.Name, Ready: true, Say: firstSentence(c.Doc)}
		if err := c.Probe(p); err != nil {
			a.Ready, a.Say = false, oneLine(err)
		}
		as = append(as, a)
	}
	as = append(as, countable(p.PID))
	as = append(as, machine()...)
	slices.SortStableFunc(as, func(a, b Ability) int { return slices.Index(tiers, a.Tier) - slices.Index(tiers, b.Tier) })
	return t, as, nil
}

// runtimeOf says whether the process' own runtime can be asked.
func runtimeOf(ctx context.Context, t *evidence.Target, probe bool) Ability {
	a := Ability{Tier: TierRuntime, Name: "pprof"}
	switch {
	case t.Runtime == "go" && !probe:
		a.Part, a.Ready = true, servesProfiles(filepath.Join(procDir(t.PID), "exe"))
		a.Say = "the program does not contain net/http/pprof"
		if a.Ready {
			a.Say = "the program contains net/http/pprof; --no-probe was given, so it was not asked"
		}
	case t.Runtime == "go":
		p := probeProfiles(ctx, t)
		a.Ready, a.Say = p.url != "", p.why
		if a.Ready {
			a.Say = "served at " + p.url + profPath + "/: execution trace and profiles"
		}
	default:
		what := map[string]string{"jvm": "a Java program", "python": "a Python program", "ruby": "a Ruby program", "node": "a Node.js program"}[t.Runtime]
		if what == "" {
			what = "a native program"
		}
		a.Say = what + ": its threads are analysed as native threads, with the kernel's data alone"
		a.Ready = t.Runtime == ""
		a.Part = t.Runtime != ""
	}
	return a
}

// generatedCode says whether code that the process' runtime makes may be read.
func generatedCode(t *evidence.Target) Ability {
	a := Ability{Tier: TierSystem, Name: "code made at run time", Ready: true, Part: runtime.GOARCH != "amd64"}
	if a.Part {
		a.Say = "loops that wait are known on amd64 only"
		return a
	}
	f, err := os.Open(filepath.Join(procDir(t.PID), "mem"))
	if err != nil {
		a.Ready, a.Say = false, "loops that wait in it are not known: "+oneLine(err)
		return a
	}
	f.Close()
	a.Say = "The instructions around a sample are read from the process' memory, to know loops that wait; none is kept, and no data is read"
	return a
}

func firstSentence(s string) string {
	s, _, _ = strings.Cut(s, ". ")
	return strings.TrimSuffix(s, ".")
}

// paranoid says what kernel.perf_event_paranoid permits a user without CAP_PERFMON. With it
// (privileged) the setting does not matter.
func paranoid(level int, privileged bool) Ability {
	a := Ability{Tier: TierPerf, Name: "perf_event_paranoid", Ready: true, Say: fmt.Sprintf("%d", level)}
	switch {
	case privileged:
		a.Say += ", which does not restrict this user"
	case level >= 3:
		a.Ready, a.Say, a.More = false, a.Say+": nothing is permitted without CAP_PERFMON", "sudo sysctl kernel.perf_event_paranoid=2"
	case level == 2:
		a.Part, a.Say, a.More = true, a.Say+": own processes only, and no kernel stacks", "sudo sysctl kernel.perf_event_paranoid=1"
	case level == 1:
		a.Part, a.Say, a.More = true, a.Say+": own processes, with kernel stacks; not who ran instead", "sudo sysctl kernel.perf_event_paranoid=0"
	}
	return a
}
