package attach

// Facts that the rules over several parts read. The rooms below write them under names of their
// own; a test of the table of kinds holds the two lists to each other.
const (
	GCStretched      FactName = "/go/gc/stretched:cycles"     // cycles long by the clock and short by CPU time
	GCPause          FactName = "/go/gc/pause:ns"             // the worst stop of the world
	GOMAXPROCS       FactName = "/go/sched/gomaxprocs"        //
	ThrottledShare   FactName = "/cgroup/cpu/throttled:share" // of its periods
	Quota            FactName = "/cgroup/cpu/quota:cpus"      // 0: none at this level
	ProcessCPU       FactName = "/process/cpu/use:cpus"       // Of: command/pid
	ContainerCPU     FactName = "/container/cpu/use:cpus"     // Of: the container
	Orphans          FactName = "/net/tcp/orphans:sockets"
	OrphansMax       FactName = "/net/tcp/orphans/max:sockets"
	Conntrack        FactName = "/net/conntrack/entries:connections"
	ConntrackMax     FactName = "/net/conntrack/max:connections"
	StealShare       FactName = "/host/cpu/steal:ratio"            //
	IdleShare        FactName = "/host/cpu/idle:ratio"             //
	HostCPUs         FactName = "/host/cpus:cpus"                  //
	Runnable         FactName = "/host/cpu/runnable:threads"       // the median; those that run included
	ProcessRSS       FactName = "/process/rss:bytes"               //
	ProcessAnonHuge  FactName = "/process/anon-huge:bytes"         //
	BuddyFree        FactName = "/host/buddy/free:bytes"           // Of: the zone
	BuddyHuge        FactName = "/host/buddy/huge:bytes"           // of it in blocks of 2 MiB or more
	AllocstallRate   FactName = "/host/vmstat/allocstall:stalls/s" //
	CompactStallRate FactName = "/host/vmstat/compact/stall:stalls/s"
	MinFree          FactName = "/host/sysctl/vm.min_free_kbytes:bytes"
	MemoryTotal      FactName = "/host/memory/total:bytes"
	HostBoot         FactName = "/host/boot:seconds-of-day"   // by the clock and the uptime, to the minute
	LostMS           FactName = "/db/request/lost:ms"         // between a client's and a server's clock
	RunCPU           FactName = "/run/cpu:ns"                 // Of: the command, which was run for this
	RunElapsed       FactName = "/run/elapsed:ns"             // likewise
	LockSite         FactName = "/go/lock/site:goroutines"    // Of: the function that waiters call Lock in
	MutexDelay       FactName = "/go/mutex/delay:ns"          // Of: the function that unlocked
	LockWaiters      FactName = "/go/lock/waiters:goroutines" // Of: the lock's address, or a function
)

// fact finds the largest value of a fact in parts, and the part that has it.
func fact(told []*Told, name FactName) (Fact, *Told) {
	var best Fact
	var from *Told
	for _, t := range told {
		for _, f := range t.Facts {
			if f.Name == name && (from == nil || f.Value > best.Value) {
				best, from = f, t
			}
		}
	}
	return best, from
}
