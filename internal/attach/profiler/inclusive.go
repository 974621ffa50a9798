package profiler

import (
	"cmp"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/evidence/kernel"
)

// within is what stacks say of functions together with all that they call.
type within struct {
	weight map[string]float64
	depth  map[string]float64 // weighted: how far from the innermost function it stood
	seen   map[string]int     // the last stack that it was counted for
	n      int
	called map[string]map[string]float64 // of an innermost function: who called it
}

// add counts each function of a stack once.
func (w *within) add(s *sample) {
	if w.weight == nil {
		w.weight, w.depth, w.seen = map[string]float64{}, map[string]float64{}, map[string]int{}
	}
	w.n++
	w.caller(s)
	for i := range len(s.kernel) + len(s.program) {
		f := &kernel.Frame{}
		if i < len(s.kernel) {
			f = &s.kernel[i]
		} else {
			f = &s.program[i-len(s.kernel)]
		}
		if unresolved(f.Func) || entries[f.Func] || w.seen[f.Func] == w.n {
			continue
		}
		w.seen[f.Func] = w.n
		w.weight[f.Func] += s.weight
		w.depth[f.Func] += s.weight * float64(i)
	}
}

// caller notes who called the innermost function of a stack.
func (w *within) caller(s *sample) {
	all := append(s.kernel[:len(s.kernel):len(s.kernel)], s.program...)
	if len(all) < 2 || unresolved(all[0].Func) || unresolved(all[1].Func) {
		return
	}
	if w.called == nil {
		w.called = map[string]map[string]float64{}
	}
	if w.called[all[0].Func] == nil {
		w.called[all[0].Func] = map[string]float64{}
	}
	w.called[all[0].Func][all[1].Func] += s.weight
}

// callers names who called the function that most samples are in, with their shares of whole; "":
// none has half of the samples, or one called it.
func (w *within) callers(name string, weight, whole float64) string {
	by := w.called[name]
	if whole <= 0 || weight < passesHalf*whole || len(by) < 2 {
		return ""
	}
	var out []string
	for _, caller := range attach.Largest(by)[:min(3, len(by))] {
		out = append(out, pct(by[caller]/whole)+" "+caller)
	}
	return "called by: " + strings.Join(out, ", ")
}

// What most of a profile passes through: half of it or more. Functions whose shares differ by so
// little are one chain of calls.
const (
	passesHalf = 0.5
	oneChain   = 0.03
)

// says names the chain of functions that most of the samples are in or below, where the innermost
// functions alone do not say it: some of its functions, the innermost first; "" if there is none.
// The chain ends where the shares drop most.
func (w *within) says(whole, innermost float64) string {
	if whole <= 0 || innermost >= passesHalf*whole {
		return ""
	}
	names := attach.Largest(w.weight)
	end, drop := 0.0, -1.0
	for i, name := range names {
		weight, next := w.weight[name], 0.0
		if weight < passesHalf*whole {
			break
		}
		if i+1 < len(names) {
			next = w.weight[names[i+1]]
		}
		if d := weight - next; d > drop {
			end, drop = weight, d
		}
	}
	if drop < 0 {
		return ""
	}
	chain := slices.DeleteFunc(names, func(n string) bool { return w.weight[n] < end || w.weight[n] > end+oneChain*whole })
	slices.SortStableFunc(chain, func(a, b string) int {
		return cmp.Or(cmp.Compare(w.depth[a]/w.weight[a], w.depth[b]/w.weight[b]), cmp.Compare(a, b))
	})
	var out []string
	for _, i := range slices.Compact([]int{0, len(chain) / 4, len(chain) / 2}) {
		out = append(out, pct(w.weight[chain[i]]/whole)+" "+chain[i])
	}
	return "in or below: " + strings.Join(out, ", ")
}
