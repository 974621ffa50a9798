package format

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/evidence"
)

// Item is one file's content, or one member's of a case.
type Item struct {
	Name string // for errors, and to tell an empty mutex profile from an empty block profile
	Data []byte
	Time int64 // CLOCK_MONOTONIC ns when it was read; 0: not known. Items of one kind are in the order they were read.
}

// Gather parses items and puts what they say together: readings of one profile are subtracted, and where two sources speak of
// the same stream the first listed here is taken: the kernel's files, metrics, expvar, a heap profile as text, gctrace. The errors are one for each item that could not be
// read, or not wholly; problems[i] is about items[i], nil where there is none.
func Gather(items []Item) (set *evidence.Set, kinds []Kind, problems []error) {
	set = &evidence.Set{}
	kinds = make([]Kind, len(items))
	problems = make([]error, len(items))
	g := gatherer{left: maxAllUnpacked, sources: map[Kind][]evidence.Record{}, profiles: map[ProfileKind][]*Profile{}, at: map[ProfileKind]int64{}, item: map[ProfileKind]int{}}
	for i, it := range items {
		kinds[i], problems[i] = g.read(i, it)
	}
	for _, kind := range []ProfileKind{ProfileMutex, ProfileBlock, ProfileHeap, ProfileGoroutine, ProfileCPU} {
		if len(g.profiles[kind]) == 0 {
			continue
		}
		records, err := Profiles(kind, g.profiles[kind], g.at[kind])
		if err != nil {
			problems[g.item[kind]] = fmt.Errorf("%s: %w", items[g.item[kind]].Name, err)
		}
		g.sources[KindPprof] = append(g.sources[KindPprof], records...)
	}
	if g.proc != nil {
		g.sources[KindReadings] = g.proc.finish()
	}
	for _, source := range []Kind{KindReadings, KindMetrics, KindVars, KindHeapText, KindGCTrace, KindMutexText, KindPprof, KindRecords} {
		had := map[string]bool{}
		for _, r := range g.sources[source] {
			if _, seen := had[r.Stream]; !seen {
				had[r.Stream] = set.Has(r.Stream)
			}
			if !had[r.Stream] {
				set.Add(r)
			}
		}
	}
	return set, kinds, problems
}

// Bounds of all items together: a case from anywhere may have thousands of them, each packed small.
const (
	maxAllUnpacked = 1 << 30
	maxRecords     = 2 << 20
)

type gatherer struct {
	left     int64 // bytes that may still be unpacked
	records  int
	sources  map[Kind][]evidence.Record
	profiles map[ProfileKind][]*Profile
	at       map[ProfileKind]int64
	item     map[ProfileKind]int
	proc     *procState // of all files of the kernel's; nil: there are none
}

func (g *gatherer) read(i int, it Item) (Kind, error) {
	data, err := Gunzip(it.Data, min(maxUnpacked, g.left))
	if err != nil && g.left < maxUnpacked {
		err = fmt.Errorf("unpack: with the files before it more than %d MiB", maxAllUnpacked>>20)
	}
	if err != nil {
		return KindGzip, fmt.Errorf("read %s: %w", it.Name, err)
	}
	g.left = max(0, g.left-int64(len(data)))
	kind := Identify(data[:min(len(data), HeadSize)])
	if kind == KindUnknown && hasGCTrace(data) {
		kind = KindGCTrace // a log may be long before its first one
	}
	var records []evidence.Record
	switch kind {
	case KindPprof:
		p, err := ParseProfile(data)
		if err != nil {
			return kind, fmt.Errorf("%s: %w", it.Name, err)
		}
		which := p.Which(it.Name)
		if which == ProfileOther {
			return kind, fmt.Errorf("read %s: a pprof profile of %v: not one that is used here", it.Name, p.Types)
		}
		g.profiles[which] = firstAndLast(append(g.profiles[which], p))
		g.at[which], g.item[which] = it.Time, i
		return kind, nil
	case KindMutexText:
		records, err = MutexText(data, it.Time)
	case KindMetrics:
		records, err = Metrics(data, it.Time)
	case KindVars:
		records, err = Vars(data, it.Time)
	case KindHeapText:
		records, err = HeapText(data, it.Time)
	case KindGCTrace:
		records, err = GCTrace(data)
	case KindRecords:
		records, err = evidence.ParseText(bytes.NewReader(data))
	default:
		if kind == KindUnknown {
			kind = byName(it.Name, data)
		}
		if kind == KindReadings || procFileOf(kind) != nil {
			return kind, g.readProc(kind, it.Name, data, it.Time)
		}
		return kind, fmt.Errorf("read %s: %s: not a kind of file that is used here", it.Name, kind)
	}
	if g.records += len(records); g.records > maxRecords {
		return kind, fmt.Errorf("read %s: more than %d records in all", it.Name, maxRecords)
	}
	g.sources[kind] = append(g.sources[kind], records...)
	if err != nil {
		err = fmt.Errorf("%s: %w", it.Name, err)
	}
	return kind, err
}

// firstAndLast keeps of many readings those that are used.
func firstAndLast(p []*Profile) []*Profile {
	slices.SortStableFunc(p, byTime)
	if len(p) > 2 {
		p = []*Profile{p[0], p[len(p)-1]}
	}
	return p
}

func (g *gatherer) readProc(kind Kind, name string, data []byte, t int64) error {
	if g.proc == nil {
		g.proc = newProcState()
	}
	err := g.proc.read(kind, name, data, t)
	if err != nil {
		err = fmt.Errorf("%s: read %s: %w", name, kind, err)
	}
	if len(g.proc.out) > maxRecords {
		return fmt.Errorf("read %s: more than %d records in all", name, maxRecords)
	}
	return err
}
