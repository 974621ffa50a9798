package kernel

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// sentences1 is every sentence that a recorder of version 1 could write, with the text of an error
// where it had one, and what it concerns.
var sentences1 = map[string][]Sight{
	// recorder_linux.go, features_linux.go: programs that could be missing
	"new threads' run queues: no tracepoint sched_wakeup_new":                                                         {SightNewThreads},
	"run queues: no tracepoint sched_wakeup":                                                                          {SightRunQueues},
	"moves between CPUs: no tracepoint sched_migrate_task":                                                            {SightMigrations},
	"new names of threads: no tracepoint task_rename":                                                                 {SightThreadNames},
	"that the target runs another program: no tracepoint sched_process_exec":                                          {SightExecs},
	"ends of threads: no tracepoint sched_process_exit":                                                               {SightThreadEnds},
	"when a quota gives time, and timers: attach hrtimer_expire: operation not permitted: needs CAP_BPF":              {SightQuotaTimers, SightTimers},
	"when a quota gives time to another CPU: no tracepoint csd_function_entry":                                        {SightQuotaTimers},
	"the end of timers: no tracepoint hrtimer_expire_exit":                                                            {SightTimers},
	"preemption asked: no tracepoint signal_generate":                                                                 {SightPreemptionAsked},
	"preemption delivered: no tracepoint signal_deliver":                                                              {SightPreemptionDelivered},
	"direct reclaim: no tracepoint mm_vmscan_direct_reclaim_begin":                                                    {SightReclaim},
	"the end of direct reclaim: no tracepoint mm_vmscan_direct_reclaim_end":                                           {SightReclaim},
	"reclaim of a memory cgroup: no tracepoint mm_vmscan_memcg_reclaim_begin":                                         {SightMemcgReclaim},
	"the end of reclaim of a memory cgroup: no tracepoint mm_vmscan_memcg_reclaim_end":                                {SightMemcgReclaim},
	"what is compacted for: no tracepoint mm_compaction_try_to_compact_pages":                                         {SightCompaction},
	"compaction: no tracepoint mm_compaction_begin":                                                                   {SightCompaction},
	"the end of compaction: no tracepoint mm_compaction_end":                                                          {SightCompaction},
	"waits for mmap_lock: no tracepoint mmap_lock_start_locking":                                                      {SightMmapLock},
	"the end of waits for mmap_lock: no tracepoint mmap_lock_acquire_returned":                                        {SightMmapLock},
	"TLB flushes: no tracepoint tlb_flush":                                                                            {SightTLBFlushes},
	"waits for the kernel's locks: no tracepoint contention_begin":                                                    {SightKernelLocks},
	"the end of waits for the kernel's locks: no tracepoint contention_end":                                           {SightKernelLocks},
	"when sockets have data: load program socket_ready: refused by this kernel: math between trusted_ptr_ pointer":    {SightSockets},
	"who finds sockets empty, and who reads them: load program socket_read: refused by this kernel: invalid argument": {SightSockets},
	"page faults: no tracepoint page_fault_user":                                                                      {SightPageFaults},
	"page faults, and those of NUMA balancing: no tracepoint page_fault_user":                                         {SightPageFaults, SightNUMA},
	"ends of minor page faults: attach fault_minor: open perf event: permission denied":                               {SightPageFaults},
	"ends of minor page faults and those of NUMA balancing: attach fault_minor: too many open files":                  {SightPageFaults, SightNUMA},
	"ends of major page faults: attach fault_major: open perf event: permission denied":                               {SightPageFaults},
	"pages moved between NUMA nodes: no tracepoint mm_migrate_pages":                                                  {SightNUMA},
	"samples of what runs: attach sample: open perf event: permission denied":                                         {SightSamples},
	"samples of what runs: the tick's function is not known":                                                          {SightSamples},
	`when a quota gives time: /proc/kallsyms lacks ["sched_cfs_period_timer" "sched_cfs_slack_timer"]`:                {SightQuotaTimers},
	"when a quota gives time: /proc/kallsyms hides addresses: needs CAP_SYSLOG, or kernel.kptr_restrict=0":            {SightQuotaTimers},
	"when a quota gives time, samples of what runs: open /proc/kallsyms: permission denied":                           {SightQuotaTimers, SightSamples},
	// perf_linux.go, the recorder without privilege
	"who ran while the target's threads did not: open perf event: permission denied: perf_event_paranoid is 2":  {SightOtherTasks},
	"the stacks of waits, and why a thread left its CPU but for preemption: open perf event: permission denied": {SightWaitStacks},
	"who wakes a thread, and since when a woken one is queued: perf_event without tracepoints does not tell":    {SightWakers},
	"throttling by a quota: it looks like preemption":                                                           {SightThrottling},
	"reclaim, compaction, mmap_lock waits, TLB flushes, futex calls, signals: they need eBPF":                   {SightReclaim, SightMemcgReclaim, SightCompaction, SightMmapLock, SightTLBFlushes, SightFutexes, SightPreemptionAsked, SightPreemptionDelivered},
	"12 of 3000 threads: 1024 events are open already":                                                          {SightAllThreads},
	"1 of 2 threads: no more files may be open (ulimit -n)":                                                     {SightAllThreads},
	// kernel_naming_linux.go
	"names of the target's functions: open /proc/7/exe: permission denied":                                         {SightTargetNames},
	"names of the kernel's functions: /proc/kallsyms hides addresses: needs CAP_SYSLOG, or kernel.kptr_restrict=0": {SightKernelNames},
}

