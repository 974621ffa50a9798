package fleet

import (
	"time"

	"github.com/whystall/whystall/internal/finding"
)

// SchemaVersion is the version of the JSON.
const SchemaVersion = 1

// Result is what was seen of a fleet, in the shape of the JSON.
type Result struct {
	Schema     int          `json:"schema"`
	Engine     EngineInfo   `json:"engine"`
	At         time.Time    `json:"at"`       // all questions are of this moment
	SinceNS    int64        `json:"since_ns"` // and of so long before it
	Coverage   Coverage     `json:"coverage"` // what can and cannot be seen
	Findings   []Finding    `json:"findings"` // ranked; a mechanism follows its root
	LookAlikes []LookAlike  `json:"look_alikes"`
	RuledOut   []RuledOut   `json:"ruled_out"`
	NotChecked []NotChecked `json:"not_checked"`
	Cost       Cost         `json:"cost"`
	// DryRun lists what would be asked; nothing else is filled then but Coverage.
	DryRun []Question `json:"dry_run,omitempty"`
}

// EngineInfo is who answered.
type EngineInfo struct {
	URL      string   `json:"url"` // without user, password and query
	Name     string   `json:"name"`
	Version  string   `json:"version,omitempty"`
	Warnings []string `json:"warnings" prose:"yes"` // of its answers: what it did not see itself
	Insecure bool     `json:"insecure,omitempty"`   // its certificate was not checked
}

// Finding is one cause at one workload and host group.
type Finding struct {
	Cause      string             `json:"cause"` // a detector's name, or one of Only
	Rule       string             `json:"rule"`
	Scope      Scope              `json:"scope"`
	Title      string             `json:"title" prose:"yes"`
	Confidence finding.Confidence `json:"confidence"`
	Why        string             `json:"why" prose:"yes"` // of the confidence
	BecauseOf  string             `json:"because_of"`      // the cause that it stands under; "" for a root
	Workload   string             `json:"workload"`        // owner, namespace or job
	Group      Labels             `json:"group"`           // what the group has in common
	Ill        int                `json:"ill"`             // members that have it
	Seen       int                `json:"seen"`            // members of the group; 0: not known
	Everywhere Everywhere         `json:"everywhere"`      // of the rule, counted and not listed
	Unit       Unit               `json:"unit"`
	Worst      float64            `json:"worst"`  // of the members' means over the whole time
	Peak       float64            `json:"peak"`   // the largest of the worst member at any time; 0: not known
	Median     float64            `json:"median"` // of the members that are listed
	Peers      Peers              `json:"peers"`  // everybody of this kind
	Lost       float64            `json:"lost"`   // of all listed members, over the whole time; Unit times seconds
	Since      *time.Time         `json:"since"`  // of the last bout; nil: not known
	SinceErrNS int64              `json:"since_error_ns"`
	Earlier    bool               `json:"since_or_earlier"` // it was ill from the first sample on
	Bouts      int                `json:"bouts"`
	Gaps       bool               `json:"gaps"` // the series is not there all the time
	Members    []Member           `json:"members"`
	Evidence   []Evidence         `json:"evidence"`
	Capture    []string           `json:"capture"` // one command a line, worst member
	Query      string             `json:"query"`
}

// Everywhere is how many members of all have a rule's cause, and where most of them are. They were
// counted by the engine: more may be ill than are listed.
type Everywhere struct {
	Ill   int     `json:"ill"`
	Seen  int     `json:"seen"`
	Where []Count `json:"where"`
}

// Member is one host, container, pod or service.
type Member struct {
	Labels    Labels  `json:"labels"`
	Name      string  `json:"name"`
	Value     float64 `json:"value"`
	Yesterday float64 `json:"yesterday"` // the same, a day before; negative: not known
	LastWeek  float64 `json:"last_week"` // likewise
}

// Labels name a series.
type Labels map[string]string

