package unit

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/whystall/whystall/internal/request"
)

// served is what is known of who gave a group its units.
type served struct {
	count   int64                     // kept units
	answers int64                     // units whose giver then waited until the thread woke it
	from    map[request.GroupID]int64 // units by the group of the unit in which they were given
}

// list decides which groups are requests. A group that only serves another's units is none, since
// its time is in theirs, and where work comes from outside the program's own background is none. In
// steps:
//  1. A group whose givers wait for the answer serves them.
//  2. A group that makes a thread for each piece of work hands it on (makers).
//  3. A group that only looks for work again and again polls (pollers).
//  4. A group that waits for answers at connections which the program made asks others (asking).
//  5. A group between others either hands its work on or does their background work (background).
//
// Each step sees what the ones before have left. With a pattern for the entry function the user has
// decided.
func (f *finder) list() {
	t := &f.set
	by := f.givers()
	var outside int64
	for i := range t.Groups {
		g, r := &t.Groups[i], &t.roles[f.groupRole[i]]
		g.Listed = g.Count > 0
		s := &by[i]
		switch {
		case f.options.Entry != nil:
			g.Listed = g.Count > 0
		case !g.Listed:
		case s.count > 0 && s.answers*2 >= s.count:
			g.Listed, g.Why = false,
				fmt.Sprintf("serves others: %d of %d woke who had given them the work and waited", s.answers, s.count)
		}
		if g.Listed && r.tier == tierNet && g.Kind == request.KindThreadLoop {
			outside += g.Count
		}
	}
	if f.options.Entry == nil {
		f.makers()
		f.pollers()
		f.asking()
		f.background(by, outside)
	}
	for i := range t.Groups {
		g := &t.Groups[i]
		if !g.Listed {
			continue
		}
		g.Why = "boundaries were learned from where its threads wait"
		if g.Kind == request.KindThread {
			g.Why = "its threads are born and die"
		}
		if f.tooMany > 0 {
			g.Why += fmt.Sprintf("; %d units of work were not followed: there are more than %d", f.tooMany, maxUnits)
		}
	}
	f.cause()
}

// makers leaves out groups that only make a thread for each connection: the threads' own groups
// have the work. If those are not listed, since they serve their maker, the work is the maker's: it
// makes a thread for a step of its work and waits for it.
func (f *finder) makers() {
	t := &f.set
	made, works := map[int32]int64{}, map[int32]bool{}
	for i := range t.Groups {
		works[f.groupRole[i]] = works[f.groupRole[i]] || t.Groups[i].Listed
	}
	for i := range t.lives {
		l := &t.lives[i]
		if m := t.life(l.maker, l.begin); l.born && l.role >= 0 && works[l.role] && m != nil &&
			m.role >= 0 && m.role != l.role {
			made[m.role]++
		}
	}
	for i := range t.Groups {
		g, r := &t.Groups[i], f.groupRole[i]
		if n := made[r]; g.Listed && n*5 >= g.Count*4 {
			g.Listed, g.Why = false, fmt.Sprintf("hands its work on: it made %d threads", n)
		}
	}
}

// pollers leaves out groups whose threads only look for work again and again, if another group has
// work. Mostly they find none, and nobody waits for how long a look takes.
func (f *finder) pollers() {
	t := &f.set
	polls := func(g int) bool { return t.Groups[g].Listed && t.roles[f.groupRole[g]].site.polls() }
	works := false
	for i := range t.Groups {
		works = works || t.Groups[i].Listed && !polls(i)
	}
	for i := range t.Groups {
		if works && polls(i) {
			t.Groups[i].Listed, t.Groups[i].Why = false, "polls: sleeps less than a ms, looks for work and sleeps again"
		}
	}
}

// asking leaves out groups that begin with the answers of others, if another group begins with
// requests from outside and is not rare beside them. A program that gets its work at a connection
// which it made itself keeps it.
func (f *finder) asking() {
	t := &f.set
	asks := func(g int) bool { return t.Groups[g].Listed && t.roles[f.groupRole[g]].key.made }
	var asked int64
	for i := range t.Groups {
		if r := &t.roles[f.groupRole[i]]; t.Groups[i].Listed && r.tier == tierNet && !r.key.made {
			asked += t.Groups[i].Count
		}
	}
	for i := range t.Groups {
		if g := &t.Groups[i]; asks(i) && asked*10 >= g.Count {
			g.Listed, g.Why = false, "begins with an answer, at a connection that the program made itself"
		}
	}
}

