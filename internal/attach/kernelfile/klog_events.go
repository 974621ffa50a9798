package kernelfile

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// event is a thing that the kernel reports of itself.
type event struct {
	name  eventName
	words string // one of them, and several
	many  string
	hint  string // stands in every such line, or one of several, to spare the expression
	line  *pattern.Regexp
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
	vmallocFail eventName = "vmalloc failure"
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
	diskAborted eventName = "scsi abort"
	diskReset   eventName = "scsi reset"
	usbReset    eventName = "usb reset"
	diskLink    eventName = "disk transmission"
	fsDown      eventName = "file system down"
	farDisk     eventName = "storage network"
	memDeadlock eventName = "memory of a file system"
	hwCorrected eventName = "corrected hardware error"
	hwBroken    eventName = "hardware error"
	busError    eventName = "pcie"
	netReset    eventName = "network reset"
	netDown     eventName = "carrier"
	auditFull   eventName = "audit"
	pidsFull    eventName = "pids"
	filesFull   eventName = "files"
	poolStuck   eventName = "workqueue lockup"
)

// events is the table, by the kernel's own formats of its messages. Groups are named in the reader.
var events = []event{
	{hungTask, "report of a hung task", "reports of hung tasks", "blocked ",
		pattern.New(`INFO: task (.+):([^\s:]+) blocked (?:in I/O wait )?for more than (\d+) seconds`)},
	{lockOwner, "owner of a lock", "owners of locks", "likely owned by",
		pattern.New(`INFO: task (.+?):(\d+)(?: <\w+>)?(?: is)? blocked on an? ([\w-]+),? likely owned by task (.+?):(\d+)(?:[^:\d]|$)`)},
	{softLockup, "soft lockup", "soft lockups", "soft lockup",
		pattern.New(`BUG: soft lockup\W{1,5}CPU#(\d+) stuck for (\d+) ?s(?:econds)?!(?:\W{0,3}\[(.+?):(\d+)\])?`)},
	{hardLockup, "hard lockup", "hard lockups", "ard LOCKUP", pattern.New(`[Hh]ard LOCKUP on cpu ?(\d+)`)},
	{rcuStall, "RCU stall", "RCU stalls", "tall|All QSes seen",
		pattern.New(`All QSes seen, last rcu\w* kthread activity \d+|(rcu\w*)(?: kthread)?(?:_state)?.*(?:self-)?detected (?:expedited )?stalls?`)},
	{oomGroup, "process killed at a cgroup's memory limit",
		"processes killed at a cgroup's memory limit", "ill",
		pattern.New(`Memory cgroup out of memory: Kill(?:ed)? process (\d+) \((\(?[^)]*\)?)\)(.*)`)},
	{oomKill, "process killed for lack of memory", "processes killed for lack of memory", "ill",
		pattern.New(`Out of [Mm]emory(?: \(oom_kill_allocating_task\))?: [Kk]ill(?:ed)? process (\d+) \((\(?[^)]*\)?)\)(.*)`)},
	{oomDetail, "oom report", "oom reports", "oom", pattern.New(`invoked oom-killer|^\s*oom-kill:constraint=`)},
	{allocStall, "allocation that stalled", "allocations that stalled", "stalls for",
		pattern.New(`^(.*?): page allocation stalls for (\d+)ms, order:(\d+)(?:, mode:\S*?\(([\w|]+)\))?`)},
	{vmallocFail, "failed vmalloc", "failed vmallocs", "vmalloc",
		pattern.New(`^(?:(.*?): )?vmalloc(?:: allocation failure(?:: |, allocated \d+ of )| error: size )(\d+)`)},
	{allocFail, "failed allocation of pages", "failed allocations of pages", "allocation failure",
		pattern.New(`^(.*?): page allocation failure[.:] order:(\d+), mode:(\S+)`)},
	{conntrack, "message that the table of connections is full",
		"messages that the table of connections is full", "table full",
		pattern.New(`(?:nf|ip)_conntrack\w*: .*table full(?:, dropping packet|[.,]?$)`)},
	{synFlood, "message of too many connection requests",
		"messages of too many connection requests", "SYN flooding",
		pattern.New(`ossible SYN flooding on port (?:\S*?:)?(\d+)`)},
	{clockBad, "message that the clock is unstable", "messages that the clock is unstable",
		"nstable", pattern.New(`(?i)^(?:clocksource: )?(?:timekeeping watchdog\S*(?: on CPU\d+)?: )?(?:marking )?clocksource '?([\w-]+)'? (?:as )?unstable|^(?:tsc: )?Marking (TSC) unstable|^(TSC) found unstable|marking (tsc) unstable$`)},
	{diskPolled, "disk command whose interrupt was lost",
		"disk commands whose interrupts were lost", "completion polled",
		pattern.New(`nvme\S* .*timeout, completion polled`)},
	{portReset, "reset of a disk's link", "resets of disks' links", "link",
		pattern.New(`ata\d+(?:\.\d+)?: (?:link is slow to respond|(?:hard|soft) resetting link)`)},
	{portFrozen, "exception that froze a disk's port", "exceptions that froze a disk's port",
		"frozen", pattern.New(`ata\d+(?:\.\d+)?: exception Emask .* frozen`)},
	{diskTimeout, "time-out of a disk command", "time-outs of disk commands", "",
		pattern.New(`nvme\d*:? (?:I/O|I/O tag) .*timeout|nvme\S* .*controller is down|Emask 0x[0-9a-f]+ \(timeout\)|timing out command, waited|DID_TIME_OUT|timeout error, dev |virtio_scsi.*timeout|blk_mq_timeout|mmc\d+: .*[Tt]imeout waiting for|nbd\d+: (?:Connection|Possible stuck request)`)},
	{diskAborted, "SCSI command that was aborted", "SCSI commands that were aborted",
		"attempting task|task abort|bort command issued|abort_handler|abort request|borting command", pattern.New(`attempting task abort|task abort on host|[Aa]bort command issued|uas_eh_abort_handler|Host adapter abort request|sd \d+:\d+:\d+:\d+: .*(?:[Aa]borting command|task abort:? (?:for|of))|scsi\d*: .*eh_abort_handler`)},
	{diskReset, "reset of a disk or its controller", "resets of a disk or its controller",
		"attempting |reset_handler|eset request|esetting |eset issued|ssued |eset on host|USB device", pattern.New(`attempting (?:device|target|host|bus|lun|controller) reset|uas_eh_\w+reset_handler(?: start)?$|(?i:host (?:adapter |bus )?reset request|resetting (?:fusion adapter|logical|physical|controller)|issued (?:device|target|lun|bus) reset|(?:device|target|lun|bus|adapter) reset issued|(?:device|target|lun|bus) reset on host)`)},
	{usbReset, "reset of a USB device", "resets of USB devices", "USB device",
		pattern.New(`(?i): reset (?:super|high|full|low)[- ]?speed(?: plus)?(?: gen \S+)? USB device`)},
	{diskLink, "transmission error on the way to a disk",
		"transmission errors on the way to a disk", "rror: {",
		pattern.New(`ata\d+(?:\.\d+)?: (?:SError: \{[^}]*\b(?:BadCRC|10B8B|Dispar|Handshk|UnrecovData|LinkSeq|TrStaTrns|PHYRdyChg)\b|error: \{ ICRC)`)},
	{fsDown, "file system or pool that was shut down", "file systems or pools that were shut down",
		"force_shutdown|hutting down|hut down|Remounting|forced readonly|has been suspended|F2FS-fs", pattern.New(`XFS \(\S+\): .*(?:xfs_do_force_shutdown|[Ss]hut(?:ting)? down|has been shut down)|Remounting filesystem read-only|BTRFS.*forced readonly|Pool '[^']*' has encountered an uncorrectable I/O failure and has been suspended|F2FS-fs .*(?:shutdown|remount.*read-only)`)},
	{farDisk, "message of a disk behind a network", "messages of disks behind a network",
		"detected conn error|ping timeout of|recovery timed out|blocked FC remote|PingAck|drbd|starting error recovery|failed to send request|reconnecting in|libceph|result -1", pattern.New(`connection\d+:\d+: (?:ping timeout of|detected conn error)|session\d+: session recovery timed out|rport-\d+:\d+-\d+: blocked FC remote port|drbd .*: (?:PingAck did not arrive|sock was shut down|ack_receiver terminated)|nvme nvme\d+: (?:failed to send request|starting error recovery|reconnecting in)|libceph: (?:osd|mon)\d+ .*(?:down|session lost|socket (?:closed|error)|connect(?:ion)? (?:error|timed out))|rbd\d*: .*result -1[01]\d`)},
	{memDeadlock, "allocation of XFS that is tried again and again",
		"allocations of XFS that are tried again and again", "possible memory allocation deadlock",
		pattern.New(`XFS(?: \(\S+\))?: (?:(\S.*?)\((\d+)\) )?possible memory allocation deadlock(?: size (\d+))?`)},
	{hwBroken, "hardware error that was not corrected", "hardware errors that were not corrected",
		"EDAC|[Hardware Error]|AER: |severity=Unc|Memory failure",
		pattern.New(`EDAC \S+: (?:\d+ )?UE |\[Hardware Error\]: .*(?:[Uu]ncorrected|event severity: (?:fatal|recoverable)|STATUS\[[^]]*\bUE\b)|AER: .*(?:Uncorrected|Fatal)|severity=(?:Uncorrected|Uncorrectable)|Memory failure: 0x`)},
	{hwCorrected, "hardware error that was corrected", "hardware errors that were corrected",
		"EDAC|[Hardware Error]|CMCI storm",
		pattern.New(`EDAC \S+: (?:\d+ )?CE |\[Hardware Error\]: .*(?:STATUS\[[^]]*\bCE\b|[Cc]orrected error|event severity: corrected)|CMCI storm detected`)},
	{busError, "corrected error of a PCIe link", "corrected errors of a PCIe link",
		"PCIe Bus Error|AER: ",
		pattern.New(`PCIe Bus Error: severity=Correct(?:ed|able)|AER: (?:Multiple )?Correct(?:ed|able) error (?:message )?received`)},
	{diskError, "disk or file system error", "disk or file system errors", "",
		pattern.New(`I/O error,? (?:on )?dev (?:sd|nvme|vd|xvd|dm-|md|mmc|hd)|Buffer I/O error on dev(?:ice)? (?:sd|nvme|vd|xvd|dm-|md|mmc|hd)|EXT4-fs error|EXT4-fs warning .*I/O error|XFS \(\S+\): (?i:metadata I/O error|metadata corruption|log I/O error|corruption|internal error|writeback error|I/O error)|md/raid\S*: Disk failure|ata\d+(?:\.\d+)?: (?:error:|exception)|critical (?:medium|target|nexus) error, dev|BTRFS:? (?:error|critical) \(device|BTRFS warning \(device \S+\): (?:csum failed|checksum verify failed|lost page write|direct IO failed|i/o error)|FAILED Result:|Sense Key : (?:Medium|Hardware) Error|Device not ready; aborting|JBD2: (?:Error|Detected IO errors)|Aborting journal on device|device-mapper: .*Failing path`)},
	{diskFailed, "failed disk command", "failed disk commands", "failed command: ",
		pattern.New(`ata\d+(?:\.\d+)?: failed command: ([A-Z0-9 _/-]+)`)},
	{diskGone, "message that a disk was given up", "messages that disks were given up", "",
		pattern.New(`nvme\d+: (?:Removing after probe failure|Disabling device after reset failure)|detected capacity change from [1-9]\d* to 0$|rejecting I/O to (?:offline|dead) device|ata\d+\.\d+: (?:disabled|disable device)|[Dd]evice offlined`)},
	{fileServer, "message of a file server that does not answer",
		"messages of a file server that does not answer", "respon",
		pattern.New(`(nfs4?|lockd|rpc\w*|NFS\w*|CIFS|SMB\w*|ceph|libceph)\S*:? .*?(?:[Ss]erver |\\\\)(\S+?)(?:,| has)? (not responding|not responded)`)},
	{tcpMemory, "message of a limit of TCP", "messages of a limit of TCP", "",
		pattern.New(`(?i)^\W*(?:[\w.-]+: ){0,3}(?:too many (?:of )?orphaned sockets|out of socket memory)|TCP: out of memory|consider tuning tcp_mem`)},
	{timeWait, "overflow of the table of TIME-WAIT sockets",
		"overflows of the table of TIME-WAIT sockets", "time wait bucket",
		pattern.New(`time wait bucket table overflow`)},
	{slowTimer, "long timer interrupt", "long timer interrupts", "hrtimer",
		pattern.New(`hrtimer: interrupt took (\d+) ns`)},
	{rcuStarved, "starved RCU thread", "starved RCU threads", "starved",
		pattern.New(`(rcu\w*) kthread starved for (\d+) jiffies`)},
	{thermal, "message that heat slows the CPU", "messages that heat slows the CPU",
		"temperature above", pattern.New(`temperature above threshold, cpu clock (?:is )?throttled(?: \(total events = (\d+)\))?`)},
	{perfSlow, "slow perf interrupt", "slow perf interrupts", "too long",
		pattern.New(`perf: interrupt took too long|NMI handler .* took too long|perf samples too long`)},
	{hogged, "worker that hogged a CPU", "workers that hogged a CPU", "hogged CPU",
		pattern.New(`workqueue: (\S+).* hogged CPU for >(\d+)us`)},
	{netTimeout, "time-out of a transmit queue", "time-outs of transmit queues",
		"NETDEV WATCHDOG|TX timeout|Unit Hang|on time|: tx timeout|: Tx timeout|transmit timed out|tx_timeout", pattern.New(`NETDEV WATCHDOG: .*transmit queue \d+ timed out|: TX timeout (?:detected|on queue)|Detected (?:Tx Unit|Hardware Unit) Hang|Found a Tx that wasn't completed on time|TX hasn't completed on time|: [Tt]x timeout|transmit timed out, resetting|tx_timeout recovery level`)},
	{netReset, "reset of a network device", "resets of network devices",
		"due to tx timeout|Reset adapter|PF reset|Trigger reset|starting reset",
		pattern.New(`initiating reset due to tx timeout|: Reset adapter|PF reset issued|Trigger reset is on|starting reset task`)},
	{netDown, "loss of a network link", "losses of network links",
		"ink is |link status |link down|carrier lost|: link ",
		pattern.New(`(?:NIC )?[Ll]ink is [Dd]own|: link (?:status definitely )?down(?: for interface \S+, disabling it)?[,;.]?(?: |$)|carrier lost`)},
	{auditFull, "message that the queue of audit records is full",
		"messages that the queue of audit records is full", "audit: |kauditd",
		pattern.New(`audit: (?:backlog limit exceeded|audit_backlog=\d+ > audit_backlog_limit|audit_lost=\d+)|kauditd (?:hold|retry) queue overflow`)},
	{pidsFull, "fork that a cgroup refused", "forks that a cgroup refused", "fork rejected",
		pattern.New(`cgroup: fork rejected by pids controller in (\S+)`)},
	{filesFull, "message that the host's table of files is full",
		"messages that the host's table of files is full", "file-max",
		pattern.New(`VFS: file-max limit (\d+) reached`)},
	{poolStuck, "stuck pool of the kernel's workers", "stuck pools of the kernel's workers",
		"workqueue lockup", pattern.New(`BUG: workqueue lockup - pool cpus=(\S+) .*stuck for (\d+)s`)},
	{rtThrottled, "stop of real-time tasks", "stops of real-time tasks", "RT throttling",
		pattern.New(`sched: RT throttling activated`)},
	{neighbours, "overflow of the neighbour table", "overflows of the neighbour table",
		"table overflow", pattern.New(`neighbou?r(?:\w+)?(?:: \w+)?: neighbor table overflow|[Nn]eighbour table overflow`)},
	{crashed, "crash", "crashes", "",
		pattern.New(`^\S+\[\d+\]: segfault at |^kernel BUG at |^general protection fault|^(?:BUG: )?[Uu]nable to handle kernel|^Kernel panic - not syncing|^Oops: `)},
	{sysrqTasks, "list of blocked tasks", "lists of blocked tasks", "Show Blocked State",
		pattern.New(`(?i)sysrq ?: Show Blocked State`)},
}