// words1 is how causes recognised the sentences, while they did: by any of these words.
var words1 = map[string][]Sight{
	"reclaim":            {SightReclaim, SightMemcgReclaim},
	"tlb":                {SightTLBFlushes},
	"mmap_lock":          {SightMmapLock},
	"fault":              {SightPageFaults},
	"clone":              {SightThreadsMade},
	"the stacks of wait": {SightWaitStacks},
	"throttl":            {SightThrottling},
	"numa":               {SightNUMA},
	"socket":             {SightSockets},
	"timer":              {SightTimers},
}

func TestVersion1(t *testing.T) {
	met := map[string]bool{}
	for sentence, want := range sentences1 {
		got := Missing{What: sightsOf1(sentence), Why: sentence}
		if !slices.Equal(got.What, want) {
			t.Errorf("%q: %v, want %v", sentence, got.What, want)
		}
		what, _, _ := strings.Cut(sentence, ": ")
		met[what] = true
		for word, sights := range words1 {
			if was := strings.Contains(strings.ToLower(what), word); was != got.Concerns(sights...) {
				t.Errorf("%q: %v, but the word %q was searched for: %v", sentence, got.What, word, was)
			}
		}
	}
	for what := range missing1 {
		if !met[what] {
			t.Errorf("%q is not tested", what)
		}
	}
	for _, unknown := range []string{"", "reclaim", "direct reclaim",
		"Direct reclaim: no tracepoint", "the moon: not in sight", "a of b threads: c", "3 of 4 threads"} {
		if got := sightsOf1(unknown); !slices.Equal(got, []Sight{SightUnknown}) {
			t.Errorf("%q: %v", unknown, got)
		}
	}
	if m := (Missing{What: []Sight{SightUnknown}}); !m.Concerns(SightReclaim) || !m.Concerns(SightNUMA) {
		t.Error("what is not known concerns nothing")
	}
}

// stream1 is a stream whose magic line and header are of version 1.
func stream1(t *testing.T, header string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := NewWriter(&buf, Header{})
	if err != nil {
		t.Fatal(err)
	}
	buf.Reset()
	buf.WriteString(magic1)
	w.block(blockHeader, []byte(header))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestReadVersion1(t *testing.T) {
	r, err := NewReader(opener(stream1(t, `{"Source":"bpf","Kernel":"6.1","PerTask":true,"Features":["who is on which CPU","run queues","preemption asked"],
		"Missing":["TLB flushes: no tracepoint tlb_flush","a sentence of nobody"],"StopNote":7}`)))
	if err != nil {
		t.Fatal(err)
	}
	h := r.Header()
	if h.Source != "bpf" || !h.PerTask || h.StopNote != 7 ||
		!slices.Equal(h.Recorded, []Sight{SightRunQueues, SightPreemptionAsked}) {
		t.Errorf("header %+v", h)
	}
	if m := h.Missing; len(m) != 2 || !slices.Equal(m[0].What, []Sight{SightTLBFlushes}) ||
		m[0].Why != "TLB flushes: no tracepoint tlb_flush" ||
		!slices.Equal(m[1].What, []Sight{SightUnknown}) || m[1].Why != "a sentence of nobody" {
		t.Errorf("missing %+v", m)
	}
}

// What a header says is missing comes back as it was; a sight of a newer recorder may be anything.
func TestHeaderMissing(t *testing.T) {
	write := []Missing{{What: []Sight{SightReclaim, SightNUMA}, Why: "a: b"},
		{What: []Sight{"moon", SightTimers}, Why: "c"}, {Why: "d"}}
	var buf bytes.Buffer
	w, err := NewWriter(&buf, Header{Source: "bpf", Recorded: []Sight{SightSamples}, Missing: write})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(opener(buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]Sight{{SightReclaim, SightNUMA}, {SightTimers, SightUnknown}, {SightUnknown}}
	for i, m := range r.Header().Missing {
		if !slices.Equal(m.What, want[i]) || m.Why != write[i].Why {
			t.Errorf("missing %d: %+v, want %v", i, m, want[i])
		}
	}
}
