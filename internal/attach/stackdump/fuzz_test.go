package stackdump

import (
	"testing"

	"github.com/whystall/whystall/internal/attach/attachtest/fuzz"
)

func FuzzGDB(f *testing.F)          { fuzz.Kind(f, gdb) }
func FuzzEUStack(f *testing.F)      { fuzz.Kind(f, euStack) }
func FuzzPMP(f *testing.F)          { fuzz.Kind(f, pmp) }
func FuzzJStack(f *testing.F)       { fuzz.Kind(f, jstack) }
func FuzzPySpy(f *testing.F)        { fuzz.Kind(f, pySpy) }
func FuzzFaultHandler(f *testing.F) { fuzz.Kind(f, faultHandler) }
func FuzzTraceback(f *testing.F)    { fuzz.Kind(f, traceback) }
func FuzzPyBT(f *testing.F)         { fuzz.Kind(f, pyBT) }
func FuzzCrash(f *testing.F)        { fuzz.Kind(f, crash) }
func FuzzDotnet(f *testing.F)       { fuzz.Kind(f, dotnet) }
func FuzzRuby(f *testing.F)         { fuzz.Kind(f, ruby) }
func FuzzOneTrace(f *testing.F)     { fuzz.Kind(f, oneTrace) }
func FuzzThreadDump(f *testing.F)   { fuzz.Kind(f, threadDump) }
func FuzzInfoThreads(f *testing.F)  { fuzz.Kind(f, infoThreads) }
func FuzzAgent(f *testing.F)        { fuzz.Kind(f, agent) }
func FuzzSafepoint(f *testing.F)    { fuzz.Kind(f, safepoint) }
func FuzzGCLog(f *testing.F)        { fuzz.Kind(f, gcLog) }
func FuzzJstat(f *testing.F)        { fuzz.Kind(f, jstat) }
func FuzzJVMHeap(f *testing.F)      { fuzz.Kind(f, jvmHeap) }
func FuzzNodeReport(f *testing.F)   { fuzz.Kind(f, nodeReport) }
func FuzzJVMMemory(f *testing.F)    { fuzz.Kind(f, hsMemory) }
