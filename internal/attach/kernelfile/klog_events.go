package kernelfile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// event is a thing that the kernel reports of itself.
type event struct {
	name  eventName
	words string // one of them, and several
	many  string
	hint  string // stands in every such line, to spare the expression
	line  *regexp.Regexp
}

type eventName string

const (
	hungTask    eventName = "hung task"
	lockOwner   eventName = "owner of a lock"
	softLockup  eventName = "soft lockup"
	hardLockup  eventName = "hard lockup"
	rcuStall    eventName = "rcu stall"
	oomKill     eventName = "oom"
	oomGroup    eventName = "oom of a cgroup"
	oomDetail   eventName = "oom: what was killed"
	allocFail   eventName = "allocation failure"
	allocStall  eventName = "allocation stall"
	conntrack   eventName = "conntrack"
	synFlood    eventName = "syn flood"
	clockBad    eventName = "clock"
	diskTimeout eventName = "disk timeout"
	diskError   eventName = "disk error"
	thermal     eventName = "thermal"
	perfSlow    eventName = "perf"
	hogged      eventName = "workqueue"
	netTimeout  eventName = "network device"
	rtThrottled eventName = "real-time"
	neighbours  eventName = "neighbour table"
	crashed     eventName = "crash"
	sysrqTasks  eventName = "sysrq"
	diskGone    eventName = "disk removed"
	diskFailed  eventName = "disk command"
	fileServer  eventName = "file server"
	tcpMemory   eventName = "tcp memory"
	timeWait    eventName = "time-wait"
	slowTimer   eventName = "hrtimer"
	rcuStarved  eventName = "rcu starved"
	diskPolled  eventName = "disk interrupt"
	portReset   eventName = "disk link"
	portFrozen  eventName = "disk port"
)

