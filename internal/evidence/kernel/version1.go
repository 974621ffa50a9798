package kernel

import (
	"encoding/json"
	"strings"
)

// Streams of version 1 say what is recorded and what is missing in sentences, and name no sight.
// This file alone reads sentences. Its list is closed: all that recorders of that version could
// write. A sentence that is not in it may concern anything, so that nothing is ruled out by it.

// readHeader1 reads the header of a stream of version 1.
func readHeader1(raw []byte) (Header, error) {
	var old struct {
		Header
		Features, Missing []string
	}
	if err := json.Unmarshal(raw, &old); err != nil {
		return Header{}, err
	}
	h := old.Header
	for _, sentence := range old.Features[:min(len(old.Features), maxSights)] {
		h.Recorded = append(h.Recorded, features1[sentence]...)
	}
	for _, sentence := range old.Missing[:min(len(old.Missing), maxSights)] {
		h.Missing = append(h.Missing, Missing{What: sightsOf1(sentence), Why: sentence})
	}
	return h, nil
}

// sightsOf1 gives the sights of a sentence about what is missing. It is "WHAT: WHY", where WHY is
// an error's text and may be anything, or counts threads: "12 of 3000 threads: ...".
func sightsOf1(sentence string) []Sight {
	what, _, ok := strings.Cut(sentence, ": ")
	if l := missing1[what]; ok && l != nil {
		return l
	}
	if words := strings.Fields(what); ok && len(words) == 4 && number(words[0]) &&
		words[1] == "of" && number(words[2]) && words[3] == "threads" {
		return []Sight{SightAllThreads}
	}
	return []Sight{SightUnknown}
}

func number(word string) bool { return word != "" && strings.Trim(word, "0123456789") == "" }

// missing1 is what stood before the colon.
var missing1 = map[string][]Sight{
	// The eBPF recorder's programs, by what is not seen without each.
	"new threads' run queues":                               {SightNewThreads},
	"run queues":                                            {SightRunQueues},
	"moves between CPUs":                                    {SightMigrations},
	"new names of threads":                                  {SightThreadNames},
	"that the target runs another program":                  {SightExecs},
	"ends of threads":                                       {SightThreadEnds},
	"when a quota gives time, and timers":                   {SightQuotaTimers, SightTimers},
	"when a quota gives time to another CPU":                {SightQuotaTimers},
	"the end of timers":                                     {SightTimers},
	"preemption asked":                                      {SightPreemptionAsked},
	"preemption delivered":                                  {SightPreemptionDelivered},
	"direct reclaim":                                        {SightReclaim},
	"the end of direct reclaim":                             {SightReclaim},
	"reclaim of a memory cgroup":                            {SightMemcgReclaim},
	"the end of reclaim of a memory cgroup":                 {SightMemcgReclaim},
	"what is compacted for":                                 {SightCompaction},
	"compaction":                                            {SightCompaction},
	"the end of compaction":                                 {SightCompaction},
	"waits for mmap_lock":                                   {SightMmapLock},
	"the end of waits for mmap_lock":                        {SightMmapLock},
	"TLB flushes":                                           {SightTLBFlushes},
	"waits for the kernel's locks":                          {SightKernelLocks},
	"the end of waits for the kernel's locks":               {SightKernelLocks},
	"when sockets have data":                                {SightSockets},
	"who finds sockets empty, and who reads them":           {SightSockets},
	"page faults":                                           {SightPageFaults},
	"page faults, and those of NUMA balancing":              {SightPageFaults, SightNUMA},
	"ends of minor page faults":                             {SightPageFaults},
	"ends of minor page faults and those of NUMA balancing": {SightPageFaults, SightNUMA},
	"ends of major page faults":                             {SightPageFaults},
	"pages moved between NUMA nodes":                        {SightNUMA},
	"samples of what runs":                                  {SightSamples},
	"when a quota gives time":                               {SightQuotaTimers},
	"when a quota gives time, samples of what runs":         {SightQuotaTimers, SightSamples},

	// The recorder's without privilege.
	"who ran while the target's threads did not":                            {SightOtherTasks},
	"the stacks of waits, and why a thread left its CPU but for preemption": {SightWaitStacks},
	"who wakes a thread, and since when a woken one is queued":              {SightWakers},
	"throttling by a quota":                                                 {SightThrottling},
	"reclaim, compaction, mmap_lock waits, TLB flushes, futex calls, signals": {SightReclaim,
		SightMemcgReclaim, SightCompaction, SightMmapLock, SightTLBFlushes, SightFutexes,
		SightPreemptionAsked, SightPreemptionDelivered},

	// Names, of both.
	"names of the target's functions": {SightTargetNames},
	"names of the kernel's functions": {SightKernelNames},
}

// features1 is what version 1 listed as recorded, as far as anything follows from it.
var features1 = map[string][]Sight{
	"run queues":       {SightRunQueues},
	"preemption asked": {SightPreemptionAsked},
}
