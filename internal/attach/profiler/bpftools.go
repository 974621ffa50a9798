package profiler

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// A bpfTool is a tool of the BPF collections which prints a line for each event, or a table. It is
// known by the names of its columns.
type bpfTool struct {
	name   string
	has    string          // columns of which all are there
	only   bool            // and no others, in this order
	most   int             // columns at most; 0: any
	unlike string          // a column that it has not
	stacks bool            // stacks of the kernel stand below its rows
	bare   *pattern.Regexp // a row that is known without the names of the columns, which a filter took
	names  string          // the columns of such a row
	read   func(t *bpfTable) attach.Reading
	listed

	want   []string // has, divided
	rarest string   // the longest of them, which few other texts have
	hint   string   // the same as it is printed
}

// listed is what is told of a tool whose rows bear on no cause.
type listed struct {
	what       string // what a row is: "flush"
	by         string // columns of which the first that is there says what is counted; "": the program
	sum        string // columns of which the first that is there is added up; "": rows are counted
	mean       bool   // these columns are rates: their medians are told
	means, not string `prose:"yes"`
}

// bareBlockIO is a row of biosnoop: a time, who, which disk, R or W, where, how much, how long.
var bareBlockIO = pattern.New(`^\d+\.\d{3,9}\s+\S.*?\s+\d+\s+[a-z]\w+\s+[RWDFSUN][A-Z]{0,5}\s+-?\d+\s+\d+\s+\d+\.\d+$`)