// events is the table, by the kernel's own formats of its messages. Groups are named in the reader.
var events = []event{
	{hungTask, "hung task", "hung tasks", "blocked ", regexp.MustCompile(`INFO: task (.+):(\d+) blocked (?:in I/O wait )?for more than (\d+) seconds`)},
	{lockOwner, "owner of a lock", "owners of locks", "likely owned by", regexp.MustCompile(`INFO: task (.+?):(\d+)(?: <\w+>)?(?: is)? blocked on an? ([\w-]+),? likely owned by task (.+?):(\d+)`)},
	{softLockup, "soft lockup", "soft lockups", "soft lockup", regexp.MustCompile(`BUG: soft lockup - CPU#(\d+) stuck for (\d+)s! \[(.+?):(\d+)\]`)},
	{hardLockup, "hard lockup", "hard lockups", "ard LOCKUP", regexp.MustCompile(`[Hh]ard LOCKUP on cpu ?(\d+)`)},
	{rcuStall, "RCU stall", "RCU stalls", "tall", regexp.MustCompile(`(rcu\w*)(?: kthread)?(?:_state)?.*(?:self-)?detected (?:expedited )?stalls?`)},
	{oomGroup, "process killed at a cgroup's memory limit", "processes killed at a cgroup's memory limit", "ill", regexp.MustCompile(`Memory cgroup out of memory: Kill(?:ed)? process (\d+) \(([^)]*)\)(.*)`)},
	{oomKill, "process killed for lack of memory", "processes killed for lack of memory", "ill", regexp.MustCompile(`Out of memory(?: \(oom_kill_allocating_task\))?: Kill(?:ed)? process (\d+) \(([^)]*)\)(.*)`)},
	{oomDetail, "oom report", "oom reports", "oom", regexp.MustCompile(`invoked oom-killer|^\s*oom-kill:constraint=`)},
	{allocStall, "allocation that stalled", "allocations that stalled", "stalls for", regexp.MustCompile(`^(.*?): page allocation stalls for (\d+)ms, order:(\d+)(?:, mode:\S*?\(([\w|]+)\))?`)},
	{allocFail, "failed allocation of pages", "failed allocations of pages", "allocation failure", regexp.MustCompile(`^(.*?): page allocation failure[.:] order:(\d+), mode:(\S+)`)},
	{conntrack, "message that the table of connections is full", "messages that the table of connections is full", "table full", regexp.MustCompile(`(?:nf|ip)_conntrack\w*: .*table full(?:, dropping packet|[.,]?$)`)},
	{synFlood, "message of too many connection requests", "messages of too many connection requests", "SYN flooding", regexp.MustCompile(`ossible SYN flooding on port (?:\S*?:)?(\d+)`)},
	{clockBad, "message that the clock is unstable", "messages that the clock is unstable", "nstable", regexp.MustCompile(`(?i)^(?:clocksource: )?(?:timekeeping watchdog\S*(?: on CPU\d+)?: )?(?:marking )?clocksource '?([\w-]+)'? (?:as )?unstable|^(?:tsc: )?Marking (TSC) unstable|^(TSC) found unstable`)},
	{diskPolled, "disk command whose interrupt was lost", "disk commands whose interrupts were lost", "completion polled", regexp.MustCompile(`nvme\S* .*timeout, completion polled`)},
	{portReset, "reset of a disk's link", "resets of disks' links", "link", regexp.MustCompile(`ata\d+(?:\.\d+)?: (?:link is slow to respond|(?:hard|soft) resetting link)`)},
	{portFrozen, "exception that froze a disk's port", "exceptions that froze a disk's port", "frozen", regexp.MustCompile(`ata\d+(?:\.\d+)?: exception Emask .* frozen`)},
	{diskTimeout, "disk command that timed out", "disk commands that timed out", "", regexp.MustCompile(`nvme\d*:? (?:I/O|I/O tag) .*timeout|nvme\S* .*controller is down|Emask 0x[0-9a-f]+ \(timeout\)|timing out command, waited|DID_TIME_OUT|task abort[:!]|virtio_scsi.*timeout|blk_mq_timeout|mmc\d+: .*[Tt]imeout waiting for|nbd\d+: (?:Connection|Possible stuck request)`)},
	{diskError, "disk or file system error", "disk or file system errors", "", regexp.MustCompile(`I/O error,? (?:on )?dev (?:sd|nvme|vd|xvd|dm-|md|mmc|hd)|Buffer I/O error on dev(?:ice)? (?:sd|nvme|vd|xvd|dm-|md|mmc|hd)|EXT4-fs error|XFS \(\w+\): (?:metadata I/O error|log I/O error|Corruption)|md/raid\S*: Disk failure|ata\d+(?:\.\d+)?: (?:error:|exception)|critical medium error|BTRFS(?: \w+)? ?\(?.*\)?: (?:error|bdev .* errs)|Remounting filesystem read-only|FAILED Result:|Device not ready; aborting|JBD2: (?:Error|Detected IO errors)|Aborting journal on device|device-mapper: .*Failing path`)},
	{diskFailed, "failed disk command", "failed disk commands", "failed command: ", regexp.MustCompile(`ata\d+(?:\.\d+)?: failed command: ([A-Z0-9 _/-]+)`)},
	{diskGone, "disk that was given up", "disks that were given up", "", regexp.MustCompile(`nvme\d+: (?:Removing after probe failure|Disabling device after reset failure)|detected capacity change from [1-9]\d* to 0$|rejecting I/O to (?:offline|dead) device|ata\d+\.\d+: (?:disabled|disable device)|Device offlined`)},
	{fileServer, "message of a file server that does not answer", "messages of a file server that does not answer", "respon", regexp.MustCompile(`(nfs4?|lockd|rpc\w*|NFS\w*|CIFS|SMB\w*|ceph|libceph)\S*:? .*?(?:[Ss]erver |\\\\)(\S+?)(?:,| has)? (not responding|not responded)`)},
	{tcpMemory, "message of a limit of TCP", "messages of a limit of TCP", "", regexp.MustCompile(`(?i)^\W*(?:[\w.-]+: ){0,3}(?:too many (?:of )?orphaned sockets|out of socket memory)|TCP: out of memory|consider tuning tcp_mem`)},
	{timeWait, "overflow of the table of TIME-WAIT sockets", "overflows of the table of TIME-WAIT sockets", "time wait bucket", regexp.MustCompile(`time wait bucket table overflow`)},
	{slowTimer, "long timer interrupt", "long timer interrupts", "hrtimer", regexp.MustCompile(`hrtimer: interrupt took (\d+) ns`)},
	{rcuStarved, "starved RCU thread", "starved RCU threads", "starved", regexp.MustCompile(`(rcu\w*) kthread starved for (\d+) jiffies`)},
	{thermal, "message that heat slows the CPU", "messages that heat slows the CPU", "temperature above", regexp.MustCompile(`temperature above threshold, cpu clock (?:is )?throttled(?: \(total events = (\d+)\))?`)},
	{perfSlow, "slow perf interrupt", "slow perf interrupts", "too long", regexp.MustCompile(`perf: interrupt took too long|NMI handler .* took too long|perf samples too long`)},
	{hogged, "worker that hogged a CPU", "workers that hogged a CPU", "hogged CPU", regexp.MustCompile(`workqueue: (\S+).* hogged CPU for >(\d+)us`)},
	{netTimeout, "transmit queue that timed out", "transmit queues that timed out", "timed out", regexp.MustCompile(`NETDEV WATCHDOG: .*transmit queue \d+ timed out`)},
	{rtThrottled, "stop of real-time tasks", "stops of real-time tasks", "RT throttling", regexp.MustCompile(`sched: RT throttling activated`)},
	{neighbours, "overflow of the neighbour table", "overflows of the neighbour table", "table overflow", regexp.MustCompile(`neighbou?r(?:\w+)?(?:: \w+)?: neighbor table overflow|[Nn]eighbour table overflow`)},
	{crashed, "crash", "crashes", "", regexp.MustCompile(`^\S+\[\d+\]: segfault at |^kernel BUG at |^general protection fault|^(?:BUG: )?[Uu]nable to handle kernel|^Kernel panic - not syncing|^Oops: `)},
	{sysrqTasks, "list of blocked tasks", "lists of blocked tasks", "Show Blocked State", regexp.MustCompile(`(?i)sysrq ?: Show Blocked State`)},
}

