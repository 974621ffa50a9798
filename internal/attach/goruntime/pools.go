package goruntime

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// permit says where those that wait for a turn do so. It reports whether they are stuck: some wait
// for one object, each of them for minutes.
func (p *picture) permit(what string) (site string, stuck bool) {
	places := map[string]int{}
	var object uint64
	least, most, n := 0, 0, 0
	for i, s := range p.stacks {
		if p.waits[i].pool != what {
			continue
		}
		f, by := s.turn()
		if len(f.args) == 0 || f.vague || n > 0 && f.args[0] != object {
			return "", false
		}
		if n == 0 || s.minutes < least {
			least = s.minutes
		}
		object, most = f.args[0], max(most, s.minutes)
		n += s.count
		places[by.fn] += s.count
	}
	if n < fewWaiters || least == 0 || object <= 1<<16 {
		return "", false
	}
	site = fmt.Sprintf(" (0x%x), %s, each for minutes as the dump counts them, the longest for %s",
		object, sitesText(places, nil), count(most, "minute", "minutes"))
	if most == 1 {
		site = fmt.Sprintf(" (0x%x), %s, each for a minute", object, sitesText(places, nil))
	}
	return site, true
}

// poolTake is a method that takes something out of a pool, by the names of both.
var poolTake = pattern.New(`^(.*\(\*\w*[Pp]ool(?:\[[^\]]*\])?\))\.(?i:get|acquire|borrow|take|check_?out|wait)(?:Turn|Conn|Connection|Client|Session|Resource|Context|Ctx|With|Vacant)*$`)

// turnName is a function that hands out turns, or takes work, by its name.
var turnName = pattern.New(`(?i)acquire|limit|throttl|semaphore|permit|enqueue|waitTurn|checkout|(?:^|[.)])(?:sem|slot|queue|submit)`)

// turnNamed reports whether a function's own name, without its package, is of one that waits for a
// turn.
func turnNamed(fn string) bool {
	return turnName.MatchString(strings.TrimPrefix(fn, packageOf(fn)))
}

// poolNamed is the pool in whose own code a goroutine waits to be given something; "": it does not.
// A pool's own worker waits there for work. Who waits for a socket below it has its turn.
func poolNamed(s *stack, kind waitKind) string {
	if kind != waitChan && kind != waitCond && kind != waitSema || len(s.frames) == 0 {
		return ""
	}
	own := s.own()
	m := poolTake.FindStringSubmatch(own.fn)
	if m == nil || packageOf(s.frames[len(s.frames)-1].fn) == packageOf(own.fn) ||
		s.created != "" && packageOf(s.created) == packageOf(own.fn) {
		return ""
	}
	return "what the pool " + m[1] + " hands out"
}

// turn is the call that waits for a turn, and who called it.
func (s *stack) turn() (call, by frame) {
	for i, f := range s.frames {
		for _, p := range pools {
			if strings.HasPrefix(f.fn, p.fn) {
				if i+1 < len(s.frames) {
					by = s.frames[i+1]
				}
				return f, by
			}
		}
	}
	return frame{}, frame{}
}
