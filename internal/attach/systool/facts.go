package systool

import "github.com/whystall/whystall/internal/attach"

// Facts that several kinds of this room write, for rules over several parts. Those of a rate are
// medians over samples, and never of the row since boot.
const (
	StealShare       attach.FactName = "/host/cpu/steal:ratio"      // of all CPUs' time
	IOWaitShare      attach.FactName = "/host/cpu/iowait:ratio"     // the same
	IdleShare        attach.FactName = "/host/cpu/idle:ratio"       // the same, without iowait
	CPUs             attach.FactName = "/host/cpus:cpus"            // of the host, or that a process may use
	RunQueuePerCPU   attach.FactName = "/host/cpu/runnable:per-cpu" // running ones included
	RunQueue         attach.FactName = "/host/cpu/runnable:threads" // the same, where the CPUs are not known
	SwapUsed         attach.FactName = "/host/swap/used:bytes"
	SegmentsAgain    attach.FactName = "/net/tcp/retransmitted:segments" // since boot, as the next one
	ListenOverflows  attach.FactName = "/net/listen/overflows:connections"
	SwapInRate       attach.FactName = "/host/swap/in:bytes/s"
	SwapOutRate      attach.FactName = "/host/swap/out:bytes/s"
	MajorFaultRate   attach.FactName = "/host/memory/major-faults:faults/s"    // Of: a process, or "" of the host
	DirectScanRate   attach.FactName = "/host/memory/direct-scan:pages/s"      // sar's pgscand/s
	RunWaitShare     attach.FactName = "/process/cpu/wait:ratio"               // Of: command/pid
	ProcessCPU       attach.FactName = "/process/cpu/use:cpus"                 // Of: command/pid
	MemoryAvailable  attach.FactName = "/host/memory/available:ratio"          // of all memory
	PageCacheBytes   attach.FactName = "/host/memory/page-cache:bytes"         //
	OtherNodeShare   attach.FactName = "/host/numa/other-node:ratio"           // of pages allocated, since boot
	Quota            attach.FactName = "/cgroup/cpu/quota:cpus"                // 0: none at this level
	Orphans          attach.FactName = "/net/tcp/orphans:sockets"              //
	ContainerCPU     attach.FactName = "/container/cpu/use:cpus"               // Of: the container
	ContainerMemory  attach.FactName = "/container/memory/used-of-max:ratio"   // Of: the container
	ListenQueueShare attach.FactName = "/net/listen/queue-of-backlog:ratio"    // Of: the address
	DeviceAwait      attach.FactName = "/disk/io/await:ms"                     // Of: the device
	SwitchRate       attach.FactName = "/host/cpu/context-switches:switches/s" //
)
