package kernelfile

import (
	"testing"

	"github.com/whystall/whystall/internal/attach/attachtest/fuzz"
)

func FuzzVmstat(f *testing.F)            { fuzz.Kind(f, vmstat) }
func FuzzBuddyinfo(f *testing.F)         { fuzz.Kind(f, buddyinfo) }
func FuzzMeminfo(f *testing.F)           { fuzz.Kind(f, meminfo) }
func FuzzPressure(f *testing.F)          { fuzz.Kind(f, pressure) }
func FuzzNamedFiles(f *testing.F)        { fuzz.Kind(f, namedFiles) }
func FuzzCpuStat(f *testing.F)           { fuzz.Kind(f, cpuStat) }
func FuzzCpuMax(f *testing.F)            { fuzz.Kind(f, cpuMax) }
func FuzzCpuAcct(f *testing.F)           { fuzz.Kind(f, cpuAcct) }
func FuzzMemoryStat(f *testing.F)        { fuzz.Kind(f, memoryStat) }
func FuzzMemoryEvents(f *testing.F)      { fuzz.Kind(f, memoryEvents) }
func FuzzSysctl(f *testing.F)            { fuzz.Kind(f, sysctl) }
func FuzzChoice(f *testing.F)            { fuzz.Kind(f, choice) }
func FuzzSmaps(f *testing.F)             { fuzz.Kind(f, smaps) }
func FuzzProcMaps(f *testing.F)          { fuzz.Kind(f, procMaps) }
func FuzzNumaMaps(f *testing.F)          { fuzz.Kind(f, numaMaps) }
func FuzzProcStack(f *testing.F)         { fuzz.Kind(f, procStack) }
func FuzzWchan(f *testing.F)             { fuzz.Kind(f, wchan) }
func FuzzKlog(f *testing.F)              { fuzz.Kind(f, klog) }
func FuzzKlogQuote(f *testing.F)         { fuzz.Kind(f, klogQuote) }
func FuzzKillers(f *testing.F)           { fuzz.Kind(f, killers) }
func FuzzStatus(f *testing.F)            { fuzz.Kind(f, status) }
func FuzzProcPIDStat(f *testing.F)       { fuzz.Kind(f, procPIDStat) }
func FuzzProcSched(f *testing.F)         { fuzz.Kind(f, procSched) }
func FuzzLimits(f *testing.F)            { fuzz.Kind(f, limits) }
func FuzzProcIO(f *testing.F)            { fuzz.Kind(f, procIO) }
func FuzzProcCgroup(f *testing.F)        { fuzz.Kind(f, procCgroup) }
func FuzzMounts(f *testing.F)            { fuzz.Kind(f, mounts) }
func FuzzProcStat(f *testing.F)          { fuzz.Kind(f, procStat) }
func FuzzLoadavg(f *testing.F)           { fuzz.Kind(f, loadavg) }
func FuzzInterrupts(f *testing.F)        { fuzz.Kind(f, interrupts) }
func FuzzSoftnet(f *testing.F)           { fuzz.Kind(f, softnet) }
func FuzzSlabinfo(f *testing.F)          { fuzz.Kind(f, slabinfo) }
func FuzzZoneinfo(f *testing.F)          { fuzz.Kind(f, zoneinfo) }
func FuzzPagetypeinfo(f *testing.F)      { fuzz.Kind(f, pagetypeinfo) }
func FuzzUname(f *testing.F)             { fuzz.Kind(f, uname) }
func FuzzOsRelease(f *testing.F)         { fuzz.Kind(f, osRelease) }
func FuzzCmdline(f *testing.F)           { fuzz.Kind(f, cmdline) }
func FuzzLscpu(f *testing.F)             { fuzz.Kind(f, lscpu) }
func FuzzCpuinfo(f *testing.F)           { fuzz.Kind(f, cpuinfo) }
func FuzzNumactl(f *testing.F)           { fuzz.Kind(f, numactl) }
func FuzzUptime(f *testing.F)            { fuzz.Kind(f, uptime) }
func FuzzDiskstats(f *testing.F)         { fuzz.Kind(f, diskstats) }
func FuzzNetDev(f *testing.F)            { fuzz.Kind(f, netDev) }
func FuzzNetSNMP(f *testing.F)           { fuzz.Kind(f, netSNMP) }
func FuzzSockStat(f *testing.F)          { fuzz.Kind(f, sockStat) }
func FuzzSwaps(f *testing.F)             { fuzz.Kind(f, swaps) }
func FuzzCgroupControllers(f *testing.F) { fuzz.Kind(f, cgroupControllers) }
func FuzzFileLocks(f *testing.F)         { fuzz.Kind(f, fileLocks) }
func FuzzSchedDebug(f *testing.F)        { fuzz.Kind(f, schedDebug) }
func FuzzNetTCP(f *testing.F)            { fuzz.Kind(f, netTCP) }
func FuzzOpenFiles(f *testing.F)         { fuzz.Kind(f, openFiles) }
