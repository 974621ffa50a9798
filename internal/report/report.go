package report

import (
	"time"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/toll"
)

// SchemaVersion is the version of the JSON. It grows when a field goes or changes its meaning; new
// fields do not count.
const SchemaVersion = 1

// Report is everything that is printed, in the shape of the JSON, which schema.json describes.
// Types embed those of account and evidence, whose tags are the JSON's names, and add what the JSON
// shapes otherwise: UTC times, shares, lists by kind. Strings from the input are in it as they
// were. Each renderer makes them safe for its own kind of reader.
type Report struct {
	Schema    int       `json:"schema"`
	Target    Target    `json:"target"`
	Recording Recording `json:"recording"`
	Inputs    []Input   `json:"inputs"`
	Requests  Requests  `json:"requests"`
	Ledger    Ledger    `json:"ledger"`
	// Findings are the roots in their order, each followed by its mechanisms.
	Findings    []finding.Finding    `json:"findings"`
	RuledOut    []finding.RuledOut   `json:"ruled_out"`
	NotChecked  []finding.NotChecked `json:"not_checked"`
	Rest        *Rest                `json:"rest"` // null where no large part has no cause
	NotLookedAt NotLookedAt          `json:"not_looked_into"`
	Gaps        []Gap                `json:"gaps"`
	Lacks       []string             `json:"lacks" prose:"yes"`  // what the trace's format does not record
	Errors      []string             `json:"errors" prose:"yes"` // faults of whystall itself: sums that do not add up
	Native      bool                 `json:"native"`             // requests are those of threads: there is no Go trace
	Tiers       []Tier               `json:"tiers"`              // what recorded; empty where that is not known
	Unseen      []string             `json:"unseen" prose:"yes"` // what was not seen, and what that costs in certainty
	Kernel      *Kernel              `json:"kernel"`             // null without the kernel's records
	Attached    *Attached            `json:"attached,omitempty"` // nil where no text of a known kind was attached
	Cost        Cost                 `json:"cost"`
	Locks       []account.Lock       `json:"-"` // of Go
	Series      account.Series       `json:"-"` // requests over time, and what stopped the process

	ledger *account.Result // for the page, which shows more; nil without one
}

// Account is the accounts that the report was made of, nil without any. What a report leaves out is
// in it, for the files of other tools.
func (r *Report) Account() *account.Result { return r.ledger }

// Rest is the largest account of the slow requests' time that no finding explains.
type Rest struct {
	Account Account `json:"account"`  // NS and Share: the part without a finding
	UsualNS int64   `json:"usual_ns"` // of the same account in the median column, per request
}

// Target is the service that was looked at, as far as the recording says.
type Target struct {
	Name string `json:"name,omitempty"`
	evidence.Service
	Host       string `json:"host,omitempty"`
	GOMAXPROCS int    `json:"gomaxprocs,omitempty"`
	CPUs       int    `json:"cpus,omitempty"` // 0: not known
}

// Recording says when it was, and by which clock.
type Recording struct {
	BeginUTC    *string `json:"begin_utc"` // RFC 3339 with ns; null without a wall clock
	EndUTC      *string `json:"end_utc"`
	BeginNS     int64   `json:"begin_ns"`
	EndNS       int64   `json:"end_ns"`
	Clock       string  `json:"clock"`        // of all ..._ns moments: "monotonic" (CLOCK_MONOTONIC) or "trace start"
	TraceFormat string  `json:"trace_format"` // "go1.26"; "" without a trace
}

// Input is one file that was given, or one member of a case.
type Input struct {
	Name  string `json:"name"`
	Kind  string `json:"kind,omitempty"`              // "execution trace", "mutex profile"
	Error string `json:"error,omitempty" prose:"yes"` // why it could not be used
}

// Requests says which units of work were found.
type Requests struct {
	account.Requests
	Groups     []Group   `json:"groups"`
	Slowest    []Request `json:"slowest"`
	SlowSelect string    `json:"slow_are" prose:"yes"` // in words: which requests count as slow
}

// Group is the requests with one entry function and kind.
type Group struct {
	account.Group
	LeftOutCount int64 `json:"left_out"` // of all reasons
}

