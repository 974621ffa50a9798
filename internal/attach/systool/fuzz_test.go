package systool

import (
	"testing"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/attach/attachtest/fuzz"
	"github.com/whystall/whystall/internal/format/paste"
)

func FuzzFree(f *testing.F)          { fuzz.Kind(f, free) }
func FuzzIostat(f *testing.F)        { fuzz.Kind(f, iostat) }
func FuzzNumastat(f *testing.F)      { fuzz.Kind(f, numastat) }
func FuzzPs(f *testing.F)            { fuzz.Kind(f, ps) }
func FuzzSar(f *testing.F)           { fuzz.Kind(f, sar) }
func FuzzTop(f *testing.F)           { fuzz.Kind(f, top) }
func FuzzVmstat(f *testing.F)        { fuzz.Kind(f, vmstat) }
func FuzzVmstatSums(f *testing.F)    { fuzz.Kind(f, vmstatSums) }
func FuzzUptime(f *testing.F)        { fuzz.Kind(f, uptime) }
func FuzzSetting(f *testing.F)       { fuzz.Kind(f, setting) }
func FuzzDf(f *testing.F)            { fuzz.Kind(f, df) }
func FuzzSS(f *testing.F)            { fuzz.Kind(f, ss) }
func FuzzNetstat(f *testing.F)       { fuzz.Kind(f, netstatSums) }
func FuzzNetdev(f *testing.F)        { fuzz.Kind(f, netdev) }
func FuzzTC(f *testing.F)            { fuzz.Kind(f, tc) }
func FuzzEthtool(f *testing.F)       { fuzz.Kind(f, ethtool) }
func FuzzBusyboxTop(f *testing.F)    { fuzz.Kind(f, busyboxTop) }
func FuzzForeignTop(f *testing.F)    { fuzz.Kind(f, foreignTop) }
func FuzzHtop(f *testing.F)          { fuzz.Kind(f, htop) }
func FuzzOldTop(f *testing.F)        { fuzz.Kind(f, oldTop) }
func FuzzDstat(f *testing.F)         { fuzz.Kind(f, dstat) }
func FuzzAtop(f *testing.F)          { fuzz.Kind(f, atop) }
func FuzzContainers(f *testing.F)    { fuzz.Kind(f, containers) }
func FuzzLoad(f *testing.F)          { fuzz.Kind(f, load) }
func FuzzCurl(f *testing.F)          { fuzz.Kind(f, curl) }
func FuzzPing(f *testing.F)          { fuzz.Kind(f, ping) }
func FuzzTurbostat(f *testing.F)     { fuzz.Kind(f, turbostat) }
func FuzzCpupower(f *testing.F)      { fuzz.Kind(f, cpupower) }
func FuzzLsof(f *testing.F)          { fuzz.Kind(f, lsof) }
func FuzzIotop(f *testing.F)         { fuzz.Kind(f, iotop) }
func FuzzFio(f *testing.F)           { fuzz.Kind(f, fio) }
func FuzzMpstat(f *testing.F)        { fuzz.Kind(f, mpstat) }
func FuzzPidstat(f *testing.F)       { fuzz.Kind(f, pidstat) }
func FuzzDescribePod(f *testing.F)   { fuzz.Kind(f, describePod) }
func FuzzDescribeNode(f *testing.F)  { fuzz.Kind(f, describeNode) }
func FuzzDockerInspect(f *testing.F) { fuzz.Kind(f, dockerInspect) }
func FuzzDockerJSON(f *testing.F)    { fuzz.Kind(f, dockerJSON) }
func FuzzUnit(f *testing.F)          { fuzz.Kind(f, unit) }

func FuzzDiskSums(f *testing.F) { fuzz.Kind(f, diskSums) }
func FuzzNFS(f *testing.F)      { fuzz.Kind(f, nfs) }

func FuzzGrid(f *testing.F) {
	first := func(lines []paste.Line) (*attach.Kind, int) {
		for _, k := range gridKinds() {
			if n := k.Claim(lines); n > 0 {
				return k, n
			}
		}
		return nil, 0
	}
	fuzz.Kind(f, &attach.Kind{Name: "any of them",
		Claim: func(lines []paste.Line) int { _, n := first(lines); return n },
		Read: func(p *attach.Part) attach.Reading {
			k, _ := first(p.Lines)
			if k == nil { // its first line is a prompt's
				return attach.Reading{Title: "none", Means: "none", State: attach.Healthy}
			}
			return k.Read(p)
		}})
}

func FuzzNmon(f *testing.F)    { fuzz.Kind(f, nmon) }
func FuzzPmval(f *testing.F)   { fuzz.Kind(f, pmval) }
func FuzzGlances(f *testing.F) { fuzz.Kind(f, glances) }
