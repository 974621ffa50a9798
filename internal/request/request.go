package request

import (
	"regexp"

	"github.com/whystall/whystall/exectrace"
)

// Source resolves what events name by id. An [exectrace.Trace] is one.
type Source interface {
	Frames(dst []exectrace.Frame, id exectrace.StackID) []exectrace.Frame
	String(id exectrace.StringID) string
}

// Options of a Finder. The zero value is right for most.
type Options struct {
	// Entry selects the groups whose entry function, or requests whose name, matches. It selects
	// unknown loops too, which are not listed beside known servers otherwise. Nil: all.
	Entry *regexp.Regexp
}

// GroupID is the index of a group in [Finder.Groups]. NoGroup is none.
type GroupID uint32

// NoGroup is the group of what is not inside any activation.
const NoGroup = ^GroupID(0)

// NameID names an activation, see [Finder.Name]. 0 is no name.
type NameID uint32

// Activation is one unit of work: G was busy with it during [Begin, End). Those of one goroutine
// are disjoint and come in order.
type Activation struct {
	G          exectrace.GoID
	Begin, End exectrace.Time
	// PrevEnd, if after Begin, is the end of what the goroutine still had to do for the request
	// before: no wait for work lay between the two. The ledger books waits in [Begin, PrevEnd) to
	// "previous request's end".
	PrevEnd exectrace.Time
	Slot    uint32 // of G
	Group   GroupID
	Name    NameID  // handler, task or region, where known
	LeftOut LeftOut // not 0: counted, not to be explained

	// Hops say, for a request that another goroutine than G read, when it was handed on. Such
	// requests of one goroutine may overlap.
	Hops Hops

	// Writes are the write calls seen to its own connection. More than one in a pipelined loop may
	// be several requests.
	Writes uint32
}

// MaxHops is how often a request may be handed on.
const MaxHops = 3

// Hops are when a request was handed on, the first first. The first is from the goroutine that read
// it, the last to the one that the activation names. 0: no more.
type Hops [MaxHops]exectrace.Time

// LeftOut says why an activation is counted and not explained. The length of a stream, for one, is
// its reader's affair.
type LeftOut uint8

const (
	Kept       LeftOut = iota
	Ours               // made by whoever records: pprof and trace handlers
	Hijacked           // the connection was taken over: its end is unknown
	Stream             // writes three times or more, each after a wait of its own
	OpenBegin          // was under way when the trace began
	OpenEnd            // was under way when the trace ended
	Elsewhere          // the task ended on another goroutine, and its own did not wait for that
	Lost               // a Gap of the trace lies inside
	Unfiltered         // does not match Options.Entry
	Futile             // its thread was woken with many others and had nothing to do
	leftOutCount
)

var leftOutText = [leftOutCount]string{"", "whystall's own", "hijacked", "stream", "open at the trace's begin",
	"open at the trace's end", "task ended on another goroutine", "lost events inside",
	"not asked for", "woken with many for nothing"}

func (l LeftOut) String() string { return leftOutText[l%leftOutCount] }

// Kinds of groups, by how their boundaries were found. They are in the JSON of reports.
const (
	KindTask      = "task"
	KindRegion    = "region"
	KindLoop      = "loop"      // from a wait at some place to the next one there
	KindGoroutine = "goroutine" // a goroutine's life

	kindHandedOn = "handed on" // one goroutine reads, another answers
	kindRounds   = "rounds"    // of workers that never wait for work

	// Of threads; package unit finds them.
	KindThread      = "thread" // a thread's life
	KindThreadLoop  = "thread loop"
	KindThreadStart = "thread start" // from a thread's creation to its first wait
)

// Group is the activations with one entry function and kind.
type Group struct {
	Entry    string // entry function: "main.(*Server).serve"
	Kind     string // one of the kinds above, or a server's: "net/http", "http2", "grpc", "fasthttp"
	Name     string // of the task or region, untrusted; else ""
	Boundary string `prose:"yes"` // in words: "from the end of the wait at main.readLoop to the next"
	Count    int64  // complete and kept
	LeftOut  [leftOutCount]int64
	Listed   bool   // to be shown; a group that is not is a background loop or serves the requests
	Doubt    string `prose:"yes"` // what is not in its times, or who is not among them; "" nothing
	Why      string `prose:"yes"` // why it is not listed, or what is uncertain about its boundaries; "" nothing

	entry  uint32
	name   NameID
	wanted uint8 // 1 does not match Options.Entry, 2 does; 0 not tried
}
