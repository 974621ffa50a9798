package unit

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/whystall/whystall/internal/request"
)

// served is what is known of a group's units by who gave them.
type served struct {
	count   int64 // kept units
	answers int64 // units whose giver then waited until the thread woke it
	from    map[request.GroupID]int64
}

// list decides which groups are requests: those whose work comes from outside, before those whose work comes from the
// program itself. A group that only serves another's units is not one: its time is in theirs.
func (f *finder) list() {
	t := &f.t
	of := f.givers()
	var outside int64
	for i := range t.Groups {
		g, r := &t.Groups[i], &t.roles[f.ofGroup[i]]
		g.Listed = g.Count > 0
		s := &of[i]
		switch {
		case f.o.Entry != nil:
			g.Listed = g.Count > 0
		case !g.Listed:
		case s.count > 0 && s.answers*2 >= s.count:
			g.Listed, g.Why = false, fmt.Sprintf("serves others: %d of %d woke who had given them the work and waited", s.answers, s.count)
		}
		if g.Listed && r.tier == tierNet && g.Kind == "thread loop" {
			outside += g.Count
		}
	}
	if f.o.Entry == nil {
		f.makers()
		f.pollers()
		f.background(of, outside)
	}
	for i := range t.Groups {
		g := &t.Groups[i]
		if !g.Listed {
			continue
		}
		g.Why = "boundaries were learned from where its threads wait"
		if g.Kind == "thread" {
			g.Why = "its threads are born and die"
		}
		if f.tooMany > 0 {
			g.Why += fmt.Sprintf("; %d units of work were not followed: there are more than %d", f.tooMany, maxUnits)
		}
	}
	f.cause()
}

// makers leaves out who only makes a thread for each connection: the threads' own groups have the work. Threads that serve others do not: who makes
// one for a step of its work, and waits for it, has the work.
func (f *finder) makers() {
	t := &f.t
	made, works := map[int32]int64{}, map[int32]bool{}
	for i := range t.Groups {
		works[f.ofGroup[i]] = works[f.ofGroup[i]] || t.Groups[i].Listed
	}
	for i := range t.lives {
		l := &t.lives[i]
		if m := t.life(l.maker, l.begin); l.born && l.role >= 0 && works[l.role] && m != nil && m.role >= 0 && m.role != l.role {
			made[m.role]++
		}
	}
	for i := range t.Groups {
		g, r := &t.Groups[i], f.ofGroup[i]
		if n := made[r]; g.Listed && n*5 >= g.Count*4 {
			g.Listed, g.Why = false, fmt.Sprintf("hands its work on: it made %d threads", n)
		}
	}
}

// pollers leaves out who only looks for work time and again, where others have some: most of the times there is none, and how long a look
// takes nobody waits for.
func (f *finder) pollers() {
	t := &f.t
	polls := func(g int) bool { return t.Groups[g].Listed && t.roles[f.ofGroup[g]].site.polls() }
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

// background leaves out groups that look like the background of others.
func (f *finder) background(of []served, outside int64) {
	t := &f.t
	var life int64
	for i := range t.Groups {
		if g := &t.Groups[i]; g.Listed && t.roles[f.ofGroup[i]].tier <= tierLife {
			life += g.Count
		}
	}
	for i := range t.Groups {
		g, r := &t.Groups[i], &t.roles[f.ofGroup[i]]
		if !g.Listed {
			continue
		}
		if r.key.gives && r.wallNS < t.roles[r.gives].wallNS {
			g.Listed, g.Why = false, "hands its work on to "+t.roles[r.gives].entry
			continue
		}
		switch r.tier {
		case tierTimer:
			if life > 0 {
				g.Listed, g.Why = false, "wakes by a timer: looks like background work beside the requests"
			}
		case tierChan:
			// Given by units of another group: the longer part of the work is the request.
			if from := mostly(&of[i]); from != request.NoGroup && from != request.GroupID(i) && t.roles[f.ofGroup[from]].tier != tierTimer {
				giver := &t.roles[f.ofGroup[from]]
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

// mostly is the group whose units gave four in five of the work; NoGroup without one.
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

// givers looks who gave the units their work, and whether it waited for the answer.
func (f *finder) givers() []served {
	t := &f.t
	of := make([]served, len(t.Groups))
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
		s := &of[u.Group]
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
		// 64 bounds what a giver that is woken very often costs.
		f.wakings = f.k.Woken(u.Waker, u.Begin, min(giver.End, u.End+answerNS), f.wakings[:0])
		for j := range f.wakings[:min(len(f.wakings), 64)] {
			if w := &f.wakings[j]; w.Waker == u.TID && !w.Interrupt {
				s.answers++
				break
			}
		}
	}
	return of
}

// cause says why no group is listed.
func (f *finder) cause() {
	t := &f.t
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
		if f.k.Header().Source == "perf" {
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
