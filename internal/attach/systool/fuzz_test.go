package systool

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// fuzz gives any text to a kind: it may not panic, or claim more than there is. The seeds are the
// samples that it claims a line of.
func fuzz(f *testing.F, k *attach.Kind) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(data).Files {
			if lines := paste.Lines(file.Data); file.Name == "paste" && len(lines) > 0 && k.Claim(lines) > 0 {
				f.Add(file.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := paste.Lines(data)
		for at := 0; at < len(lines); at++ {
			n := k.Claim(lines[at:])
			if n < 0 || n > len(lines)-at {
				t.Fatalf("%s claims %d of %d lines", k.Name, n, len(lines)-at)
			}
			if n == 0 {
				continue
			}
			if k.Read != nil {
				k.Read(&attach.Part{Kind: k, Lines: lines[at : at+n]})
			}
			at += n - 1
		}
	})
}

func FuzzFree(f *testing.F)       { fuzz(f, free) }
func FuzzIostat(f *testing.F)     { fuzz(f, iostat) }
func FuzzNumastat(f *testing.F)   { fuzz(f, numastat) }
func FuzzPs(f *testing.F)         { fuzz(f, ps) }
func FuzzSar(f *testing.F)        { fuzz(f, sar) }
func FuzzTop(f *testing.F)        { fuzz(f, top) }
func FuzzVmstat(f *testing.F)     { fuzz(f, vmstat) }
func FuzzVmstatSums(f *testing.F) { fuzz(f, vmstatSums) }
func FuzzUptime(f *testing.F)     { fuzz(f, uptime) }
func FuzzSetting(f *testing.F)    { fuzz(f, setting) }
func FuzzDf(f *testing.F)         { fuzz(f, df) }
func FuzzSS(f *testing.F)         { fuzz(f, ss) }
func FuzzNetstat(f *testing.F)    { fuzz(f, netstatSums) }
func FuzzNetdev(f *testing.F)     { fuzz(f, netdev) }
func FuzzTC(f *testing.F)         { fuzz(f, tc) }
func FuzzEthtool(f *testing.F)    { fuzz(f, ethtool) }
func FuzzBusyboxTop(f *testing.F) { fuzz(f, busyboxTop) }
func FuzzForeignTop(f *testing.F) { fuzz(f, foreignTop) }
func FuzzHtop(f *testing.F)       { fuzz(f, htop) }
func FuzzDstat(f *testing.F)      { fuzz(f, dstat) }
func FuzzAtop(f *testing.F)       { fuzz(f, atop) }
func FuzzContainers(f *testing.F) { fuzz(f, containers) }
func FuzzLoad(f *testing.F)       { fuzz(f, load) }
func FuzzCurl(f *testing.F)       { fuzz(f, curl) }
func FuzzPing(f *testing.F)       { fuzz(f, ping) }
func FuzzTurbostat(f *testing.F)  { fuzz(f, turbostat) }
func FuzzCpupower(f *testing.F)   { fuzz(f, cpupower) }
func FuzzLsof(f *testing.F)       { fuzz(f, lsof) }
func FuzzIotop(f *testing.F)      { fuzz(f, iotop) }
func FuzzMpstat(f *testing.F)     { fuzz(f, mpstat) }
func FuzzPidstat(f *testing.F)    { fuzz(f, pidstat) }
