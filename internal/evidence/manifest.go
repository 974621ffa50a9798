package evidence

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Schema is the newest layout of a case that this program writes and reads.
const Schema = 1

// Moment is an instant on both clocks of the recording machine, read together.
type Moment struct {
	UTC    time.Time `json:"utc"`
	MonoNS int64     `json:"mono_ns"` // CLOCK_MONOTONIC; 0 where the system has none
}

// Manifest says how a case came to be. It holds no credentials. It holds a few variables of the
// target's environment, those that steer runtimes, and its arguments only if they were asked for.
type Manifest struct {
	Schema     int         `json:"schema"`
	Whystall   string      `json:"whystall"` // version of the recorder
	Begun      Moment      `json:"begun"`
	Ended      Moment      `json:"ended"` // zero while recording, and if the recorder was killed
	Stopped    string      `json:"stopped,omitempty"`
	Unasked    bool        `json:"unasked,omitempty"` // kept though nobody asked for it: newer ones push it out
	Host       Host        `json:"host"`              // the recorder's machine, which need not be the target's
	Target     Target      `json:"target"`
	AskedNS    int64       `json:"asked_ns"` // how long was to be recorded
	Collectors []Collector `json:"collectors"`
	Requests   []Request   `json:"requests"`
	Recorder   *Cost       `json:"recorder,omitempty"` // the whole recorder while local collectors ran
	Toll       *Toll       `json:"toll,omitempty"`     // what was counted of the target meanwhile

	Doubts []string `json:"-" prose:"yes"` // what was read and cannot be true, in words; it was removed
}

