package kernelfile

import "github.com/whystall/whystall/internal/attach"

// Kinds lists the kinds of this room.
func Kinds() []*attach.Kind {
	return []*attach.Kind{
		vmstat, buddyinfo, meminfo, pressure,
		namedFiles, cpuStat, cpuAcct, cpuMax, memoryStat, memoryEvents, sysctl, choice,
		smaps, procMaps, numaMaps, procStack, wchan, klog, klogQuote, killers,
		groupIO, status, procPIDStat, procSched, limits, procIO, procCgroup, mounts,
		procStat, hostSched, loadavg, interrupts, softnet, slabinfo, zoneinfo, pagetypeinfo, nodeStat,
		diskstats, netDev, netSNMP, netTCP, sockStat, conntrackKind, swaps, cgroupControllers, fileLocks, schedDebug,
		androidCPU, uname, openFiles, osRelease, cmdline, lscpu, cpuinfo, numactl, uptime,
	}
}
