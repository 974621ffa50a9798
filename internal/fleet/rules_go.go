package fleet

import "github.com/whystall/whystall/internal/finding"

// slowBucket is the bound of 10.5 ms in runtime/metrics' histograms as client_golang exports them:
// buckets are a factor of 11 apart, so only the share above a bound is exact, and no quantile is.
const slowBucket = `le=~"0\\.010[45].*"`

// slower is the share of a histogram above slowBucket.
func slower(e *env, name string) string {
	return "1 - " + e.ratio(ByService, e.rate(ByService, name+"_bucket", slowBucket), e.rate(ByService, name+"_count"))
}

// recordedOneIn is how many transitions of goroutines runtime/metrics records one of.
const recordedOneIn = "8"

// heldByGo is what the runtime believes to have of the system.
func heldByGo(e *env) string {
	return "(" + e.gauge(ByService, "go_memstats_sys_bytes") + " - " +
		e.gauge(ByService, "go_memstats_heap_released_bytes") + ")"
}

// gcShare is the part of the process' CPU time that goes to garbage collection.
// Workers that run on idle Ps harm nobody.
func gcShare(e *env) string {
	gc := "(" + e.rate(ByService, "go_cpu_classes_gc_total_cpu_seconds_total") + " - " +
		e.rate(ByService, "go_cpu_classes_gc_mark_idle_cpu_seconds_total") + ")"
	all := "(" + e.rate(ByService, "go_cpu_classes_total_cpu_seconds_total") + " - " +
		e.rate(ByService, "go_cpu_classes_idle_cpu_seconds_total") + ")"
	return e.ratio(ByService, gc, all)
}

var goRules = []*Rule{
	{
		Name: "sched-latency", Cause: "sched-latency", Title: "Runnable goroutines wait for a P",
		Scope: Service, Key: ByService, Unit: Goroutines, Order: 70, Least: 0.05,
		Needs: []string{"go_sched_latencies_seconds_count", "go_sched_latencies_seconds_bucket",
			"go_sched_latencies_seconds_sum"},
		Loss: func(e *env) string {
			return recordedOneIn + " * " + e.rate(ByService, "go_sched_latencies_seconds_sum")
		},
		And:  func(e *env) string { return above(slower(e, "go_sched_latencies_seconds"), 0.01) },
		Sure: finding.Possible, Why: "a quota, neighbours and too few Ps look the same in the process' own metrics",
		Proof: []Proof{{"of the waits for a P %s took longer than 10 ms",
			"go_sched_latencies_seconds_bucket",
			func(e *env) string { return slower(e, "go_sched_latencies_seconds") }, Share}},
	},
	{
		Name: "stw-pause", Cause: "stw-pause", Title: "The garbage collector stops the world for long",
		Scope: Service, Key: ByService, Unit: WallShare, Order: 80, Least: 0.01,
		Needs: []string{"go_gc_duration_seconds_sum"},
		Loss:  func(e *env) string { return e.rate(ByService, "go_gc_duration_seconds_sum") },
		Uses:  []string{"go_gc_duration_seconds_count"},
		Sure:  finding.Possible, Why: "what made them long, and whether a request waited, no metric says",
		Proof: []Proof{{"stop-the-worlds a second: %s", "go_gc_duration_seconds_count",
			func(e *env) string { return e.rate(ByService, "go_gc_duration_seconds_count") }, Events},
			{"one takes %s ms on average", "go_gc_duration_seconds_count", func(e *env) string {
				return "1000 * " +
					e.ratio(ByService, e.rate(ByService, "go_gc_duration_seconds_sum"),
						e.rate(ByService, "go_gc_duration_seconds_count"))
			}, Ratio}},
	},
	{
		Name: "frequent-gc-share", Cause: "frequent-gc", Title: "GC takes a large part of the CPU time",
		Scope: Service, Key: ByService, Unit: Share, Order: 75, Least: 0.25,
		Needs: []string{"go_cpu_classes_gc_total_cpu_seconds_total",
			"go_cpu_classes_total_cpu_seconds_total", "go_cpu_classes_idle_cpu_seconds_total"},
		Loss:     gcShare,
		AndNeeds: []string{"go_gc_duration_seconds_count"},
		And:      func(e *env) string { return above(e.rate(ByService, "go_gc_duration_seconds_count"), 1) },
		Uses: []string{"go_cpu_classes_gc_mark_idle_cpu_seconds_total",
			"go_cpu_classes_gc_mark_assist_cpu_seconds_total"},
		Sure: finding.Supported, Why: "the runtime counts the CPU time",
		Alone: "how many collections there are is not known",
		Hides: []string{"stw-pause"},
	},
	{
		Name: "frequent-gc", Cause: "frequent-gc", Title: "GC runs many times a second",
		Scope: Service, Key: ByService, Unit: Events, Order: 76, Least: 5,
		Needs: []string{"go_gc_duration_seconds_count"},
		Loss: func(e *env) string {
			// Where their CPU time is known, cheap ones count as none, and the rule above has dear
			// ones. They are 0 and not left out, so that it is seen when they started.
			on, count, share := " on "+e.by(ByService)+" ",
				e.rate(ByService, "go_gc_duration_seconds_count"), gcShare(e)
			known := count + " *" + on + "((" + share + ") >= bool 0.1) *" + on + "((" + share + ") < bool 0.25)"
			return "(" + known + ") or (" + e.unless(ByService, count, share) + ")"
		},
		Uses: []string{"go_cpu_classes_gc_total_cpu_seconds_total",
			"go_cpu_classes_gc_mark_idle_cpu_seconds_total",
			"go_cpu_classes_total_cpu_seconds_total", "go_cpu_classes_idle_cpu_seconds_total",
			"go_memstats_next_gc_bytes"},
		Sure: finding.Possible, Why: "what each collection costs a request, no metric says",
		Hides: []string{"stw-pause"},
		Proof: []Proof{{"of the CPU time that the process uses they take %s",
			"go_cpu_classes_gc_total_cpu_seconds_total", gcShare, Share},
			{"it starts at a heap of %s", "go_memstats_next_gc_bytes",
				func(e *env) string { return e.now(ByService, "go_memstats_next_gc_bytes") }, Memory}},
	},
	{
		Name: "lock-contention", Cause: "lock-contention", Title: "Goroutines wait for mutexes",
		Scope: Service, Key: ByService, Unit: Goroutines, Order: 72, Least: 0.1,
		Needs: []string{"go_sync_mutex_wait_total_seconds_total"},
		Loss:  func(e *env) string { return e.rate(ByService, "go_sync_mutex_wait_total_seconds_total") },
		Sure:  finding.Supported,
		Why:   "the runtime counts the time that goroutines waited; which mutex, it does not say",
	},
	{
		Name: "thp-bloat", Cause: "thp-bloat", Title: "Resident memory is far above what the Go runtime holds",
		Scope: Service, Key: ByService, Unit: Memory, Order: 85, Least: 256 << 20, Levels: true,
		Needs: []string{"process_resident_memory_bytes", "go_memstats_sys_bytes", "go_memstats_heap_released_bytes"},
		Loss: func(e *env) string {
			return e.gauge(ByService, "process_resident_memory_bytes") + " - " + heldByGo(e)
		},
		And: func(e *env) string {
			return above(e.ratio(ByService, e.gauge(ByService, "process_resident_memory_bytes"), heldByGo(e)), 1.2)
		},
		Sure: finding.Possible, Why: "cgo, mapped files and MADV_FREE look the same",
	},
}