// Host is the part of the recording machine that is harmless to hand over.
type Host struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`

	Kernel string `json:"kernel,omitempty"` // release
}

// Target is what was recorded.
type Target struct {
	Service

	// For a process on the recording machine. What could not be read is zero.
	NSPID   int               `json:"ns_pid,omitempty"` // in its innermost pid namespace
	Comm    string            `json:"comm,omitempty"`
	Exe     string            `json:"exe,omitempty"`
	Args    []string          `json:"args,omitempty"` // only when asked for
	BuildID string            `json:"build_id,omitempty"`
	Started int64             `json:"started_mono_ns,omitempty"`
	Env     map[string]string `json:"env,omitempty"` // only names in the allow-list
}

// Service is the part of a target that detectors go by and reports show. It has no path, no
// argument and no environment.
type Service struct {
	PID       int    `json:"pid,omitempty"`
	URL       string `json:"url,omitempty"`        // of its pprof pages, without user, password, query
	GoVersion string `json:"go_version,omitempty"` // from the binary
	Runtime   string `json:"runtime,omitempty"`    // "go", "jvm", "python", "ruby", "node"; "" native or not known
	Container bool   `json:"container,omitempty"`  // its pid, mount or cgroup namespace is not the recorder's
	// Ended says what is known of a process that exited, ran another program or was stopped
	// meanwhile.
	Ended  string `json:"ended,omitempty" prose:"yes"`
	Halted *Halt  `json:"halted,omitempty"` // nil: not halted
}

// Halt says that a process was stopped as a whole: none of its threads was allowed to run.
type Halt struct {
	NS int64  `json:"ns"`             // while recording, to within some 100 ms
	By string `json:"by" prose:"yes"` // in words: a signal, a debugger, the freezer of its cgroup
}

// State is a collector's outcome.
type State string

// A collector's outcomes.
const (
	Ready       State = "ready"       // it brought everything
	Unavailable State = "unavailable" // the target does not have it; Why says more
	Broken      State = "broken"      // it brought a part or nothing; Why says more
)

// Collector is the outcome of one collector.
type Collector struct {
	Name    string   `json:"name"`
	State   State    `json:"state"`
	Why     string   `json:"why,omitempty" prose:"yes"`
	Members []string `json:"members,omitempty"`
	Cost    *Cost    `json:"cost,omitempty"` // only if it records all the time
}

// Cost is what a collector used of the machine, as far as that can be known.
type Cost struct {
	CPUNS    int64  `json:"cpu_ns"`              // its own threads
	OnceNS   int64  `json:"once_ns,omitempty"`   // the part of CPUNS for its start and its end, however long it recorded
	KernelNS int64  `json:"kernel_ns,omitempty"` // its programs in the kernel, which run in the time of the threads that they watch
	TargetNS int64  `json:"target_ns,omitempty"` // CPU time of the target meanwhile
	Records  int64  `json:"records,omitempty"`
	Lost     int64  `json:"lost,omitempty"`
	Lowered  string `json:"lowered,omitempty" prose:"yes"` // which detail was given up, and when

	// The quota that limited the recorder and the target together: what one used, the other lacked.
	// "" if there was none.
	SharedQuota string  `json:"shared_quota,omitempty"` // its cgroup
	QuotaCPUs   float64 `json:"quota_cpus,omitempty"`
}

// Request is one of our own requests to the target. A pause during it may be our doing.
type Request struct {
	Member string `json:"member"` // what it brought
	Path   string `json:"path"`   // without query
	Sent   Moment `json:"sent"`
	First  Moment `json:"first,omitzero"`             // first byte of the body; zero: none came
	Ended  Moment `json:"ended,omitzero"`             // zero: it was under way when the recorder was killed
	Bytes  int64  `json:"bytes"`                      // of the body
	Lost   string `json:"lost,omitempty" prose:"yes"` // why the body is not whole
	Status int    `json:"status,omitempty"`           // HTTP status; 0: no answer
}

// Lost says what is missing from a member, "" if it is whole.
func (m *Manifest) Lost(member string) string {
	for _, r := range m.Requests {
		if r.Member == member && r.Lost != "" {
			return r.Lost
		}
	}
	return ""
}

// RequestFor returns the request that brought a member.
func (m *Manifest) RequestFor(member string) (Request, bool) {
	for _, r := range m.Requests {
		if r.Member == member {
			return r, true
		}
	}
	return Request{}, false
}

// WallOffset is what must be added to a time of the trace to get ns of the Unix epoch. It is for
// traces without wall-clock snapshots. start is the trace's first time. sameClock reports whether
// the trace's clock is the recorder's own: then the offset is exact; otherwise it is off by the
// time that the request took on the network. ok is false if nothing is known.
func (m *Manifest) WallOffset(start int64, monotonic bool) (offset int64, sameClock, ok bool) {
	r, found := m.RequestFor(TraceMember)
	if !found || r.Sent.UTC.IsZero() {
		return 0, false, false
	}
	// Two machines' monotonic clocks differ by their uptimes. So a start that lies within the
	// request is on the same clock, for all practical purposes.
	end := r.Ended.MonoNS
	if end == 0 {
		end = r.Sent.MonoNS + int64(time.Minute)
	}
	if monotonic && r.Sent.MonoNS != 0 && start >= r.Sent.MonoNS && start <= end {
		return r.Sent.UTC.UnixNano() - r.Sent.MonoNS, true, true
	}
	return r.Sent.UTC.UnixNano() - start, false, true
}

// ParseManifest reads a manifest. A newer layout is an error; unknown fields are left out.
func ParseManifest(b []byte) (*Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("read manifest.json: %w", err)
	}
	if m.Schema < 1 {
		return nil, errors.New("read manifest.json: no schema version: this is not a case")
	}
	if m.Schema > Schema {
		return nil, fmt.Errorf("read manifest.json: made by whystall %.40q with schema %d, this one reads up to %d: use a newer whystall", m.Whystall, m.Schema, Schema)
	}
	// A manifest may have 16 MiB; what a report prints of it is bounded here.
	if len(m.Requests) > maxMembers || len(m.Collectors) > maxMembers {
		return nil, fmt.Errorf("read manifest.json: lists %d requests and %d collectors, a case at most %d", len(m.Requests), len(m.Collectors), maxMembers)
	}
	t := &m.Target
	for _, s := range []*string{&m.Whystall, &m.Stopped, &m.Host.Kernel, &t.URL, &t.Comm, &t.Exe,
		&t.Runtime, &t.GoVersion, &t.BuildID, &t.Ended} {
		clip(s)
	}
	if t.Halted != nil {
		clip(&t.Halted.By)
	}
	if len(t.Args) > maxMembers || len(t.Env) > maxMembers {
		return nil, fmt.Errorf("read manifest.json: the target has %d arguments and %d variables, a case at most %d", len(t.Args), len(t.Env), maxMembers)
	}
	for i := range t.Args {
		clip(&t.Args[i])
	}
	for k, v := range t.Env {
		clip(&v)
		t.Env[k] = v
	}
	for i := range m.Requests {
		r := &m.Requests[i]
		clip(&r.Member)
		clip(&r.Path)
		clip(&r.Lost)
	}
	for i := range m.Collectors {
		clip(&m.Collectors[i].Name)
		clip(&m.Collectors[i].Why)
		if c := m.Collectors[i].Cost; c != nil {
			clip(&c.Lowered)
		}
	}
	m.doubt()
	return &m, nil
}

const maxWords = 500

func clip(s *string) {
	if len(*s) > maxWords {
		*s = strings.ToValidUTF8((*s)[:maxWords], "") + "…"
	}
}
