package attach

import (
	"slices"
	"time"

	"github.com/whystall/whystall/internal/format"
	"github.com/whystall/whystall/internal/format/paste"
)

// Kind is one kind of text, such as the output of vmstat. It stands in a file of its own.
type Kind struct {
	Name string // as people who use it say: "vmstat N", "gctrace", "jstack"

	// Hints are strings of which a line that starts a part has at least one. They only spare Claim
	// most lines of a long log. Empty: Claim is asked about every line.
	Hints []string

	// Claim returns how many of these lines are this kind's, from the first one on; 0: the first
	// line does not start it. Blank lines at the end do not count. Claim must refuse what only
	// resembles the kind, and knows a part whose start or end was cut off where what is left can be
	// nothing else. It runs in time linear in what it claims.
	Claim func(lines []paste.Line) int

	// Prompted: Claim is asked about a prompt's line too, since only the command says whose the
	// output is: "cat memory.max" prints a number and no more. The prompt's line is then the first,
	// and stands in Part.Command and not in Part.Lines. It is also asked about lines of several
	// files that grep named, all together.
	Prompted bool

	// Scattered: its lines stand among lines of other programs, as in a log. All of a paste that
	// have one source are one part.
	Scattered bool

	// Marks are strings of which every line that starts the kind's lines in a log has one, where
	// Hints are short or common: they find the lines of a Scattered kind in logs of gigabytes. Each
	// has at least five bytes. Empty: Hints do.
	Marks []string

	// Single: each of a Scattered kind's lines stands for itself, so that lines behind a mark need
	// not be looked at.
	Single bool

	// When is the time that a part itself says it was taken at; zero: it does not say. Nil: the
	// time of its first line counts.
	When func(p *Part) time.Time

	// Joins: Read compares several samples in one part. So parts of one place that are in order
	// become one; without it each is read alone.
	Joins bool

	// Rest reports whether a later part is the other half of one reading, which is no sample of its
	// own. Nil: it never is.
	Rest func(first, later *Part) bool

	// Session reports whether a part below the second command goes on with the one below the first:
	// a person looked at one thing after the other. They become one part. Nil: they never do.
	Session func(first, next string) bool

	// Rows: Read keeps each line as a row of figures. So of a part only the first 28 000 lines are
	// read, and the reading says so.
	Rows bool

	// Reports says that parts of this kind may be different reports of one tool, which are no
	// samples of one thing: nothing is said of their order.
	Reports bool

	// Apart reports whether such a line starts a report of its own, even right below another one of
	// this kind. Nil: lines of one kind that stand below each other are one part.
	Apart func(first paste.Line) bool

	// Yields names the kinds whose claim counts where both claim the same first line. Otherwise the
	// longer claim does.
	Yields []string

	// Context: it says what a machine is, or where things are, and nothing of health.
	Context bool

	// Format is the format of the same text, where one has it that is known by so little that other
	// texts resemble it: only then do the detectors get the file's records.
	Format format.Kind

	// Refused is why a kind that is known is of no use here, and what would be: benchmarks say
	// nothing of a service. Read is nil then. It is for people.
	Refused string `prose:"yes"`

	Read func(p *Part) Reading
}

// Kinds is a list of kinds with the search for their hints, which is made once and serves any
// number of texts.
type Kinds struct {
	all       []*Kind
	hints     *Words
	of        []int   // the kind of each hint
	always    []bool  // the kind has no hints
	prompted  []*Kind // those that may ask what the prompt or the names of files say
	scattered *Kinds  // those that stand in logs; nil: this is that list
}

// NewKinds makes the list.
func NewKinds(all []*Kind) *Kinds {
	k := newKinds(all)
	k.scattered = newKinds(slices.DeleteFunc(slices.Clone(all), func(k *Kind) bool { return !k.Scattered }))
	return k
}

func newKinds(all []*Kind) *Kinds {
	t := &Kinds{all: all, always: make([]bool, len(all))}
	var hints []string
	for i, k := range all {
		t.always[i] = len(k.Hints) == 0
		for _, h := range k.Hints {
			hints = append(hints, h)
			t.of = append(t.of, i)
		}
		if k.Prompted {
			t.prompted = append(t.prompted, k)
		}
	}
	t.hints = NewWords(hints)
	return t
}

// Part is the lines of one kind, as they stood in one file.
type Part struct {
	Kind    *Kind
	File    string // "" for standard input; a member of an archive is ARCHIVE:MEMBER
	Lines   []paste.Line
	Command string // the command of the prompt above it; "": none
	Prompt  string // that prompt's line as it stood, which may show a folder
	Script  string // the bpftrace program that it ran, where the paste shows it; "": it does not
	Slept   string // the command of the prompt before that one, where it only slept; "": it did not
	Title   string // the line of prose right above it, as people write "after the restart:"; "": none

	// Every is how many seconds a script above it sleeps between two runs of Command, which has no
	// prompt then; 0: no script says, or it does more in between.
	Every float64

	// What prompts, commands and prefixes of its lines say of where it is from.
	Host string // "": not said
	Path string // the file that a command printed or a grep named; "": not said
	PID  int    // 0: not said

	// Quota is how many CPUs a command above it, or its own, gives; 0: none says.
	Quota float64

	// Session is the command that started the tool at whose own prompt Command was typed, and what
	// was typed there before: "go tool pprof -alloc_space heap.pb.gz; top; sample_index=cpu".
	// Above is the last part of this kind in that session. "" and nil: the prompt is a shell's.
	Session string
	Above   *Part

	Left int // lines of this part that were left out, since a long file is not read whole

	own bool // Lines was copied
}

// First and Last are where the part stands in its file.
func (p *Part) First() int { return p.Lines[0].N }

// Last is the number of the part's last line.
func (p *Part) Last() int { return p.Lines[len(p.Lines)-1].N }
