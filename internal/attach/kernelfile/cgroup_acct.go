package kernelfile

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// cpuAcct is cpuacct.stat of several groups, a line each, as monitors print it: the CPU time of a
// group of cgroup v1 since it was made, in ticks of which 100 are a second. It has no quota in it.
var cpuAcct = &attach.Kind{
	Name: "cpuacct.stat", Hints: []string{"cpuacct.stat"},
	Claim: func(lines []paste.Line) int { return run(lines, acctLine.MatchString) },
	Read:  readCPUAcct,
}

var acctLine = pattern.New(`^(?:\w+:? )?['"]?(/[^\s'"]*/cpuacct\.stat)['"]?[:=]? *user:? (\d{1,15})[,;]? *system:? (\d{1,15})$`)

func readCPUAcct(p *attach.Part) attach.Reading {
	type group struct {
		name         string
		user, system float64 // ticks
	}
	var all []group
	seen := map[string]int{}
	for _, l := range p.Lines {
		m := acctLine.FindStringSubmatch(strings.TrimSpace(l.Text))
		if m == nil {
			continue
		}
		g := group{path.Base(path.Dir(m[1])), float(m[2]), float(m[3])}
		seen[g.name]++
		all = append(all, g)
	}
	r := attach.Reading{
		Title: "cpuacct.stat of " + plural(len(seen), "group", "groups"), State: attach.CannotTell, Boot: true,
		Means: "CPU time since each group was made: no rate, and nothing of a quota.",
		Not:   "that a group was throttled: cpu.stat has that, and not this file",
		Next: []attach.Next{{Command: "cat /sys/fs/cgroup/cpu/CGROUP/cpu.stat",
			Why: "nr_throttled against nr_periods: whether a quota stops it"}},
	}
	slices.SortStableFunc(all, func(a, b group) int { return cmp.Compare(b.user+b.system, a.user+a.system) })
	for _, g := range all[:min(2, len(all))] {
		r.Figures = append(r.Figures,
			fmt.Sprintf("%s: %s in user mode and %s in the kernel, at 100 ticks a second",
				printed(g.name), dur(g.user*1e7), dur(g.system*1e7)))
	}
	if len(seen) < len(all) {
		r.Figures = append(r.Figures,
			fmt.Sprintf("%d of the names stand under two paths: they are the same groups", len(all)-len(seen)))
	}
	return r
}
