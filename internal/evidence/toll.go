package evidence

// Toll is what the recorder counted of the target while it recorded it, stage by stage, so that a
// reader can say what the recording cost the service. Every count is a difference, over a slice of
// a stage.
type Toll struct {
	Budget     float64   `json:"budget"`               // the share of the target's CPU time that recording might cost
	LimitCPUs  float64   `json:"limit_cpus,omitempty"` // the CPUs that the target may use: its quota, or the machine's
	Quota      bool      `json:"quota,omitempty"`      // LimitCPUs is a quota
	Counters   []Counted `json:"counters"`             // those that could be read in every stage
	Threads    int       `json:"threads,omitempty"`    // whose waits were counted, where not all were
	AllThreads int       `json:"all_threads,omitempty"`
	Stages     []Stage   `json:"stages"`
	Eased      []Easing  `json:"eased,omitempty"` // what was left out, thinned or shortened for the service's sake
}

// StageName says how much of the recorder was at work.
type StageName string

// The stages, in their order. A recording without a process has none.
const (
	StageCounters StageName = "counters" // counters alone
	StageStart    StageName = "start"    // profiles are read, and the kernel's programs attached
	StageKernel   StageName = "kernel"   // the kernel's records
	StageAll      StageName = "all"      // and the trace, and what runs beside it
	StageEnd      StageName = "end"
)

// Stage is a part of the recording.
type Stage struct {
	Name   StageName `json:"name"`
	Slices []Slice   `json:"slices"`
}

// Counted names what was counted.
type Counted string

// Counters.
const (
	CountedCPU       Counted = "cpu"       // CPU time of the target
	CountedQueued    Counted = "queued"    // its threads' waits for a CPU
	CountedThrottled Counted = "throttled" // time for which its cgroup had work and no quota, all CPUs added up
	CountedSwitches  Counted = "switches"  // context switches of its threads
	CountedRead      Counted = "read"      // what it read by read(2) and kin, of sockets and files
	CountedNet       Counted = "net"       // what its network namespace received by IP, of others as well
	CountedIdle      Counted = "idle"      // idle time of the machine's CPUs
)

// Slice is what was counted in a short time.
type Slice struct {
	EndNS       int64 `json:"end_ns"` // CLOCK_MONOTONIC
	NS          int64 `json:"ns"`     // wall time
	CPUNS       int64 `json:"cpu_ns"`
	QueuedNS    int64 `json:"queued_ns"`
	ThrottledNS int64 `json:"throttled_ns"`
	Switches    int64 `json:"switches"`
	ReadBytes   int64 `json:"read_bytes"`
	Reads       int64 `json:"reads"`     // calls of read(2) and kin
	NetBytes    int64 `json:"net_bytes"` // less what the recorder fetched
	NetPackets  int64 `json:"net_packets"`
	IdleNS      int64 `json:"idle_ns"`
	OwnNS       int64 `json:"own_ns"` // CPU time of the recorder's own threads
}

// Add adds a slice that follows.
func (s *Slice) Add(t Slice) {
	s.EndNS = t.EndNS
	s.NS += t.NS
	s.CPUNS += t.CPUNS
	s.QueuedNS += t.QueuedNS
	s.ThrottledNS += t.ThrottledNS
	s.Switches += t.Switches
	s.ReadBytes += t.ReadBytes
	s.Reads += t.Reads
	s.NetBytes += t.NetBytes
	s.NetPackets += t.NetPackets
	s.IdleNS += t.IdleNS
	s.OwnNS += t.OwnNS
}

// Easing is a part of the recorder that was left out, thinned or shortened to spare the service.
type Easing struct {
	AtNS int64     `json:"at_ns"` // CLOCK_MONOTONIC
	Part string    `json:"part"`  // name of the collector
	Did  EasingDid `json:"did"`
	Why  EasingWhy `json:"why"`
	// Measured and Limit are what decided: shares, of what Why says. Zero: no figure did.
	Measured float64 `json:"measured,omitempty"`
	Limit    float64 `json:"limit,omitempty"`
	Lost     string  `json:"lost,omitempty" prose:"yes"` // which evidence it cost
}

// TracePart is the name of the collector of the execution trace.
const TracePart = "trace"

// EasingDid is what was done to a part.
type EasingDid string

// What may be done.
const (
	LeftOut   EasingDid = "left out"
	Thinned   EasingDid = "thinned"
	Shortened EasingDid = "shortened"
)

// EasingWhy is the reason for it.
type EasingWhy string

// Reasons.
const (
	WhyCPU       EasingWhy = "cpu"       // CPU time per unit of work grew
	WhyHeld      EasingWhy = "held"      // time on CPU or waiting for one, per unit of work, grew
	WhyThrottled EasingWhy = "throttled" // it was throttled for more of the time
	WhyBusy      EasingWhy = "busy"      // little CPU time is idle: share of what the target may use that is in use
	WhyMemory    EasingWhy = "memory"    // memory in use is near its limit: share of it
	WhyRefaults  EasingWhy = "refaults"  // evicted pages are needed again: pages a second
	WhyUnread    EasingWhy = "unread"    // no detector still needs it
)

// holds reports whether the counts can be true, and makes the strings short.
func (t *Toll) holds() bool {
	if !(t.Budget >= 0 && t.Budget <= 1) || !(t.LimitCPUs >= 0 && t.LimitCPUs <= maxHostCPUs) {
		return false
	}
	if len(t.Stages) > maxStages || len(t.Eased) > maxStages || len(t.Counters) > maxStages {
		return false
	}
	for i := range t.Stages {
		if len(t.Stages[i].Slices) > maxSlices {
			return false
		}
		for _, s := range t.Stages[i].Slices {
			for _, n := range []int64{s.NS, s.CPUNS, s.QueuedNS, s.ThrottledNS, s.Switches,
				s.ReadBytes, s.Reads, s.NetBytes, s.NetPackets, s.IdleNS, s.OwnNS} {
				if n < 0 || n > maxCount {
					return false
				}
			}
		}
	}
	for i := range t.Eased {
		clip(&t.Eased[i].Lost)
		clip(&t.Eased[i].Part)
	}
	return true
}

// Bounds of what a manifest may claim: sums of some hundred slices must not overflow.
const (
	maxStages = 16
	maxSlices = 256
	maxCount  = 1 << 53
)