// eventOf finds the event that a line reports; nil: none.
func eventOf(text string) *event {
	if len(text) < 12 || len(text) > 1000 || !eventWords.In(text) {
		return nil
	}
	for i := range events {
		e := &events[i]
		if e.hint != "" && !hinted(e.hint, text) || e.hint == "" && !mayReport(text) {
			continue
		}
		if e.line.MatchString(text) {
			return e
		}
	}
	return nil
}

// hinted reports whether one of an event's hints stands in a line; bars stand between them.
func hinted(hints, text string) bool {
	for hints != "" {
		var h string
		if h, hints, _ = strings.Cut(hints, "|"); strings.Contains(text, h) {
			return true
		}
	}
	return false
}

// reportWords are those of which one stands in every line of an event that has no hint.
var reportWords = attach.NewWords(rareWords)

var rareWords = []string{"nvme", "ata", "I/O", "EXT4-fs", "XFS", "md/raid", "medium error", "BTRFS",
	"Remounting", "FAILED", "timing out", "DID_TIME",
	"abort", "orphaned", "socket", "tcp_mem", "timeout error", "Sense Key", "target error",
	"nexus error", "offline", "dead device", "disabled", "capacity change", "JBD2", "ournal",
	"device-mapper", "Emask", "mmc", "nbd", "segfault", "BUG", "protection fault", "handle kernel", "panic", "Oops"}

// eventWords spares most lines of a log the search for each event.
var eventWords = attach.NewWords(allWords())

func allWords() []string {
	words := slices.Clone(rareWords)
	for _, e := range events {
		words = append(words, strings.Split(e.hint, "|")...)
	}
	return words
}

// mayReport spares the costly expressions most lines.
func mayReport(text string) bool { return reportWords.In(text) }
