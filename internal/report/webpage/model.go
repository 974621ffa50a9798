package webpage

import "reflect"

// Model is what the page shows. Moments are ns from the start of the recording, so that a browser's
// numbers hold them. Strings are as the input had them: Write marks them all. web/src/model.ts has
// the same shapes.
type Model struct {
	Title    string    `json:"title"`
	Facts    []Fact    `json:"facts"`  // what was looked at, and when
	Alerts   []Text    `json:"alerts"` // what stands above the verdict
	Verdict  Verdict   `json:"verdict"`
	Findings []Finding `json:"findings"`
	Requests Requests  `json:"requests"`
	Ledger   *Ledger   `json:"ledger"`  // null without slow requests
	Latency  *Latency  `json:"latency"` // null where it is not known when requests were
	Slowest  []Request `json:"slowest"`
	Stories  []Story   `json:"stories"`
	Sketches Sketches  `json:"sketches"` // every slow request that is a dot, the longest first
	Frames   []Frame   `json:"frames"`   // of the stories' stacks
	Pauses   Pauses    `json:"pauses"`
	Waits    Waits     `json:"waits"`
	Locks    []Lock    `json:"locks"`
	Curves   []Curve   `json:"curves"`
	Uses     []Use     `json:"uses"`
	Threads  Threads   `json:"threads"`

	RuledOut   []Text   `json:"ruledOut"`
	NotChecked []Text   `json:"notChecked"`
	Looked     []Text   `json:"looked"`
	Unseen     []string `json:"unseen" prose:"yes"`
	Lost       []string `json:"lost" prose:"yes"`
	Cost       Cost     `json:"cost"`

	Attached *Attached `json:"attached"` // null where nothing was attached
}

// Fact is a word and what it is here.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Text is a title, or a name, and what is said of it.
type Text struct {
	Title string `json:"title"`
	Text  string `json:"text" prose:"yes"`
}

// Kind of a verdict.
type Kind string

// Kinds of verdicts.
const (
	Found   Kind = "found"
	Nothing Kind = "nothing"
	Blind   Kind = "blind" // too little was seen for "nothing found" to mean something
)

// Verdict is the answer.
type Verdict struct {
	Kind  Kind     `json:"kind"`
	Title string   `json:"title" prose:"yes"`
	Text  []string `json:"text" prose:"yes"`
}

// Finding is one cause.
type Finding struct {
	Number     int        `json:"number"` // of a root; 0 for a mechanism of the root above it
	Cause      string     `json:"cause"`
	Title      string     `json:"title" prose:"yes"`
	Amount     string     `json:"amount" prose:"yes"`
	Share      float64    `json:"share"`
	Confidence string     `json:"confidence"`
	Sure       string     `json:"sure" prose:"yes"`
	BecauseOf  string     `json:"becauseOf"`
	Summary    string     `json:"summary" prose:"yes"`
	Evidence   []Evidence `json:"evidence"`
	Remedy     []string   `json:"remedy" prose:"yes"`
	Verify     string     `json:"verify" prose:"yes"`
}

// Evidence is one line of proof and its source.
type Evidence struct {
	Text   string `json:"text" prose:"yes"`
	Source string `json:"source" prose:"yes"`
}

// Requests says which units of work there were.
type Requests struct {
	Count   int64   `json:"count"`
	Select  string  `json:"select" prose:"yes"`
	Groups  []Group `json:"groups"`
	LeftOut string  `json:"leftOut" prose:"yes"`
}

// Group is the requests of one entry.
type Group struct {
	Entry string `json:"entry"`
	Kind  string `json:"kind"`
	Doubt string `json:"doubt" prose:"yes"`
	Count int64  `json:"count"`
	P50   int64  `json:"p50"`
	P99   int64  `json:"p99"`
	Max   int64  `json:"max"`
	Slow  int    `json:"slow"`
}

// Ledger is the two columns as rows. Figures are of one request.
type Ledger struct {
	Rows   []Row     `json:"rows"`
	Unit   string    `json:"unit"`
	Slow   int       `json:"slow"`  // how many requests
	Usual  int       `json:"usual"` // how many in the middle of their group
	SlowNS int64     `json:"slowNs"`
	UsedNS int64     `json:"usualNs"`
	Total  [2]string `json:"total"` // both sums, printed
	Note   string    `json:"note" prose:"yes"`
}

