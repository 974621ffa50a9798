package kernelfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// fuzz sees to it that a kind neither panics nor claims more than there is, whatever the text.
func fuzz(f *testing.F, k *attach.Kind) {
	f.Helper()
	names, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(data).Files {
			if file.Name != "want" {
				f.Add(file.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := paste.Lines(data)
		for at := 0; at < len(lines); {
			n := k.Claim(lines[at:])
			if n < 0 || n > len(lines)-at {
				t.Fatalf("claims %d of %d lines", n, len(lines)-at)
			}
			if n == 0 {
				at++
				continue
			}
			p := &attach.Part{Kind: k, Lines: lines[at : at+n]}
			if lines[at].Command != "" && n > 1 {
				p.Command, p.Lines = lines[at].Command, p.Lines[1:]
			}
			if k.Read != nil {
				r := k.Read(p)
				if r.Title == "" || r.Means == "" || r.State == "" {
					t.Fatalf("an empty reading: %+v", r)
				}
			}
			at += n
		}
	})
}

func FuzzVmstat(f *testing.F)       { fuzz(f, vmstat) }
func FuzzBuddyinfo(f *testing.F)    { fuzz(f, buddyinfo) }
func FuzzMeminfo(f *testing.F)      { fuzz(f, meminfo) }
func FuzzPressure(f *testing.F)     { fuzz(f, pressure) }
func FuzzNamedFiles(f *testing.F)   { fuzz(f, namedFiles) }
func FuzzCpuStat(f *testing.F)      { fuzz(f, cpuStat) }
func FuzzCpuMax(f *testing.F)       { fuzz(f, cpuMax) }
func FuzzMemoryStat(f *testing.F)   { fuzz(f, memoryStat) }
func FuzzMemoryEvents(f *testing.F) { fuzz(f, memoryEvents) }
func FuzzSysctl(f *testing.F)       { fuzz(f, sysctl) }
func FuzzChoice(f *testing.F)       { fuzz(f, choice) }
func FuzzSmaps(f *testing.F)        { fuzz(f, smaps) }
func FuzzProcMaps(f *testing.F)     { fuzz(f, procMaps) }
func FuzzNumaMaps(f *testing.F)     { fuzz(f, numaMaps) }
func FuzzProcStack(f *testing.F)    { fuzz(f, procStack) }
func FuzzWchan(f *testing.F)        { fuzz(f, wchan) }
func FuzzKlog(f *testing.F)         { fuzz(f, klog) }
func FuzzStatus(f *testing.F)       { fuzz(f, status) }
func FuzzProcPIDStat(f *testing.F)  { fuzz(f, procPIDStat) }
func FuzzProcSched(f *testing.F)    { fuzz(f, procSched) }
func FuzzLimits(f *testing.F)       { fuzz(f, limits) }
func FuzzProcIO(f *testing.F)       { fuzz(f, procIO) }
func FuzzProcCgroup(f *testing.F)   { fuzz(f, procCgroup) }
func FuzzMounts(f *testing.F)       { fuzz(f, mounts) }
func FuzzProcStat(f *testing.F)     { fuzz(f, procStat) }
func FuzzLoadavg(f *testing.F)      { fuzz(f, loadavg) }
func FuzzInterrupts(f *testing.F)   { fuzz(f, interrupts) }
func FuzzSoftnet(f *testing.F)      { fuzz(f, softnet) }
func FuzzSlabinfo(f *testing.F)     { fuzz(f, slabinfo) }
func FuzzZoneinfo(f *testing.F)     { fuzz(f, zoneinfo) }
func FuzzPagetypeinfo(f *testing.F) { fuzz(f, pagetypeinfo) }
func FuzzUname(f *testing.F)        { fuzz(f, uname) }
func FuzzOsRelease(f *testing.F)    { fuzz(f, osRelease) }
func FuzzCmdline(f *testing.F)      { fuzz(f, cmdline) }
func FuzzLscpu(f *testing.F)        { fuzz(f, lscpu) }
func FuzzCpuinfo(f *testing.F)      { fuzz(f, cpuinfo) }
func FuzzNumactl(f *testing.F)      { fuzz(f, numactl) }
func FuzzUptime(f *testing.F)       { fuzz(f, uptime) }
