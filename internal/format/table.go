package format

import (
	"cmp"
	"slices"
	"sync"

	"github.com/whystall/whystall/internal/evidence"
)

// row is one format. It stands in the file of its parser, so that a format is read, changed and
// reviewed in one place; nothing here depends on the order in which files register.
type row struct {
	kind Kind
	name string // short, for the folder of its samples: testdata/NAME

	// How it is known: one of looks and line, or named where the content alone says too little. A
	// file that two rows know is known as neither, unless one of them yields to the other. A row
	// with at alone is only ever a reading in a recorder's member; it needs no samples of its own.
	looks    func(h head) bool                      // by how the file starts
	line     func(line string) bool                 // by any of the first lines: a log starts with anything
	mostly   bool                                   // line must know most of the first lines: chance ones of other texts read alike
	anywhere func(data []byte) bool                 // by a line further down, in a file that nothing else knows
	named    func(base string, content []byte) bool // by its base name and its content
	yields   []Kind                                 // rows that know the same bytes better
	at       func(path string) bool                 // a reading of this path in a recorder's member is of this kind

	// How it is read: parse, or, for a format that is only recognised, the reason in unused. A file
	// of the kernel's has file instead: registerFile makes parse of it and sets rank.
	parse  parser
	file   fileParser // of a file of the kernel's
	gap    string     // stream that is missing where the file could not be read; "": none is worth naming
	rank   int        // place among the sources of a stream: the lowest is taken
	unused string

	// What it gives. A stream is described once, by the row that is its first source.
	streams []evidence.Stream
	also    []string // streams that another row describes
}

// parser gives the records of one file. What only several files say together it leaves with g, in a
// joint. The error may come beside records: what could be read counts.
type parser func(g *gatherer, it Item) ([]evidence.Record, error)

// alone makes a parser of one that needs nothing but the bytes and when they were read.
func alone(parse func(data []byte, t int64) ([]evidence.Record, error)) parser {
	return func(_ *gatherer, it Item) ([]evidence.Record, error) { return parse(it.Data, it.Time) }
}

// Where two sources give the same stream, the one of the lower rank is taken whole: growth from a
// reading of one source to a reading of another is no growth. Rows that give the same stream have
// different ranks, such as rankRuntime and rankRuntime+1; a test holds them to it.
const (
	rankKernel  = 100 // the kernel's own files, which are read together
	rankRuntime = 200 // a page of what the runtime counts of itself
	rankLog     = 300 // what a program printed, rounded
	rankProfile = 400 // samples
	rankText    = 900 // what a person wrote down
)

var registered []*row

func register(r *row) *row {
	registered = append(registered, r)
	return r
}

// rows gives the table by rank and name. It is complete when the package's variables are.
var rows = sync.OnceValue(func() []*row {
	return slices.SortedFunc(slices.Values(registered), func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.name, b.name))
	})
})

func rowOf(k Kind) *row {
	for _, r := range rows() {
		if r.kind == k {
			return r
		}
	}
	return nil
}

// flaw says what a row lacks, "" for a whole one. Gather refuses the files of a flawed row: without
// a rank, for one, their records would have no place and vanish.
func (r *row) flaw() string {
	switch {
	case r.kind == "" || r.name == "":
		return "no kind or no name"
	case r.looks == nil && r.line == nil && r.named == nil && r.at == nil:
		return "nothing knows it"
	case r.looks != nil && r.line != nil:
		return "known by its start and by any line: one of them is enough"
	case (r.parse == nil) == (r.unused == ""):
		return "neither a parser nor a reason to have none, or both"
	case r.parse != nil && r.rank <= 0:
		return "no rank among the sources"
	case r.parse != nil && len(r.streams)+len(r.also) == 0 && !r.open():
		return "no stream"
	}
	return ""
}

// open reports whether the row's files may hold streams of any other: the recorder's members hold
// files of other kinds, and a person writes down any record.
func (r *row) open() bool { return r.kind == KindReadings || r.kind == KindRecords }

// Streams lists every stream that this room can give.
//
// Shapes: a Counter has one reading for each time it was fetched, in order: use Set.Delta. A Sample
// with Stack is already a difference where the profile was read twice, as the Fact "scope" of its
// profile says. A stream without records was not read: "not checked", never zero.
func Streams() []evidence.Stream {
	var all []evidence.Stream
	for _, r := range rows() {
		all = append(all, r.streams...)
	}
	return append(all, envStreams...)
}
