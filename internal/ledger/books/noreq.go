package books

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/request"
)

const (
	// manyOpen is how many requests must have started and not ended to say that they pile up. Fewer
	// may be a few slow ones.
	manyOpen = 10
	// mostReasons is how many reasons of groups are quoted.
	mostReasons = 3
)

// noRequests says why there is nothing to explain. That requests start and none ends is the news,
// so it is said before why groups were not listed.
func noRequests(list []request.Group) string {
	if len(list) == 0 {
		return "no goroutine was seen that takes work in a loop, nor tasks, regions or a known server"
	}
	if g := mostOpen(list); g != nil {
		return piledUp(g)
	}
	var why []string
	for _, l := range list {
		if l.Why != "" && !slices.Contains(why, l.Why) && len(why) < mostReasons {
			why = append(why, l.Why)
		}
	}
	if len(why) == 0 {
		return "no request began and ended inside the trace"
	}
	return strings.Join(why, "; ")
}

// mostOpen is the listed group with the most requests that did not end. It is nil if no listed
// group had any request under way at either end of the trace.
func mostOpen(list []request.Group) (most *request.Group) {
	for i := range list {
		l := &list[i]
		if !l.Listed || l.LeftOut[request.OpenBegin]+l.LeftOut[request.OpenEnd] == 0 {
			continue
		}
		if most == nil || l.LeftOut[request.OpenEnd] > most.LeftOut[request.OpenEnd] {
			most = l
		}
	}
	return most
}

// piledUp says how many requests of a group were under way at either end of the trace.
func piledUp(g *request.Group) string {
	entry := g.Entry
	if entry == "" { // stacks stand at a generation's end, which a trace that is cut off may lack
		entry = "a function whose name is lost"
	}
	open, started := g.LeftOut[request.OpenBegin], g.LeftOut[request.OpenEnd]
	why := fmt.Sprintf("no request began and ended inside the trace; of %s %d were under way at its start, and %d began and did not end", entry, open, started)
	if started >= manyOpen {
		why += ": they pile up, and where they wait is in /debug/pprof/goroutine?debug=1"
	}
	return why
}