// bpfTools are all tools with columns. Where several fit a heading, the first counts.
var bpfTools = divided([]bpfTool{
	{name: "drsnoop", has: "LAT(ms) PAGES", read: readReclaims},
	{name: "biosnoop", has: "DISK LAT(ms)", bare: bareBlockIO,
		names: "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)", read: readBlockIO},
	{name: "slow file calls", has: "LAT(ms) FILENAME", read: readSlowFiles},
	{name: "slow functions", has: "LAT(us) RVAL FUNC", read: readSlowFunctions},
	{name: "slow functions", has: "LAT(ms) RVAL FUNC", read: readSlowFunctions},
	{name: "sslsnoop", has: "TID COMM LAT(us) RET FUNC", listed: tlsCalls},
	{name: "softirqslower", has: "STAGE SOFTIRQ LAT(us)", read: readSlowSoftirqs},
	{name: "runqslower", has: "LAT(us) COMM", read: readSlowQueue},
	{name: "biotop", has: "DISK AVGms", read: readBlockTop},
	{name: "tcplife", has: "TX_KB RX_KB MS", read: readSessions},
	{name: "tcpconnlat", has: "LAT(ms) DADDR", read: readConnects},
	{name: "statsnoop", has: "PID COMM ERR PATH", only: true, read: readOpens},
	{name: "statsnoop", has: "FD ERR SYSCALL PATH", read: readOpens},
	{name: "fsyncsnoop", has: "COMM PID LATms FD FILE", read: readFsyncs},
	{name: "opensnoop", has: "FD ERR PATH", read: readOpens},
	{name: "opensnoop", has: "COMM PID FD FILE", most: 5, read: readOpens},
	{name: "iosnoop", has: "TYPE DEV LATms", read: readOldBlockIO},
	{name: "tcpretrans", has: "LADDR:LPORT RADDR:RPORT STATE", read: readRetransmits},
	{name: "tcpretrans", has: "LADDR:LPORT RADDR:RPORT RETRANSMITS", read: readRetransmitSums},
	{name: "execsnoop", has: "PID ARGS", unlike: "SYSCALL", read: readExecs},
	{name: "syscount", has: "SYSCALL COUNT", read: readCounts},
	{name: "funccount", has: "FUNC COUNT", most: 2, read: readCounts},
	{name: "vfscount", has: "ADDR FUNC COUNT", only: true, read: readCounts},
	{name: "swapin", has: "COMM PID COUNT", only: true, read: readSwapIns},
	{name: "counts by process", has: "PID COMM COUNT", most: 3, read: readCounts},
	{name: "llcstat", has: "REFERENCE MISS HIT%", read: readCache},
	{name: "hardirqs", has: "HARDIRQ", most: 5, read: readInterrupts},
	{name: "softirqs", has: "SOFTIRQ", most: 4, read: readInterrupts},
	{name: "cachestat", has: "HITS MISSES DIRTIES READ_HIT% WRITE_HIT% BUFFERS_MB", unlike: "CMD", read: readCache},
	{name: "cachetop", has: "HITS MISSES DIRTIES READ_HIT% WRITE_HIT%", read: readCache},
	{name: "cachestat", has: "HITS MISSES DIRTIES", read: readCache},
	{name: "gethostlatency", has: "HOST PID", read: readOutside},
	{name: "slow queries", has: "MS QUERY", read: readOutside},
	{name: "dirtop", has: "READS WRITES R_Kb W_Kb PATH", only: true,
		listed: listed{what: "folder", by: "PATH", sum: "READS WRITES",
			means: readsAndWrites,
			not:   cached}},
	{name: "filetop", has: "READS WRITES R_Kb", read: readCounts},
	{name: "vfsstat", has: "READ/s WRITE/s", listed: listed{what: "interval", sum: "READ/s WRITE/s FSYNC/s", mean: true,
		means: "It counts reads, writes and fsyncs of all programs each second.",
		not:   cached}},
	{name: "tcptop", has: "RADDR RX_KB TX_KB", unlike: "MS", read: readSessions},
	{name: "tcptop", has: "RADDR6 RX_KB TX_KB", unlike: "MS", read: readSessions},
	{name: "tcpstates", has: "OLDSTATE MS", read: readSessions},
	{name: "tcpstates", has: "LPORT RPORT OLDSTATE -> NEWSTATE", listed: listed{what: "state change", by: "C-COMM",
		means: "It lists changes of states of connections, each with the milliseconds in the old one.",
		not:   "How long a connection stays open is no latency of a request."}},
	{name: "tcpconnect", has: "PID SADDR DADDR DPORT", unlike: "T", read: readSessions},
	{name: "tcpdrop", has: "SADDR:SPORT DADDR:DPORT", stacks: true, read: readRetransmits},
	{name: "ugc", has: "START TIME(us) DESCRIPTION", read: readPauses},
	{name: "bashreadline", has: "TIME PID COMMAND", only: true, listed: listed{what: "command", by: "PID",
		means: "It lists what people typed into bash: nothing of waiting is in it.",
		not:   "That a command was slow: only when it was typed is in it."}},
	{name: "javagc", has: "TIME CPU PID GC-TIME", only: true, listed: listed{what: "collection", sum: "GC-TIME",
		means: "It lists collections of garbage by a Java virtual machine, each with its microseconds.",
		not:   "Whether the program stood still meanwhile depends on the collector: the GC log says it."}},
	{name: "threadsnoop", has: "TIME(ms) PID COMM FUNC", only: true, read: readNewThreads},
	{name: "trace", has: "PID COMM FUNC", stacks: true, read: readEvents},
	{name: "argdist", has: "COUNT EVENT", most: 2, read: readEvents},
	{name: "compactsnoop", has: "ORDER MODE LAT(ms) STATUS", stacks: true, read: readCompactions},
	{name: "klockstat", has: "Caller AvgSpin Count", stacks: true, read: readKernelLocks},
	{name: "klockstat", has: "Caller AvgHold Count", stacks: true, read: readKernelLocks},
	{name: "klockstat", has: "Caller AvgWait Count", stacks: true, read: readKernelLocks},
	{name: "klockstat", has: "Tid Comm AvgWait Count", stacks: true, read: readKernelLocks},
	{name: "klockstat", has: "Tid Comm AvgHold Count", stacks: true, read: readKernelLocks},
	{name: "tcppktlat", has: "PID TID COMM RADDR RPORT MS", unlike: "TX_KB", read: readLateReads},
	{name: "tcppktlat", has: "PID COMM LADDR LPORT RADDR RPORT MS", unlike: "TX_KB", most: 8, read: readLateReads},
	{name: "numamove", has: "NUMA_migrations NUMA_migrations_ms", read: readPageMoves},

	// Those below say what a machine does, and of no time that anybody waited.
	{name: "dcstat", has: "REFS/s SLOW/s MISS/s HIT%", listed: listed{what: "interval", by: "",
		sum: "REFS/s MISS/s", mean: true,
		means: "It counts look-ups of names of files in the kernel's cache, and those that missed it.",
		not:   "A miss costs microseconds where the folder is in memory: how long anybody waited is not in it."}},
	{name: "biopattern", has: "DISK %RND %SEQ COUNT", listed: listed{what: "interval", by: "DISK", sum: "COUNT",
		means: "It says how much of the I/O went to places far from the last one: random, which rotating disks are slow at.",
		not:   "How long the disk took is not in it."}},
	{name: "exitsnoop", has: "PCOMM AGE(s) EXIT_CODE", listed: listed{what: "end",
		means: "It lists processes that ended, how long each lived and with which status.",
		not:   "An end by a signal may be the service's own restart; what it cost requests is not in it."}},
	{name: "sigsnoop", has: "PID COMM SIG TPID TCOMM RESULT", listed: listed{what: "signal",
		means: "It lists signals, who sent them and to whom.",
		not:   onlyEvents}},
	{name: "killsnoop", has: "SIG TPID RESULT", listed: listed{what: "signal",
		means: "It lists signals, who sent them and to whom.",
		not:   onlyEvents}},
	{name: "killsnoop", has: "COMM PID TPID SIGNAL RETURN", listed: listed{what: "signal",
		means: "It lists signals, who sent them and to whom.",
		not:   onlyEvents}},
	{name: "numasched", has: "PID TID SRC_NID DST_NID", listed: listed{what: "move",
		means: "It lists threads that went on on a CPU of another NUMA node than before: their memory may stay behind, and each access to it then takes longer.",
		not:   "How much longer is not in it, nor that anybody waited."}},
	{name: "capable", has: "COMM CAP NAME AUDIT", stacks: true, listed: listed{what: "check", by: "NAME",
		means: "It lists checks of what a process is permitted.",
		not:   onlyEvents}},
	{name: "dcsnoop", has: "PID COMM T FILE", most: 5, listed: listed{what: "look-up",
		means: "It lists look-ups of names of files: M missed the kernel's cache, R only walked it.",
		not:   "How long anybody waited is not in it."}},
	{name: "filelife", has: "COMM AGE(s) FILE", listed: listed{what: "short-lived file",
		means: "It lists files that were deleted soon after they had been made.",
		not:   onlyEvents}},
	{name: "filegone", has: "PID COMM ACTION FILE", listed: listed{what: "file",
		means: "It lists files that were deleted or renamed, and by whom.",
		not:   onlyEvents}},
	{name: "tcpaccept", has: "COMM RADDR RPORT LADDR LPORT", unlike: "MS", read: readAccepts},
	{name: "tcptracer", has: "T PID COMM IP SADDR DADDR SPORT DPORT", listed: listed{what: "event",
		means: "It lists connections: C opened, A accepted, X closed.",
		not:   "How long one took to open is not in it: tcpconnlat says that."}},
	{name: "tcpconnect -c", has: "LADDR RADDR RPORT CONNECTS",
		listed: listed{what: "peer", by: "RADDR", sum: "CONNECTS",
			means: "It counts connections that were opened. A new one for each request costs a round trip each.",
			not:   "How long one took to open is not in it: tcpconnlat says that."}},
	{name: "tcpcong", has: "Open_ms Dod_ms Rcov_ms Cwr_ms Los_ms Chgs",
		listed: listed{what: "connection", by: "RAddrPort RAddrPort6", sum: "Los_ms",
			means: "It says how long each connection was in which state of congestion control: Los_ms is the time after a timeout, Rcov_ms of sending again.",
			not:   "Congestion is between hosts, outside of this one; how many requests met it is not in it."}},
	{name: "tcpcong", has: "Open_us Dod_us Rcov_us Cwr_us Los_us Chgs",
		listed: listed{what: "connection", by: "RAddrPort RAddrPort6", sum: "Los_us",
			means: "It says how long each connection was in which state of congestion control: Los_us is the time after a timeout, Rcov_us of sending again.",
			not:   "Congestion is between hosts, outside of this one; how many requests met it is not in it."}},
	{name: "bindsnoop", has: "COMM PORT OPTS IF", listed: listed{what: "bind", by: "COMM",
		means: "It lists sockets that were bound to an address.",
		not:   onlyEvents}},
	{name: "solisten", has: "COMM BACKLOG PORT ADDR", listed: listed{what: "listening socket",
		means: "It lists sockets that programs listen at, with the queue that each asked for.",
		not:   "Whether a queue was ever full is not in it: ss -ltn and nstat say that."}},
	{name: "sofdsnoop", has: "ACTION TID COMM SOCKET FD", listed: listed{what: "passed descriptor",
		means: "It lists descriptors that processes passed to each other.",
		not:   onlyEvents}},
	{name: "shmsnoop", has: "SYS RET ARGs", listed: listed{what: "call", by: "SYS",
		means: "It lists calls on System V shared memory.",
		not:   onlyEvents}},
	{name: "mountsnoop", has: "MNT_NS CALL", listed: listed{what: "call",
		means: "It lists mounts and who made them.",
		not:   onlyEvents}},
	{name: "mdflush", has: "PID COMM DEVICE", most: 4, listed: listed{what: "flush", by: "DEVICE",
		means: "It lists flushes of software RAID: each waits for all disks below.",
		not:   "How long a flush took is not in it: biolatency says that."}},
	{name: "syncsnoop", has: "TIME(s) CALL", only: true, listed: syncs},
	{name: "syncsnoop", has: "TIME(s) COMM CALL", only: true, listed: syncs},
	{name: "syncsnoop", has: "TIME PID COMM EVENT", only: true, listed: syncs},
	{name: "writeback", has: "TIME DEVICE PAGES REASON ms", only: true,
		listed: listed{what: "write-back", by: "REASON", sum: "PAGES",
			means: "It lists when the kernel wrote dirty pages to disks, and why.",
			not:   "Write-back runs in threads of the kernel: who waited for it is not in it."}},
	{name: "slabratetop", has: "CACHE ALLOCS BYTES", only: true,
		listed: listed{what: "cache", by: "CACHE", sum: "ALLOCS",
			means: "It counts allocations of the kernel by kind of object.",
			not:   "An allocation is mostly nanoseconds: how long anybody waited is not in it."}},
	{name: "kvmexit", has: "KVM_EXIT_REASON COUNT", listed: listed{what: "reason", by: "KVM_EXIT_REASON", sum: "COUNT",
		means: "It counts why virtual machines left their guests. HLT is a guest with nothing to do.",
		not:   "How long an exit took is not in it."}},
	{name: "virtiostat", has: "Driver Device VQName InSGs OutSGs",
		listed: listed{what: "queue", by: "Device", sum: "InSGs OutSGs",
			means: "It counts buffers that went through queues of virtual devices.",
			not:   "How long the host took for them is not in it."}},
	{name: "uobjnew", has: "TYPE #ALLOCS #BYTES", only: true, listed: listed{what: "type", by: "TYPE", sum: "#ALLOCS",
		means: "It counts objects that a program made, by type: what its collector has to clean up.",
		not:   "What collections cost is not in it: ugc, or the runtime's GC log, says that."}},
	{name: "ucalls", has: "METHOD #CALLS", listed: listed{what: "method", by: "METHOD", sum: "TIME(us) TIME(ms) #CALLS",
		means: "It counts calls of methods; its times are from entry to exit, with all waits and with the methods called.",
		not:   "Sums of nested methods overlap, so they are no shares."}},
	{name: "ustat", has: "PID CMDLINE METHOD/s GC/s OBJNEW/s",
		listed: listed{what: "row", by: "CMDLINE", sum: "GC/s OBJNEW/s METHOD/s", mean: true,
			means: "It counts what runtimes of languages do each second: collections, objects, calls.",
			not:   "How long collections stopped a program is not in it: ugc says that."}},
	{name: "uflow", has: "CPU PID TID TIME(us) METHOD", listed: listed{what: "call", by: "METHOD",
		means: "It lists entries and exits of methods, in order.",
		not:   "Tracing each call makes the program many times slower: its times are not the service's."}},
	{name: "uthreads", has: "TIME ID TYPE DESCRIPTION", only: true, listed: listed{what: "event", by: "TYPE",
		means: "It lists threads that a program started or ended.",
		not:   onlyEvents}},
	{name: "bpflist", has: "PID COMM TYPE COUNT", only: true, listed: listed{what: "row", by: "COMM", sum: "COUNT",
		means: "It lists programs that have BPF programs and maps loaded.",
		not:   "What these cost is not in it: bpftool prog show, with kernel.bpf_stats_enabled, says that."}},
	{name: "naptime", has: "PPID PCOMM PID COMM SECONDS", listed: listed{what: "sleep", sum: "SECONDS",
		means: "It lists sleeps that programs asked for themselves.",
		not:   "Many are pauses of jobs that nobody waits for."}},
	{name: "times by CPU", has: "CPU Count TOTAL_usecs", only: true,
		listed: listed{what: "CPU", by: "CPU", sum: "TOTAL_usecs",
			means: "It adds up microseconds of each CPU: of what, the names of its columns do not say.",
			not:   "A sum says neither how long one of them took, nor over which time they were added up."}},
	{name: "setuids", has: "PID COMM UID SYSCALL ARGS", listed: listed{what: "change",
		means: "It lists processes that changed their user.",
		not:   onlyEvents}},
	{name: "undump", has: "COMM PID SIZE DATA", listed: listed{what: "message", sum: "SIZE",
		means: "It lists messages on sockets between processes of one host.",
		not:   onlyEvents}},
	{name: "ksnoop", has: "TIME CPU PID FUNCTION/ARGS", only: true, listed: listed{what: "call", by: "PID",
		means: "It lists calls of functions of the kernel with their arguments.",
		not:   onlyEvents}},
})

