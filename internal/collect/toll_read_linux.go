package collect

import (
	"bytes"
	"iter"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/sensor/proc"
)

// kernelCounter reads the kernel's counters of a process.
type kernelCounter struct {
	pid      int
	fetched  func() int64 // what we have fetched from the target so far, bytes
	stats    *proc.Taskstats
	tids     []int // without stats: the threads whose schedstat is read
	threads  int   // that the process had at the start
	last     map[int][2]int64
	queued   int64
	switched int64
	cpuStats []string // cpu.stat of the target's cgroup and its ancestors
}

const (
	// maxTollThreads is how many threads are read one by one, each some us.
	maxTollThreads = 64
	// maxSummed is up to how many threads root reads the kernel's sum of all: it takes 1 us each.
	maxSummed = 500
	// maxListed bounds the threads that the ones to be read are chosen from.
	maxListed = 1 << 15
)

func newKernelCounter(pid int, fetched func() int64) *kernelCounter {
	c := &kernelCounter{pid: pid, fetched: fetched, last: map[int][2]int64{}}
	var tids []int
	tids, c.threads, _ = proc.FS{}.Threads(pid, maxListed)
	c.tids = spread(tids, maxTollThreads)
	if t, err := proc.OpenTaskstats(); err == nil && c.threads <= maxSummed {
		if _, err = t.Process(pid); err == nil {
			c.stats = t
		} else {
			t.Close()
		}
	}
	groups, _, _ := proc.FS{}.Groups(pid)
	for _, g := range groups {
		if g.Controller != "cpu" {
			continue
		}
		dirs, _ := g.Levels()
		for _, d := range dirs[:min(len(dirs), maxOften)] {
			c.cpuStats = append(c.cpuStats, filepath.Join(d, "cpu.stat"))
		}
	}
	return c
}

// spread chooses n of the threads, as far apart as they are.
func spread(tids []int, n int) []int {
	if len(tids) <= n {
		return tids
	}
	out := make([]int, n)
	for i := range out {
		out[i] = tids[i*len(tids)/n]
	}
	return out
}

func (c *kernelCounter) close() {
	if c.stats != nil {
		c.stats.Close()
		c.stats = nil
	}
}

func (c *kernelCounter) read() counts {
	n := counts{seen: map[evidence.Counted]bool{}}
	s := &n.sums
	s.EndNS, s.OwnNS = monotonic(), ownCPU()
	if cpu := processCPU(c.pid); cpu >= 0 {
		s.CPUNS, n.seen[evidence.CountedCPU] = cpu, true
	}
	if s.QueuedNS, s.Switches = c.waits(); s.QueuedNS >= 0 {
		n.seen[evidence.CountedQueued], n.seen[evidence.CountedSwitches] = true, true
	}
	s.ThrottledNS, n.seen[evidence.CountedThrottled] = c.throttled()
	s.ReadBytes, s.Reads, n.seen[evidence.CountedRead] = c.reads()
	s.NetBytes, s.NetPackets, n.seen[evidence.CountedNet] = c.received()
	s.NetBytes = max(0, s.NetBytes-c.fetched())
	s.IdleNS, n.seen[evidence.CountedIdle] = idleTime()
	return n
}

// waits is how long threads waited for a CPU, and how often they switched; -1 if that is not known.
// Of threads that are read one by one, those that ended count up to the last reading.
func (c *kernelCounter) waits() (queued, switches int64) {
	if c.stats != nil {
		text, err := c.stats.Process(c.pid)
		if err != nil {
			return -1, -1
		}
		f := fieldsOf(text)
		return f["cpu_delay_total"], f["nvcsw"] + f["nivcsw"]
	}
	read := 0
	for _, tid := range c.tids {
		b, err := readAtMost(pidFile(c.pid, "task/"+strconv.Itoa(tid)+"/schedstat"), 200)
		if err != nil {
			continue
		}
		f := bytes.Fields(b)
		if len(f) != 3 {
			continue
		}
		read++
		wait, _ := strconv.ParseInt(string(f[1]), 10, 64)
		times, _ := strconv.ParseInt(string(f[2]), 10, 64)
		if was, ok := c.last[tid]; ok {
			c.queued += max(0, wait-was[0])
			c.switched += max(0, times-was[1])
		}
		c.last[tid] = [2]int64{wait, times}
	}
	if read == 0 {
		return -1, -1
	}
	return c.queued, c.switched
}

// throttled is for how long the target's cgroup, or an ancestor of it, was throttled. Where several
// are, their sum counts: what matters is by how much it grows.
func (c *kernelCounter) throttled() (ns int64, ok bool) {
	for _, name := range c.cpuStats {
		b, err := readAtMost(name, 4<<10)
		if err != nil {
			continue
		}
		f := fieldsOf(string(b))
		if v, has := f["throttled_time"]; has { // v1: ns
			ns, ok = ns+v, true
		} else if v, has := f["throttled_usec"]; has {
			ns, ok = ns+v*1000, true
		}
	}
	return ns, ok
}

func (c *kernelCounter) reads() (n, calls int64, ok bool) {
	b, err := readAtMost(pidFile(c.pid, "io"), 4<<10)
	if err != nil {
		return 0, 0, false
	}
	f := fieldsOf(string(b))
	calls, ok = f["syscr"]
	return f["rchar"], calls, ok
}

