package stackdump

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// fuzzKind checks that a kind claims no more than it was shown, and reads what it claims.
func fuzzKind(f *testing.F, k *attach.Kind) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(a.Files[0].Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := paste.Lines(data)
		for i := range lines {
			n := k.Claim(lines[i:])
			if n < 0 || n > len(lines)-i {
				t.Fatalf("claims %d of %d lines", n, len(lines)-i)
			}
			if n > 0 && k.Read != nil {
				k.Read(&attach.Part{Kind: k, Lines: lines[i : i+n]})
			}
			if i > 20 {
				return
			}
		}
	})
}

func FuzzGDB(f *testing.F)          { fuzzKind(f, gdb) }
func FuzzEUStack(f *testing.F)      { fuzzKind(f, euStack) }
func FuzzPMP(f *testing.F)          { fuzzKind(f, pmp) }
func FuzzJStack(f *testing.F)       { fuzzKind(f, jstack) }
func FuzzPySpy(f *testing.F)        { fuzzKind(f, pySpy) }
func FuzzFaultHandler(f *testing.F) { fuzzKind(f, faultHandler) }
func FuzzTraceback(f *testing.F)    { fuzzKind(f, traceback) }
func FuzzCrash(f *testing.F)        { fuzzKind(f, crash) }
func FuzzDotnet(f *testing.F)       { fuzzKind(f, dotnet) }
func FuzzRuby(f *testing.F)         { fuzzKind(f, ruby) }
func FuzzOneTrace(f *testing.F)     { fuzzKind(f, oneTrace) }
func FuzzThreadDump(f *testing.F)   { fuzzKind(f, threadDump) }
func FuzzInfoThreads(f *testing.F)  { fuzzKind(f, infoThreads) }
func FuzzAgent(f *testing.F)        { fuzzKind(f, agent) }
func FuzzSafepoint(f *testing.F)    { fuzzKind(f, safepoint) }