// Sentences that several tools share.
const (
	onlyEvents     = "No time in which somebody waited is in it; many events are no loss by themselves."
	readsAndWrites = "It counts reads and writes, and how much they moved."
	cached         = "Most of them are served from memory: how long they took, and what a disk had to do with them, is not in it."
)

var (
	syncs = listed{what: "sync",
		means: "It lists calls that make the kernel write: sync writes all dirty pages, syncfs those of one file system, and fsync and fdatasync those of one file.", not: "How long one took, and who waited, is not in it: ext4slower or biolatency says that."}
	tlsCalls = listed{what: "call", sum: "LAT(us)",
		means: "It lists calls of a TLS library with their microseconds; a handshake's cryptography is CPU time of the service.", not: "A read waits for the peer: such time is no loss here."}
)

// divided fills in what is made of has.
func divided(tools []bpfTool) []bpfTool {
	for i := range tools {
		t := &tools[i]
		t.want = strings.Fields(t.has)
		t.rarest = slices.MaxFunc(t.want, func(a, b string) int { return len(a) - len(b) })
		t.hint = asPrinted(t.rarest)
		if t.read == nil {
			t.read = readListed
		}
	}
	return tools
}

// toolsWith are the places of tools in the table by their rarest column.
var toolsWith = func() map[string][]int {
	out := map[string][]int{}
	for i, t := range bpfTools {
		out[t.rarest] = append(out[t.rarest], i)
	}
	return out
}()

