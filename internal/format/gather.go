package format

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/whystall/whystall/internal/evidence"
)

// Item is one file's content, or one member's of a case.
type Item struct {
	Name string // for errors, and where the content alone says too little: empty profiles, files of one number
	Data []byte
	Time int64 // CLOCK_MONOTONIC ns when it was read; 0: not known. Items of one kind are in the order they were read.
}

// Gather parses items and puts what they say together: readings of one profile are subtracted, and
// where two sources give the same stream, the one of the lower rank is taken. The errors are one
// for each item that could not be read, or not wholly; problems[i] is about items[i], nil where
// there is none.
func Gather(items []Item) (set *evidence.Set, kinds []Kind, problems []error) {
	g := &gatherer{left: maxAllUnpacked, sources: map[int][]evidence.Record{}, joints: map[int]joint{}}
	kinds = make([]Kind, len(items))
	problems = make([]error, len(items))
	for i, it := range items {
		g.item = i
		kinds[i], problems[i] = g.read(it)
	}
	for _, rank := range slices.Sorted(maps.Keys(g.joints)) {
		records, errs := g.joints[rank].finish()
		g.sources[rank] = append(g.sources[rank], records...)
		for i, err := range errs {
			problems[i] = fmt.Errorf("%s: %w", items[i].Name, err)
		}
	}
	return g.merge(), kinds, problems
}

// Bounds of all items together: a case from anywhere may have thousands of them, each packed small.
const (
	maxAllUnpacked = 1 << 30
	maxRecords     = 2 << 20
)

type gatherer struct {
	item    int   // index of the one that is read
	left    int64 // bytes that may still be unpacked
	records int
	sources map[int][]evidence.Record // by rank
	joints  map[int]joint             // by rank
}

// joint is what several files say together: a pair of profiles, the kernel's files.
type joint interface {
	// finish gives the records, and an error for an item that turned out not to fit, by its index.
	finish() ([]evidence.Record, map[int]error)
}

// jointOf finds the joint of the rows with this rank, or makes it with the first of their files.
func jointOf[J joint](g *gatherer, rank int, create func() J) J {
	j, ok := g.joints[rank].(J)
	if !ok {
		j = create()
		g.joints[rank] = j
	}
	return j
}

var errTooMany = fmt.Errorf("more than %d records in all", maxRecords)

func (g *gatherer) read(it Item) (Kind, error) {
	data, err := Gunzip(it.Data, min(maxUnpacked, g.left))
	if err != nil && g.left < maxUnpacked {
		err = fmt.Errorf("unpack: with the files before it more than %d MiB", maxAllUnpacked>>20)
	}
	if err != nil {
		return KindGzip, fmt.Errorf("read %s: %w", it.Name, err)
	}
	g.left = max(0, g.left-int64(len(data)))
	it.Data = data
	known := identifyWhole(it.Name, data)
	switch {
	case len(known) == 0:
		return KindUnknown, fmt.Errorf("read %s: no part of it is of a kind that is known", it.Name)
	case len(known) > 1:
		return KindUnknown, fmt.Errorf("read %s: it may be %s or %s, and nothing in it says which",
			it.Name, known[0].kind, known[1].kind)
	}
	r := known[0]
	if flaw := r.flaw(); flaw != "" {
		return r.kind, fmt.Errorf("read %s: %s: its row in the table of formats is flawed: %s", it.Name, r.kind, flaw)
	}
	if r.parse == nil {
		return r.kind, fmt.Errorf("read %s: %s: not a kind of file that is used here", it.Name, r.kind)
	}
	records, err := r.parse(g, it)
	if g.records += len(records); g.records > maxRecords || errors.Is(err, errTooMany) {
		return r.kind, fmt.Errorf("read %s: %w", it.Name, errTooMany)
	}
	g.sources[r.rank] = append(g.sources[r.rank], records...)
	if err != nil {
		err = fmt.Errorf("%s: %w", it.Name, err)
	}
	return r.kind, err
}

// merge puts the sources together. A stream is the first source's that has it, a gap of that one
// apart: what it lacks another may know.
func (g *gatherer) merge() *evidence.Set {
	set := &evidence.Set{}
	for _, rank := range slices.Sorted(maps.Keys(g.sources)) {
		taken := map[string]bool{}
		for _, r := range g.sources[rank] {
			if _, asked := taken[r.Stream]; !asked {
				taken[r.Stream] = set.Has(r.Stream)
			}
			if !taken[r.Stream] {
				set.Add(r)
			}
		}
	}
	return set
}