// Request is one of the slowest.
type Request struct {
	UTC *string `json:"utc"` // of its start; null without a wall clock
	account.Request
	OffsetNS int64     `json:"offset_ns"` // of its start from the recording's
	WallNS   int64     `json:"wall_ns"`
	Accounts []Account `json:"accounts"`
}

// Ledger is the columns of time and the capacity.
type Ledger struct {
	Slow     Column   `json:"slow"`
	Median   Column   `json:"median"`
	All      Column   `json:"all"`
	Capacity Capacity `json:"capacity"`
	CPUs     *CPUs    `json:"cpus"`   // null without the kernel's records
	Memory   *Memory  `json:"memory"` // null where the target's memory was not read
	// Profiled is the process' CPU time by its own CPU profile, where no samples of the kernel's
	// records divide it.
	Profiled *account.OnCPU `json:"profiled,omitempty"`
}

// Column is one ledger; its accounts add up to WallNS exactly.
type Column struct {
	Requests int       `json:"requests"`
	WallNS   int64     `json:"wall_ns"`
	Accounts []Account `json:"accounts"`
	// OnCPU divides what passed on CPUs, whoever the actor is; nil without samples.
	OnCPU *account.OnCPU `json:"on_cpu,omitempty"`
}

// Account is time with one cause.
type Account struct {
	account.Account
	Share float64     `json:"share"` // of the column's wall, 0..1
	Tags  AccountTags `json:"tags,omitzero"`
}

// AccountTags are parts of an account that have a property; they overlap.
type AccountTags struct {
	account.Tags
	TurnNS int64 `json:"others_turn_ns,omitempty"` // while others had their turn
}

// IsZero reports whether the JSON would show no tag.
func (t AccountTags) IsZero() bool {
	return t.SilenceNS|t.GCNS|t.STWNS|t.BarrierNS|t.MeasuredNS|t.SocketNS|t.DueNS|t.InferredNS|t.HandoffNS|t.TurnNS == 0
}

// Capacity is what the Ps did: its accounts add up to TotalNS exactly.
type Capacity struct {
	account.Capacity
	Accounts []CapacityRow `json:"accounts"`
}

// CapacityRow is one account of the capacity.
type CapacityRow struct {
	Cause string  `json:"cause"`
	NS    int64   `json:"ns"`
	Share float64 `json:"share"`
}

// NotLookedAt is time of slow requests that is booked to what the runtime calls it. No evidence
// shows what happened inside.
type NotLookedAt struct {
	RunningNS int64            `json:"running_ns"`
	SyscallNS int64            `json:"syscall_ns"`
	Silences  account.Silences `json:"silences"`
}

// Gap is what was lost, with its time where that is known.
type Gap struct {
	BeginNS  int64   `json:"begin_ns"`
	EndNS    int64   `json:"end_ns"`
	BeginUTC *string `json:"begin_utc"`
	Source   string  `json:"source,omitempty"`
	Reason   string  `json:"reason" prose:"yes"`
}

// Cost is what whystall itself took.
type Cost struct {
	ExplainNS    int64    `json:"explain_ns"` // wall time of explaining
	ExplainCPUNS int64    `json:"explain_cpu_ns"`
	MaxHeap      int64    `json:"max_heap_bytes"`
	Bytes        int64    `json:"trace_bytes"`
	Events       int64    `json:"trace_events"`
	Recorder     []string `json:"recorder"` // what recording cost and lost, in words

	Recording *evidence.Cost `json:"recording,omitempty"` // the whole recorder, while it recorded a process

	// Service is what the recording cost the service, measured in this very recording; nil where it
	// was not measured. Eased is what was left out, thinned or shortened to spare the service.
	Service *toll.Bill        `json:"service,omitempty"`
	Eased   []evidence.Easing `json:"eased,omitempty"`
}

// wallClock turns moments of a recording into UTC.
type wallClock struct {
	known  bool
	offset int64 // add to a moment for nanoseconds of the Unix epoch
}

// utc returns a moment in RFC 3339, nil without a wall clock.
func (w wallClock) utc(ns int64) *string {
	if !w.known {
		return nil
	}
	s := time.Unix(0, ns+w.offset).UTC().Format("2006-01-02T15:04:05.000000000Z")
	return &s
}
