package books

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/request"
)

// Names says what the numbers in the books mean.
type Names interface {
	Func(id uint32) string                 // of an actor, a site, a detail
	Place(stack uint32) account.Site       // where a stack stands in the program
	SiteOf(stack uint32, lock bool) uint32 // the same as a number; of a wait for a lock where the lock is taken
	Behind(ref uint32) account.Instead     // who had the CPU
	Time(at int64) int64                   // of a recording, for a time in the books
}

// Runtime is what else the books of goroutines have to name.
type Runtime interface {
	Word(id uint32) string                                        // a kind of stop-the-world
	Occupant(ref uint32, entries map[string]bool) account.Instead // who held a P
	Lacked(ref uint32, entries map[string]bool) account.Instead   // what the thread of a P lacked
	Request(id request.NameID) string
}

// books are the accounts of one recording while they are added up. Their owner explains the units of work, and puts what it
// finds of one into Facts before it calls TakeFacts.
type Books struct {
	names    Names
	runtime  Runtime // nil where the actors are threads
	slowOver int64   // ns: slow is what took at least as long; 0: the slowest 1 % of each group
	others   uint32  // the name of what is too short to be told apart

	facts  Facts // of the unit that is explained
	acc    accounts
	Groups []*Group // by request.GroupID
	bytes  int      // of facts that are kept

	ofAccount []int64 // scratch of worth, by account: time, and actors kept
	actors    []uint8 // and holds << 4
	small     Facts
}

func New(names Names, runtime Runtime, slowOver int64, others uint32) *Books {
	return &Books{names: names, runtime: runtime, slowOver: slowOver, others: others}
}

// Facts holds the facts of the unit that is explained. Its owner resets it before each unit.
func (p *Books) Facts() *Facts { return &p.facts }

// Number is the number of an account.
func (p *Books) Number(k Key) uint32 { return p.acc.id(k) }

// TakeFacts takes the facts in hand as those of k, and returns the sum of their time: what k took, or the walk was wrong.
func (p *Books) TakeFacts(k *Kept) (ns int64) {
	for _, f := range p.facts.facts {
		if f.kind() == FactNS {
			ns += f.ns()
		}
	}
	k.facts = p.worth(k.Wall())
	return ns
}

// keep keeps a unit: as one that may turn out to be slow, as one of the sample of others, or both.
func (p *Books) Keep(k *Kept, slow, other bool, list func() []request.Group) {
	if slow {
		p.bytes += k.Group.keep(k)
	}
	if other {
		p.bytes += k.Group.sample(k)
	}
	if p.bytes > maxKept {
		p.shrink(list())
	}
}

// maxActors is how many actors, and how many holds of a lock, of one account are kept of one request.
const maxActors = 4

// worth copies the facts of the activation. A slow request has hundreds, most of them about microseconds: of accounts
// below 1/200 of the wall time only the times are kept, of those below 1/500 not by actor, either.
func (p *Books) worth(wall int64) []fact {
	for len(p.ofAccount) < len(p.acc.list) {
		p.ofAccount = append(p.ofAccount, 0)
		p.actors = append(p.actors, 0)
	}
	for _, f := range p.facts.facts {
		if f.kind() == FactNS {
			p.ofAccount[f.account], p.actors[f.account] = f.ns(), 0
		}
	}
	p.small.Reset()
	all := p.facts.facts
	n := 0
	for _, f := range all {
		ns := p.ofAccount[f.account]
		if ns*200 >= wall {
			// that they are many is known from a few
			switch f.kind() {
			case FactActor:
				if p.actors[f.account]&15 == maxActors {
					continue
				}
				p.actors[f.account]++
			case FactHold:
				if p.actors[f.account]>>4 == maxActors {
					continue
				}
				p.actors[f.account] += 1 << 4
			}
			all[n] = f
			n++
			continue
		}
		switch f.kind() {
		case FactNS, FactSTW, FactSweep, FactLock, FactThrough, FactBarrier:
		default:
			continue
		}
		id := f.account
		if key := p.acc.list[id]; ns*500 < wall && key.Actor != 0 {
			key.Actor = p.others
			id = p.acc.id(key)
		}
		p.small.Add(id, f.kind(), f.ref, f.ns())
	}
	facts := make([]fact, 0, n+len(p.small.facts))
	return append(append(facts, all[:n]...), p.small.facts...)
}

// group is the group with that number, nil where there are too many.
func (p *Books) Group(id request.GroupID) *Group {
	if id >= maxGroups {
		return nil
	}
	for int(id) >= len(p.Groups) {
		p.Groups = append(p.Groups, nil)
	}
	if p.Groups[id] == nil {
		p.Groups[id] = &Group{}
	}
	return p.Groups[id]
}

// shrink makes room: the group that takes most keeps the slower half of its candidates. Groups of unknown loops come first
// as long as they take more than a quarter of the room: it is only known at the end which of them are shown.
func (p *Books) shrink(list []request.Group) {
	p.bytes = 0
	var unknown int
	sizes := make([]int, len(p.Groups))
	for id, g := range p.Groups {
		if g == nil {
			continue
		}
		for _, s := range g.others {
			for _, k := range s {
				p.bytes += k.size()
			}
		}
		for _, k := range g.cands {
			sizes[id] += k.size()
		}
		p.bytes += sizes[id]
		if isUnknown(list, id) {
			unknown += sizes[id]
		}
	}
	for p.bytes > maxKept*3/4 {
		most := -1
		for id, size := range sizes {
			if size > 0 && len(p.Groups[id].cands) >= 32 && (unknown <= maxKept/4 || isUnknown(list, id)) && (most < 0 || size > sizes[most]) {
				most = id
			}
		}
		if most < 0 {
			break
		}
		freed := p.Groups[most].halve()
		p.bytes -= freed
		sizes[most] -= freed
		if isUnknown(list, most) {
			unknown -= freed
		}
	}
	if p.bytes <= maxKept*3/4 {
		return
	}
	for _, g := range p.Groups { // very many groups: their samples
		if g == nil {
			continue
		}
		for i := range g.others {
			for len(g.others[i]) > 2 {
				n := len(g.others[i]) - 1
				p.bytes -= g.others[i][n].size()
				g.others[i][n] = nil
				g.others[i] = g.others[i][:n]
			}
		}
	}
}

// nameList numbers names. The zero value is ready; 0 is "".
type NameList struct {
	names []string // by number, less one
	ids   map[string]uint32
}

// number gives a name its number.
func (l *NameList) Number(name string) uint32 {
	id, ok := l.ids[name]
	if !ok && name != "" {
		if l.ids == nil {
			l.ids = map[string]uint32{}
		}
		l.names = append(l.names, name)
		id = uint32(len(l.names))
		l.ids[name] = id
	}
	return id
}

// name is the name with a number.
func (l *NameList) Name(id uint32) string {
	if id == 0 || int(id) > len(l.names) {
		return ""
	}
	return l.names[id-1]
}
