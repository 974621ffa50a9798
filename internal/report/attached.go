package report

// Attached is what follows from text that was attached: outputs of tools, lines of logs, dumps.
type Attached struct {
	State   string            `json:"state"` // "healthy", "cannot tell" or "ill": the exit status follows from it
	Parts   []AttachedPart    `json:"parts"`
	Causes  []AttachedCause   `json:"causes"` // findings first; each followed by its mechanisms
	Unknown []AttachedUnknown `json:"unknown"`
	Notes   []string          `json:"notes" prose:"yes"` // which parts are before and after, and which are two places
	Next    []AttachedNext    `json:"next"`
}

// AttachedPart is a range of lines of one kind, and what it says.
type AttachedPart struct {
	Where
	Kind      string   `json:"kind"`
	State     string   `json:"state"` // or "context", which is no word on health
	Group     int      `json:"group"` // parts of one process and moment have the same number
	Above     string   `json:"above,omitempty" prose:"yes"`
	Command   string   `json:"command,omitempty"`
	Host      string   `json:"host,omitempty"`
	Path      string   `json:"path,omitempty"`
	PID       int      `json:"pid,omitempty"`
	Title     string   `json:"title" prose:"yes"`
	Figures   []string `json:"figures" prose:"yes"`
	Means     string   `json:"means" prose:"yes"`
	Not       string   `json:"does_not_say" prose:"yes"`
	Flaws     []string `json:"flaws" prose:"yes"`
	SinceBoot bool     `json:"since_boot"` // counters since boot or start: no rate follows
	Glance    bool     `json:"glance"`     // one sample of a state that changes
	Facts     []Fact   `json:"facts"`
}

// Fact is a number of a part.
type Fact struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Of    string  `json:"of,omitempty"`
}

// Where is a range of lines of a file; member of an archive: ARCHIVE:MEMBER.
type Where struct {
	File  string `json:"file"`
	First int    `json:"first_line"`
	Last  int    `json:"last_line"`
}

// AttachedCause is what the parts say of one cause.
type AttachedCause struct {
	Cause      string   `json:"cause"` // "" where the time is outside
	Grade      string   `json:"grade"` // "found", "candidate", "outside", "risk"
	Confidence string   `json:"confidence,omitempty"`
	Share      float64  `json:"share"`
	BecauseOf  string   `json:"because_of"`
	Title      string   `json:"title" prose:"yes"`
	Proof      []string `json:"proof" prose:"yes"`
	Remedy     string   `json:"remedy,omitempty" prose:"yes"`
	From       []Where  `json:"from"`
}

// AttachedUnknown is a range that nothing knows.
type AttachedUnknown struct {
	Where
	Words  bool   `json:"words"`            // a person wrote it
	Beside bool   `json:"beside,omitempty"` // it is the rest of a part that it stands right beside
	Is     string `json:"is,omitempty"`     // what it is: words, source code, configuration, versions; "": an output
	Guess  string `json:"guess,omitempty"`  // the kind that it resembles most
}

// AttachedNext is a command that would decide.
type AttachedNext struct {
	Command string `json:"command" prose:"yes"`
	Why     string `json:"why" prose:"yes"`
}

// States and grades, as the JSON has them.
const (
	AttachedHealthy = "healthy"
	AttachedContext = "context" // of a part only
	AttachedUnsure  = "cannot tell"
	AttachedIll     = "ill"

	GradeFound     = "found"
	GradeCandidate = "candidate"
	GradeOutside   = "outside"
	GradeRisk      = "risk"
)

// AttachedOnly reports whether what was attached is all there is: neither a trace nor the kernel's
// records were read.
func (r *Report) AttachedOnly() bool {
	return r.Attached != nil && r.Recording.TraceFormat == "" && r.Kernel == nil && !r.Native
}