// received is what the target's network namespace received by IP, version 4 and 6.
func (c *kernelCounter) received() (n, packets int64, ok bool) {
	if b, err := readAtMost(pidFile(c.pid, "net/netstat"), 64<<10); err == nil {
		f := pairsOf(string(b), "IpExt:")
		n, packets, ok = f["InOctets"], f["InNoECTPkts"]+f["InECT1Pkts"]+f["InECT0Pkts"]+f["InCEPkts"], f != nil
	}
	if b, err := readAtMost(pidFile(c.pid, "net/snmp6"), 64<<10); err == nil {
		f := fieldsOf(string(b))
		n, packets = n+f["Ip6InOctets"], packets+f["Ip6InReceives"]
	}
	return n, packets, ok
}

// idleTime is for how long the machine's CPUs were idle, all of them added up. /proc/stat says it
// as well, but counts all interrupts of all CPUs for it.
func idleTime() (ns int64, ok bool) {
	b, err := readAtMost("/proc/uptime", 64)
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(f[1], 64)
	return int64(seconds * 1e9), err == nil
}

// fieldsOf reads lines of a name and a number, with or without a colon.
func fieldsOf(text string) map[string]int64 {
	out := map[string]int64{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		if v, err := strconv.ParseInt(f[1], 10, 64); err == nil {
			out[strings.TrimSuffix(f[0], ":")] = v
		}
	}
	return out
}

// pairsOf reads the two lines of /proc/net/netstat that start with head: names, then numbers.
func pairsOf(text, head string) map[string]int64 {
	var names []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != head {
			continue
		}
		if names == nil {
			names = f
			continue
		}
		out := map[string]int64{}
		for i := range min(len(f), len(names)) {
			if v, err := strconv.ParseInt(f[i], 10, 64); err == nil {
				out[names[i]] = v
			}
		}
		return out
	}
	return nil
}

// limitOf is how many CPUs a process may use: what its tightest quota gives, or those of the
// machine.
func limitOf(pid, machine int) (cpus float64, quota bool) {
	if q, ok := (proc.FS{}).SharedQuota(pid, pid); ok && q.CPUs < float64(machine) {
		return q.CPUs, true
	}
	return float64(machine), false
}

// anonymousMemory is the memory of a process that no file backs, in bytes: without the pages of its
// program, which no runtime counts.
func anonymousMemory(pid int) int64 {
	b, _ := readAtMost(pidFile(pid, "status"), 64<<10)
	return int64(fieldsOf(string(b))["RssAnon"] << 10)
}

// groupMemoryUse is the largest share of a memory limit that a process' cgroup has in use, without
// the page cache that can be dropped.
func groupMemoryUse(pid int) (share float64) {
	for d, limit := range memoryLimits(pid) {
		f := memoryStat(d)
		cache := max(f["inactive_file"], f["total_inactive_file"])
		share = max(share, memoryBeside(d, cache)/limit)
	}
	return share
}

// groupMemoryLeft is how many bytes the cgroup of a process lets it have more, besides the page
// cache that can be dropped, and its limit: of the group that leaves least. limit is 0 without one.
func groupMemoryLeft(pid int) (left, limit float64) {
	for d, most := range memoryLimits(pid) {
		f := memoryStat(d)
		cache := max(f["file"], f["total_cache"]) - max(f["shmem"], f["total_shmem"])
		if n := max(0, most-memoryBeside(d, cache)); limit == 0 || n < left {
			left, limit = n, most
		}
	}
	return left, limit
}

// groupRefaults is how many pages a cgroup of the process with a memory limit has needed again
// after they were evicted: the most of them, since the groups exist.
func groupRefaults(pid int) (pages int64) {
	for d := range memoryLimits(pid) {
		f := memoryStat(d)
		pages = max(pages, f["workingset_refault_anon"]+f["workingset_refault_file"],
			f["total_workingset_refault_anon"]+f["total_workingset_refault_file"])
	}
	return pages
}

// memoryLimits gives the folders of the process' cgroups that have a memory limit, with it, bytes.
func memoryLimits(pid int) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		groups, _, _ := proc.FS{}.Groups(pid)
		for _, g := range groups {
			if g.Controller != "memory" {
				continue
			}
			dirs, _ := g.Levels()
			for _, d := range dirs[:min(len(dirs), maxOften)] {
				limit := smallest(oneNumber(d, "memory.max"), oneNumber(d, "memory.high"),
					oneNumber(d, "memory.limit_in_bytes"))
				if limit > 0 && limit < noLimit && !yield(d, limit) {
					return
				}
			}
		}
	}
}

// memoryBeside is what the cgroup has in use besides so much of its page cache, bytes.
func memoryBeside(dir string, cache int64) float64 {
	return max(oneNumber(dir, "memory.current"), oneNumber(dir, "memory.usage_in_bytes")) - float64(cache)
}

// memoryStat is the cgroup's memory.stat.
func memoryStat(dir string) map[string]int64 {
	stat, _ := readAtMost(filepath.Join(dir, "memory.stat"), 16<<10)
	return fieldsOf(string(stat))
}

// noLimit is what v1 gives for none, or so.
const noLimit = 1 << 60

// oneNumber is the number in a file of a cgroup, 0 where it has none.
func oneNumber(dir, name string) float64 {
	b, err := readAtMost(filepath.Join(dir, name), 64)
	if err != nil {
		return 0
	}
	v, _ := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
	return v
}

// smallest is the smallest of the numbers above zero, 0 without one.
func smallest(of ...float64) (least float64) {
	for _, v := range of {
		if v > 0 && (least == 0 || v < least) {
			least = v
		}
	}
	return least
}
