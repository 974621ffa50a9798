package collect

import (
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sensor/bpf"
)

// partSights has the sights that each part of the eBPF recorder provides.
var partSights = map[string][]kernel.Sight{
	"sched_switch":        {kernel.SightSwitches, kernel.SightOtherTasks},
	"sched_exit":          {kernel.SightWaitStacks},
	"sched_waking":        {kernel.SightWakers},
	"sched_wakeup":        {kernel.SightRunQueues},
	"sched_wakeup_new":    {kernel.SightNewThreads},
	"sched_migrate_task":  {kernel.SightMigrations},
	"process_fork":        {kernel.SightThreadsMade},
	"rename":              {kernel.SightThreadNames},
	"process_exec":        {kernel.SightExecs},
	"process_exit":        {kernel.SightThreadEnds},
	"hrtimer_expire":      {kernel.SightQuotaTimers, kernel.SightTimers},
	"csd_function":        {kernel.SightQuotaTimers},
	"signal_generate":     {kernel.SightPreemptionAsked},
	"signal_deliver":      {kernel.SightPreemptionDelivered},
	"reclaim_begin":       {kernel.SightReclaim},
	"reclaim_end":         {kernel.SightReclaim},
	"memcg_reclaim_begin": {kernel.SightMemcgReclaim},
	"memcg_reclaim_end":   {kernel.SightMemcgReclaim},
	"compaction_try":      {kernel.SightCompaction},
	"compaction_begin":    {kernel.SightCompaction},
	"compaction_end":      {kernel.SightCompaction},
	"mmap_lock_start":     {kernel.SightMmapLock},
	"mmap_lock_acquired":  {kernel.SightMmapLock},
	"tlb_flush":           {kernel.SightTLBFlushes},
	"contention_begin":    {kernel.SightKernelLocks},
	"contention_end":      {kernel.SightKernelLocks},
	"socket_ready":        {kernel.SightSockets},
	"socket_read":         {kernel.SightSockets},
	"page_fault":          {kernel.SightPageFaults, kernel.SightNUMA},
	"fault_minor":         {kernel.SightPageFaults, kernel.SightNUMA},
	"fault_major":         {kernel.SightPageFaults},
	bpf.PartQuotaTimers:   {kernel.SightQuotaTimers},
	bpf.PartTick:          {kernel.SightSamples},
	bpf.PartFunctions:     {kernel.SightQuotaTimers, kernel.SightSamples},
}