// eventOf finds the event that a line reports; nil: none.
func eventOf(text string) *event {
	if len(text) < 12 || len(text) > 1000 || !eventWords.In(text) {
		return nil
	}
	for i := range events {
		e := &events[i]
		if e.hint != "" && !strings.Contains(text, e.hint) || e.hint == "" && !mayReport(text) {
			continue
		}
		if e.line.MatchString(text) {
			return e
		}
	}
	return nil
}

// reportWords are those of which one stands in every line of an event that has no hint.
var reportWords = attach.NewWords(rareWords)

var rareWords = []string{"nvme", "ata", "I/O", "EXT4-fs", "XFS", "md/raid", "medium error", "BTRFS", "Remounting", "FAILED", "timing out", "DID_TIME",
	"abort", "orphaned", "socket", "tcp_mem", "offline", "dead device", "disabled", "capacity change", "JBD2", "ournal", "device-mapper", "Emask", "mmc", "nbd", "segfault", "BUG", "protection fault", "handle kernel", "panic", "Oops"}

// eventWords spares most lines of a log the search for each event.
var eventWords = attach.NewWords(allWords())

func allWords() []string {
	words := slices.Clone(rareWords)
	for _, e := range events {
		words = append(words, e.hint)
	}
	return words
}

// mayReport spares the costly expressions most lines.
func mayReport(text string) bool { return reportWords.In(text) }
