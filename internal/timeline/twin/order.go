package twin

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/whystall/whystall/exectrace"
)

// resolve does what needs all lines: it numbers the goroutines, finds who woke whom, and puts
// everything in order.
func (p *parser) resolve() error {
	if err := p.number(); err != nil {
		return err
	}
	if err := p.findActors(); err != nil {
		return err
	}
	p.order()
	return nil
}

// number gives the goroutines that are not named by a number one that is free.
func (p *parser) number() error {
	next := exectrace.GoID(1)
	used := map[exectrace.GoID]bool{}
	for _, g := range p.gs {
		if g.id != 0 {
			if used[g.id] {
				return fmt.Errorf("line %d: goroutine %d is there twice", g.line, g.id)
			}
			used[g.id] = true
		}
		if len(g.states) == 0 {
			return fmt.Errorf("line %d: goroutine %s has no state", g.line, g.name)
		}
	}
	for _, g := range p.gs {
		if g.id == 0 {
			for used[next] {
				next++
			}
			g.id = next
			used[next] = true
		}
	}
	return nil
}

// findActors finds the goroutines that lines name.
func (p *parser) findActors() error {
	for i := range p.items {
		it := &p.items[i]
		if it.t == math.MinInt64 {
			it.t = p.begin
		}
		if it.actorName == "" {
			continue
		}
		if it.actorName != "P" && it.actorName != "nobody" {
			it.actor = p.named[it.actorName]
			if it.actor == nil {
				return fmt.Errorf("line %d: no goroutine %s", it.line, it.actorName)
			}
		}
		if it.verb == "runnable" || it.verb == "created" {
			if err := p.act(it); err != nil {
				return err
			}
		}
	}
	return nil
}

// act gives a wake-up or creation the stack of the goroutine that did it, which must run.
func (p *parser) act(it *item) error {
	stack := p.strings[it.name]
	it.name = 0
	if it.actor == nil {
		return nil
	}
	it.stack = p.stack(stack, it.actor)
	switch r := it.actor.runs(it.t); {
	case r == runsFrom:
		it.rank = max(it.rank, rankLate)
	case r == runsNot && !p.damaged:
		return fmt.Errorf("line %d: goroutine %s cannot have done this: it does not run at %d ns",
			it.line, it.actor.name, it.t)
	}
	return nil
}

// order sorts the items. A wake-up that had to come late takes what follows it in the same instant
// along.
func (p *parser) order() {
	late := map[*goroutine]item{}
	for i := range p.items {
		it := &p.items[i]
		if it.g == nil {
			continue
		}
		if l, ok := late[it.g]; ok && l.t == it.t && l.line < it.line {
			it.rank = max(it.rank, l.rank)
		}
		if it.rank == rankLate {
			late[it.g] = *it
		}
	}
	slices.SortStableFunc(p.items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(a.rank, b.rank), cmp.Compare(a.line, b.line))
	})
}
