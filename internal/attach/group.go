package attach

import (
	"path"
	"slices"
	"strings"
)

// mostGroups bounds the groups that a part is held against: an archive may have parts of thousands
// of processes.
const mostGroups = 256

// group gives parts of one process and moment the same number. A part that names nobody belongs to
// the first group: people attach what belongs together.
func (a *Answer) group() (groups [][]*Told) {
	for _, t := range a.Told {
		at := slices.IndexFunc(groups[:min(len(groups), mostGroups)], func(g []*Told) bool {
			return !slices.ContainsFunc(g, func(o *Told) bool { return elsewhere(t, o) })
		})
		if at < 0 {
			at = len(groups)
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], t)
		t.Group = at + 1
	}
	return groups
}

// elsewhere reports whether two parts are for sure not of one process and moment: they name
// different hosts, processes or cgroups, or they are two samples of one kind.
func elsewhere(t, o *Told) bool {
	return otherProcess(t, o) || t.Part.Kind == o.Part.Kind && !t.Part.Kind.Scattered &&
		!siblings(t.Part, o.Part)
}

// otherProcess reports whether two parts name different hosts, processes or cgroups.
func otherProcess(t, o *Told) bool {
	return otherHost(t.Who.Host, o.Who.Host) || differ(t.Who.Cgroup, o.Who.Cgroup) ||
		t.Who.PID != 0 && o.Who.PID != 0 && t.Who.PID != o.Who.PID
}

// siblings reports whether two parts show different files of one folder, or of the host's settings:
// neither two samples of one file, nor one file of two places.
func siblings(a, b *Part) bool {
	const settings = "/proc/sys/"
	return a.Path != "" && b.Path != "" && path.Base(a.Path) != path.Base(b.Path) &&
		(path.Dir(a.Path) == path.Dir(b.Path) || strings.HasPrefix(a.Path, settings) &&
			strings.HasPrefix(b.Path, settings))
}

func differ(a, b string) bool { return a != "" && b != "" && a != b }

// otherHost reports whether two names are of two hosts: a prompt often has the name without the
// domain that a banner shows.
func otherHost(a, b string) bool {
	return differ(a, b) && !strings.HasPrefix(a, b+".") && !strings.HasPrefix(b, a+".")
}