// Peers is how everybody else of the kind fares.
type Peers struct {
	Known  bool    `json:"known"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
}

// Evidence is one figure beside the one that a rule goes by.
type Evidence struct {
	Text  string `json:"text" prose:"yes"`
	Query string `json:"query"`
}

// LookAlike is what looks like a cause and is not, or is another.
type LookAlike struct {
	Cause   string   `json:"cause"` // that it is not
	Text    string   `json:"text" prose:"yes"`
	Count   int      `json:"count"`
	Members []Member `json:"members"`
}

// RuledOut is a cause that was asked for and is not there.
type RuledOut struct {
	Cause string  `json:"cause"`
	Rule  string  `json:"rule"`
	Seen  int     `json:"seen"`  // members that were asked
	Worst float64 `json:"worst"` // the largest figure of any
	Unit  Unit    `json:"unit"`
	Least float64 `json:"least"` // from which on it would be a finding
	// Against is what speaks against it all the same; "": the figure is too small.
	Against Against `json:"against,omitempty"`
}

// Against is what speaks against a cause whose figure is large enough.
type Against string

// What speaks against a cause.
const (
	Disagrees Against = "other counter" // that has to agree
	Brief     Against = "brief"         // the time for which it was so large
)

// NotChecked is a cause that could not be asked for.
type NotChecked struct {
	Cause string `json:"cause"`
	Rule  string `json:"rule"`
	Why   string `json:"why" prose:"yes"`
	// Lacks are metrics that no target has; nil: that is not the reason.
	Lacks []string `json:"lacks,omitempty"`
	// Refused: the engine did not answer. The look is not whole then.
	Refused bool `json:"refused,omitempty"`
}

// Refused is how many rules the engine did not answer.
func (r *Result) Refused() (n int) {
	for _, c := range r.NotChecked {
		if c.Refused {
			n++
		}
	}
	return n
}

// Coverage is what the exporters show.
type Coverage struct {
	Cluster []string `json:"cluster_labels"`
	Jobs    []Job    `json:"jobs"`
	Blind   []Blind  `json:"blind"`
	Failing []Count  `json:"failing_collectors"`
	// Oldest is since when there are samples, where that is later than was asked for, AskedNS ago;
	// nil: there are samples of all that time.
	Oldest  *time.Time `json:"oldest,omitempty"`
	AskedNS int64      `json:"asked_ns,omitempty"`
	// IntervalNS is the longest scrape interval of a job; 0: not known.
	IntervalNS int64 `json:"scrape_interval_ns"`
}

// Job is a scrape job.
type Job struct {
	Labels     Labels  `json:"labels"`
	Targets    int     `json:"targets"`
	Down       int     `json:"down"`
	IntervalNS int64   `json:"scrape_interval_ns"`
	Missed     float64 `json:"missed"` // part of all scrapes that failed
}

// Blind is what cannot be seen, of whom, and what would show it.
type Blind struct {
	What   string   `json:"what" prose:"yes"`
	Rules  []string `json:"rules"` // that want it
	Of     int      `json:"of"`    // targets that could have it
	Lack   int      `json:"lack"`
	Where  []Count  `json:"where"`
	Remedy string   `json:"remedy" prose:"yes"` // the flag or change
}

// Count is a number by labels.
type Count struct {
	Labels Labels `json:"labels"`
	N      int    `json:"count"`
}

// Cost is what asking took.
type Cost struct {
	Questions int   `json:"questions"`
	EngineNS  int64 `json:"waited_ns"` // for answers, all added up
	Samples   int64 `json:"samples"`   // that the engine had to read, estimated
	Bytes     int64 `json:"bytes"`     // of all answers
	Largest   int64 `json:"largest_answer_bytes"`
}

// Question is one query, and why.
type Question struct {
	Query   string `json:"query"`
	Purpose string `json:"purpose" prose:"yes"`
	Samples int64  `json:"samples"` // estimated
}

// Unit is of what a rule's figure is.
type Unit string

// Units. Figures of different units are not added up nor ranked against each other.
const (
	WallShare  Unit = "seconds per second"           // at least one task waited
	Throttled  Unit = "throttled seconds per second" // added up over CPUs
	CPUShare   Unit = "share of CPUs"
	Tasks      Unit = "task-seconds per second"
	Goroutines Unit = "goroutine-seconds per second"
	Share      Unit = "share"
	Memory     Unit = "bytes"
	Events     Unit = "events per second"
	Ratio      Unit = "ratio"
	State      Unit = "state"
)

// Scope is what a rule's members are.
type Scope string

// Scopes.
const (
	Host      Scope = "host"
	Container Scope = "container"
	Service   Scope = "service"
)