// Row is one account, or several that share a row.
type Row struct {
	Leaf    string `json:"leaf"` // "other" and "unexplained" too
	Label   string `json:"label" prose:"yes"`
	Share   string `json:"share"` // of the slow requests' time, printed: shares add up
	Slow    string `json:"slow"`
	Usual   string `json:"usual"`
	SlowNS  int64  `json:"slowNs"`
	UsualNS int64  `json:"usualNs"`
	Largest int    `json:"largest"` // in how many slow requests it is the largest part
	More    []Fact `json:"more"`    // the account in full
}

// Request is one of the slowest.
type Request struct {
	At    int64  `json:"at"`
	Wall  int64  `json:"wall"`
	When  string `json:"when"`
	Name  string `json:"name"`
	Entry string `json:"entry"`
	G     int64  `json:"g"`
	Why   string `json:"why" prose:"yes"`
	Parts []Part `json:"parts"`
}

// Part is a part of a request's time.
type Part struct {
	Row   int    `json:"row"` // of the ledger; -1: none
	Label string `json:"label" prose:"yes"`
	NS    int64  `json:"ns"`
}

// Latency is requests over time, with what stopped or held up the process meanwhile.
type Latency struct {
	Dots     Dots      `json:"dots"`
	Whole    bool      `json:"whole"` // dots are all requests; else the slow ones, and density has all
	NotShown int64     `json:"notShown"`
	Entries  []string  `json:"entries"`
	Largest  []Largest `json:"largest"`
	Density  Density   `json:"density"`
	Bands    []Band    `json:"bands"`
	Levels   []Level   `json:"levels"`
	Length   int64     `json:"length"` // of the recording
}

// Dots are requests as columns, by their start.
type Dots struct {
	At      []int64 `json:"at"`
	NS      []int64 `json:"ns"`
	Actor   []int64 `json:"actor"`
	Entry   []int   `json:"entry"`
	Largest []int   `json:"largest"` // in Latency.Largest
	Slow    []int   `json:"slow"`    // 1: it is
}

// Largest is an account that is the largest of a request.
type Largest struct {
	Row   int    `json:"row"` // of the ledger; -1: the request was not explained, Leaf is all that is known
	Leaf  string `json:"leaf"`
	Label string `json:"label" prose:"yes"`
}

// Density is how many requests of which length started when: column, from, below, how many.
type Density struct {
	Begin int64      `json:"begin"`
	Width int64      `json:"width"`
	Cells [][4]int64 `json:"cells"`
}

// Band is a stretch in which something held for the process.
type Band struct {
	Kind   string `json:"kind"`
	Begin  int64  `json:"begin"`
	End    int64  `json:"end"`
	Detail string `json:"detail"`
	Ours   bool   `json:"ours"` // the recording itself caused it
}

// Level is a share of time by time: begin and end of each reading, and the share.
type Level struct {
	Name   string       `json:"name"`
	Points [][3]float64 `json:"points"`
}

// Story is a slow request in full. Its moments are ns from the request's start.
type Story struct {
	Request int      `json:"request"` // in Model.Slowest; -1: it has a Dot
	Dot     int      `json:"dot"`     // in Latency.Dots
	Length  int64    `json:"length"`
	Names   []string `json:"names"`  // of numbers below; 0 is none
	Leaves  []string `json:"leaves"` // likewise, from 0 on
	Stacks  [][]int  `json:"stacks"` // likewise; 0 is none. Frames are numbers in Model.Frames
	// Chain is where the time went: since the end of the one before, length, leaf, depth, lane (-1:
	// none), site, detail, stack, and how many short ones it stands for. Zeros at the end are left
	// out.
	Chain [][]int64 `json:"chain"`
	Lanes []Lane    `json:"lanes"`
	Cut   bool      `json:"cut"`
}

// Sketches are slow requests in short: what their time consists of and their chains. What they
// share is numbered. The last five lists have one field for each.
type Sketches struct {
	Accounts []Largest `json:"accounts"`
	Lanes    []Lane    `json:"lanes"` // without spans
	Names    []string  `json:"names"`
	Leaves   []string  `json:"leaves"`
	Stacks   [][]int   `json:"stacks"` // as of a Story
	Titles   []string  `json:"titles"`
	Left     int       `json:"left"` // slow requests of which nothing is kept

	Dots   []int       `json:"dots"` // in Latency.Dots
	Title  []int       `json:"title"`
	When   []string    `json:"when"`
	Parts  [][]int64   `json:"parts"`  // an account and its time, the next account and its, the largest first
	Chains [][][]int64 `json:"chains"` // as of a Story
}