// columnsOf gives the names of the columns if a line is the header of a known tool.
func columnsOf(text string) (*bpfTool, []string) {
	if len(text) > 240 {
		return nil, nil
	}
	if text == "" || text[0] >= '0' && text[0] <= '9' || strings.HasPrefix(text, "Tracing ") { // most rows and notes
		return nil, nil
	}
	columns := strings.Fields(twoWords.Replace(text))
	best := len(bpfTools)
	for _, c := range columns {
		if c != "ms" && strings.Trim(c, "abcdefghijklmnopqrstuvwxyz") == "" { // a sentence with such words in it
			return nil, nil
		}
		for _, i := range toolsWith[c] {
			if i < best && bpfTools[i].headed(columns) {
				best = i
			}
		}
	}
	if len(columns) < 2 || best == len(bpfTools) {
		return nil, nil
	}
	return &bpfTools[best], columns
}

// bareColumns are the columns of rows that have no names above them; nil: they may be of any tool.
func (t *bpfTool) bareColumns(lines []paste.Line) []string {
	if t.bare == nil || len(lines) < 2 {
		return nil
	}
	for _, l := range lines[:2] {
		if len(l.Text) > 240 || !t.bare.MatchString(strings.TrimSpace(l.Text)) {
			return nil
		}
	}
	return strings.Fields(t.names)
}

// headed reports whether columns are this tool's.
func (t *bpfTool) headed(columns []string) bool {
	switch {
	case t.only:
		return slices.Equal(columns, t.want)
	case t.most > 0 && len(columns) > t.most, t.unlike != "" && slices.Contains(columns, t.unlike):
		return false
	}
	return !slices.ContainsFunc(t.want, func(c string) bool { return !slices.Contains(columns, c) })
}
