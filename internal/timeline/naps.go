package timeline

import "github.com/whystall/whystall/exectrace"

// A goroutine that looks for something again and again, and sleeps for a moment between two looks,
// hardly runs itself. But each look costs a round of the scheduler.

// napNS bounds a short sleep. Whoever asks for a microsecond may sleep for a millisecond: idle
// threads of the runtime sleep in whole ones.
const napNS = 2e6

// Naps are short sleeps that follow one at the same place, with no other wait between.
type Naps struct {
	N     int64
	Wakes int64                          // ends of waits of all goroutines, whatever they waited for
	Sites map[exectrace.StackID]*SiteSum // by where they sleep
}

// woke counts the end of a wait, from begin to now at a stack.
func (t *Timeline) woke(g *G, w Wait, begin, now int64, stack uint32) {
	t.Naps.Wakes++
	if w != WaitTimer || now-begin >= napNS || stack == 0 {
		g.nap = 0
		return
	}
	again := g.nap == stack
	g.nap = stack
	if !again {
		return
	}
	t.Naps.N++
	s := t.Naps.Sites[exectrace.StackID(stack)]
	if s == nil {
		if t.Naps.Sites == nil {
			t.Naps.Sites = map[exectrace.StackID]*SiteSum{}
		}
		s = &SiteSum{}
		t.Naps.Sites[exectrace.StackID(stack)] = s
	}
	s.N++
	s.NS += now - begin
}
