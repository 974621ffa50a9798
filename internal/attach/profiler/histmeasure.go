package profiler

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// measure is what the values of a histogram are.
type measure string

const (
	ofRunQueue measure = "run queue latency"
	ofQueueLen measure = "run queue length"
	ofDisk     measure = "latency of block device I/O"
	ofOnCPU    measure = "time on a CPU between two switches"
	ofOffCPU   measure = "time off CPU between two switches"
	ofFiles    measure = "latency of file system calls"
	ofReads    measure = "time in reads and writes, of files, sockets or whatever else"
	ofFunction measure = "time in a function"
	ofInterrup measure = "time in interrupts"
	ofRTT      measure = "TCP round trip time"
	ofQueries  measure = "latency of a database's queries"
	ofWork     measure = "time that work of the kernel queued"
	ofSizes    measure = "sizes"
	ofBacklog  measure = "length of the queue of new connections"
	ofLatency  measure = "a latency, by the name of its map"
	ofUnknown  measure = "values of which the text does not say what they are"
)

// oneFunction is the first line of funclatency of libbpf: the function alone, or a program's.
var oneFunction = pattern.New(`(?m)^tracing (?:[\w./-]+:)?[a-z_][\w.]*\. +hit ctrl-c to exit\.?$`)

// offCPUDist is the command of cpudist with the option -O, by which it measures time off CPU.
var offCPUDist = pattern.New(`cpudist(?:-bpfcc|\.py)?\s(?:.*\s)?(?:-[A-Za-z]*O[A-Za-z]*|--offcpu)(?:\s|$)`)

// measureOf says what is measured, by the words of the tool and the command above it.
func measureOf(context string) measure {
	c := strings.ToLower(context)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(c, w) })
	}
	switch {
	case has("run queue latency", "runqlat", "tracing cpu scheduler"), has("sched_wakeup") && has("sched_switch"):
		return ofRunQueue
	case has("run queue length", "runqlen"):
		return ofQueueLen
	case has("syn backlog", "tcpsynbl", "backlog_max"):
		return ofBacklog
	case has("bitesize", "kbytes", "size_t", "@bytes", "_bytes"):
		return ofSizes
	case has("disk = "), has("block device i/o", "block i/o", "biolatency", "block_rq_issue",
		"block_rq_complete", "bio latency"):
		return ofDisk
	case has("off-cpu time"), offCPUDist.MatchString(context):
		return ofOffCPU
	case has("on-cpu time", "cpudist"):
		return ofOnCPU
	case has("operation latency", "ext4dist", "xfsdist", "btrfsdist", "nfsdist", "zfsdist",
		"f2fsdist", "operation = ", "fsync"):
		return ofFiles
	case has("sys_enter_read", "sys_enter_write", "vfs_read", "vfs_write"):
		return ofReads
	case has("irq event time", "softirq = ", "hardirq = ", "hardirqs", "softirqs"):
		return ofInterrup
	case has("rtt", "round trip"):
		return ofRTT
	case has("query latency", "database queries"):
		return ofQueries
	case has("work queue request", "wqlat"):
		return ofWork
	case has("tracing 1 function", "functions for", "funclatency", "function = "), oneFunction.MatchString(c):
		return ofFunction
	}
	return ofUnknown
}

// timed reports whether values of a measure are times.
func (m measure) timed() bool {
	return m != ofQueueLen && m != ofSizes && m != ofBacklog && m != ofUnknown && m != ofLatency
}