// Frame is a function of a stack and where it stands.
type Frame struct {
	Func string `json:"f"`
	At   string `json:"at"`
}

// Lane is a goroutine, a thread or a CPU over time.
type Lane struct {
	Kind string `json:"kind"`
	ID   int64  `json:"id"`
	Name string `json:"name"`
	// Spans have the time since the end of the one before, length, leaf, detail, by, on, stack, and
	// how many short ones they stand for, likewise.
	Spans [][]int64 `json:"spans"`
}

// Pauses are the long stop-the-worlds and barriers, hop by hop.
type Pauses struct {
	Which string  `json:"which" prose:"yes"`
	List  []Pause `json:"list"`
	Fair  string  `json:"fair" prose:"yes"`
}

// Pause is one of them.
type Pause struct {
	Words string   `json:"words" prose:"yes"`
	Spent []Amount `json:"spent"`
	Hops  []string `json:"hops" prose:"yes"`
}

// Amount is time with a name.
type Amount struct {
	Name string `json:"name"`
	Leaf string `json:"leaf"` // what it is coloured by; another word, if it is no leaf
	NS   int64  `json:"ns"`
}

// Waits is a tree: its first node is the root, and a child comes after its parent.
type Waits struct {
	Parent []int    `json:"parent"`
	Name   []string `json:"name"`
	Leaf   []string `json:"leaf"`
	NS     []int64  `json:"ns"`
}

// Lock is a lock with who waited for it and who had it.
type Lock struct {
	Name     string   `json:"name"`
	SlowNS   int64    `json:"slowNs"` // of slow requests
	Waits    int64    `json:"waits"`
	WaitNS   int64    `json:"waitNs"`
	MaxQueue int      `json:"maxQueue"`
	Holders  []Amount `json:"holders"`
	Doing    []Amount `json:"doing"` // what holders did meanwhile
	Stack    []Frame  `json:"stack"` // the most frequent of waiters
}

// Curve is a quantity over time.
type Curve struct {
	Name   string       `json:"name"`
	Bytes  bool         `json:"bytes"`
	Points [][2]float64 `json:"points"` // since when, and how much
}

// Use is what something was used for, as a bar.
type Use struct {
	Title string    `json:"title"`
	Text  string    `json:"text" prose:"yes"`
	Parts []UsePart `json:"parts"`
}

// UsePart is a part of it, with its amount as it is printed.
type UsePart struct {
	Name   string  `json:"name"`
	Share  float64 `json:"share"`
	Amount string  `json:"amount"`
}

// Threads are the busiest threads of the process.
type Threads struct {
	Text string   `json:"text" prose:"yes"`
	List []Thread `json:"list"`
}

// Thread is one of them.
type Thread struct {
	TID       uint32 `json:"tid"`
	Name      string `json:"name"`
	On        int64  `json:"on"`
	Queued    int64  `json:"queued"`
	Throttled int64  `json:"throttled"`
	Blocked   int64  `json:"blocked"`
}

// Cost is what recording and explaining took.
type Cost struct {
	Service string     `json:"service" prose:"yes"`
	Stages  [][]string `json:"stages"` // a table; its first row has the names
	Eased   []string   `json:"eased" prose:"yes"`
	Own     string     `json:"own" prose:"yes"`
}

// Attached is what hung on a ticket, part by part.
type Attached struct {
	Parts   []AttachedPart `json:"parts"`
	Notes   []string       `json:"notes" prose:"yes"`
	Unknown []string       `json:"unknown" prose:"yes"`
	Next    []Text         `json:"next"` // commands that would decide, and why
}

// AttachedPart is a range of lines of one kind.
type AttachedPart struct {
	Place   string   `json:"place"`
	Title   string   `json:"title" prose:"yes"`
	State   string   `json:"state"`
	Figures []string `json:"figures" prose:"yes"`
	Means   string   `json:"means" prose:"yes"`
	Not     string   `json:"not" prose:"yes"` // what it does not say
	Flaws   []string `json:"flaws" prose:"yes"`
}

// mark marks every string below v, and makes every list a list.
func mark(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			mark(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			mark(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		if scalar(v.Type().Elem().Kind()) {
			return
		}
		for i := range v.Len() {
			mark(v.Index(i))
		}
	case reflect.String:
		v.SetString(Marked(v.String()))
	}
}

func scalar(k reflect.Kind) bool { return k >= reflect.Bool && k <= reflect.Float64 }