// background leaves out groups that look like the background of others, or like a step before them.
// outside is how many units came from the network.
func (f *finder) background(by []served, outside int64) {
	t := &f.set
	var requests int64 // units of groups that do not just wake by themselves
	for i := range t.Groups {
		if g := &t.Groups[i]; g.Listed && t.roles[f.groupRole[i]].tier <= tierLife {
			requests += g.Count
		}
	}
	for i := range t.Groups {
		g, r := &t.Groups[i], &t.roles[f.groupRole[i]]
		if !g.Listed {
			continue
		}
		if r.key.fills && r.wallNS < t.roles[r.filled].wallNS {
			g.Listed, g.Why = false, "hands its work on to "+t.roles[r.filled].entry
			continue
		}
		switch r.tier {
		case tierTimer:
			if requests > 0 {
				g.Listed, g.Why = false, "wakes by a timer: looks like background work beside the requests"
			}
		case tierThread:
			// The units of another group gave it its work: the group that takes longer is the
			// request.
			if from := mostly(&by[i]); from != request.NoGroup && from != request.GroupID(i) &&
				t.roles[f.groupRole[from]].tier != tierTimer {
				giver := &t.roles[f.groupRole[from]]
				if r.wallNS <= giver.wallNS {
					if t.Groups[from].Listed {
						g.Listed, g.Why = false, "its work comes from requests and takes less time than they do"
					}
				} else if t.Groups[from].Listed && giver.wallNS*4 < r.wallNS && giver.tier != tierLife {
					t.Groups[from].Listed, t.Groups[from].Why = false, fmt.Sprintf("hands its work on to %s", g.Entry)
				}
			} else if outside > 10*g.Count {
				g.Listed, g.Why = false, "looks like background work beside the requests"
			}
		}
	}
}

// mostly is the group whose units gave at least four in five units of s; NoGroup if there is none.
func mostly(s *served) request.GroupID {
	best, most := request.NoGroup, int64(0)
	for g, n := range s.from {
		if n > most || n == most && g < best {
			best, most = g, n
		}
	}
	if most*5 < s.count*4 {
		return request.NoGroup
	}
	return best
}

// givers finds, by group, in which units of other threads the units were given, and whether the
// giver waited for the answer: whether the thread that got the work woke the giver before the
// giver's own unit was over.
func (f *finder) givers() []served {
	t := &f.set
	by := make([]served, len(t.Groups))
	byTID := map[uint32][]int32{}
	for i := range t.Units {
		u := &t.Units[i]
		byTID[u.TID] = append(byTID[u.TID], int32(i))
	}
	for _, l := range byTID {
		slices.SortFunc(l, func(a, b int32) int { return int(min(1, max(-1, t.Units[a].Begin-t.Units[b].Begin))) })
	}
	for i := range t.Units {
		u := &t.Units[i]
		s := &by[u.Group]
		if u.LeftOut != request.Kept {
			continue
		}
		s.count++
		if u.Waker == 0 || u.Waker == u.TID {
			continue
		}
		l := byTID[u.Waker]
		n := sort.Search(len(l), func(i int) bool { return t.Units[l[i]].End >= u.Begin })
		if n == len(l) || t.Units[l[n]].Begin > u.Begin {
			continue
		}
		giver := &t.Units[l[n]]
		if s.from == nil {
			s.from = map[request.GroupID]int64{}
		}
		s.from[giver.Group]++
		if giver.Group == u.Group {
			continue
		}
		f.wakings = f.timeline.Woken(u.Waker, u.Begin, min(giver.End, u.End+answerNS), f.wakings[:0])
		for j := range f.wakings[:min(len(f.wakings), mostExamined)] {
			if w := &f.wakings[j]; w.Waker == u.TID && !w.Interrupt {
				s.answers++
				break
			}
		}
	}
	return by
}

// cause says why no group is listed, if none is: the most likely obstacle, after what was left out
// and why.
func (f *finder) cause() {
	t := &f.set
	busy, unsure := int32(-1), false
	for i := range t.Groups {
		if t.Groups[i].Listed {
			return
		}
	}
	for i := range t.lives {
		l := &t.lives[i]
		unsure = unsure || l.unsure
		if l.role < 0 && (busy < 0 || l.busyNS > t.lives[busy].busyNS) {
			busy = int32(i)
		}
	}
	var why []string
	for i := range t.Groups {
		if g := &t.Groups[i]; g.Why != "" && len(why) < 3 {
			why = append(why, g.Entry+": "+g.Why)
		}
	}
	switch {
	case len(t.lives) == 0:
		why = append(why, "no thread of the target was seen")
	case f.unknown*2 > f.waits:
		w := "what its threads waited in was not recorded, so that a wait for work cannot be told from any other"
		if f.timeline.Header().Source == "perf" {
			w += ": that needs privilege"
		}
		why = append(why, w)
	case unsure:
		why = append(why, "a thread waits in several places, and without whole stacks nobody can tell which of them is for work")
	case busy >= 0 && t.lives[busy].busyNS*2 > t.lives[busy].end-t.lives[busy].begin:
		why = append(why, fmt.Sprintf("no wait for work was seen in %s: units of work that follow each other without one cannot be told apart", f.nameOf[t.lives[busy].name].comm))
	case len(why) == 0:
		why = append(why, "no thread was seen to wait for work again and again, to be woken from outside")
	}
	t.Cause = strings.Join(why, "; ")
}
