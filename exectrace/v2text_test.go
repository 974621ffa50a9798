package exectrace

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// textNames are the events as the text twin of the format writes them; the index is the type.
var textNames = strings.Fields(`None EventBatch Stacks Stack Strings String CPUSamples CPUSample Frequency ProcsChange ProcStart ProcStop
	ProcSteal ProcStatus GoCreate GoCreateSyscall GoStart GoDestroy GoDestroySyscall GoStop GoBlock GoUnblock GoSyscallBegin
	GoSyscallEnd GoSyscallEndBlocked GoStatus STWBegin STWEnd GCActive GCBegin GCEnd GCSweepActive GCSweepBegin GCSweepEnd
	GCMarkAssistActive GCMarkAssistBegin GCMarkAssistEnd HeapAlloc HeapGoal GoLabel UserTaskBegin UserTaskEnd UserRegionBegin
	UserRegionEnd UserLog GoSwitch GoSwitchDestroy GoCreateBlocked GoStatusStack ExperimentalBatch Sync ClockSnapshot EndOfGeneration`)

// fromText makes a trace of its text twin.
func fromText(tb testing.TB, text string) []byte {
	types := map[string]byte{}
	for i, n := range textNames {
		types[n] = byte(i)
	}
	var out []byte
	for _, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if f[0] == "Trace" {
			out = append(out, "go "+strings.TrimPrefix(f[1], "Go")+" trace\x00\x00\x00"...)
			continue
		}
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data="); ok {
			s, err := strconv.Unquote(data)
			if err != nil {
				tb.Fatal(err)
			}
			out = binary.AppendUvarint(out, uint64(len(s)))
			out = append(out, s...)
			continue
		}
		if !strings.Contains(f[0], "=") {
			typ, ok := types[f[0]]
			if !ok {
				tb.Fatalf("event %s is not in textNames: doc.go says what else it needs", f[0])
			}
			out = append(out, typ)
			f = f[1:]
		}
		for _, a := range f {
			_, v, _ := strings.Cut(a, "=")
			u, err := strconv.ParseUint(v, 0, 64)
			if err != nil {
				tb.Fatalf("%s: %v", line, err)
			}
			out = binary.AppendUvarint(out, u)
		}
	}
	return out
}

// TestEveryEvent reads one event of each type that has a row in v2Shapes. None may be taken for an
// experiment's: a type that place and stateless do not handle is. The numbers need not fit.
func TestEveryEvent(t *testing.T) {
	if len(textNames) != evCount {
		t.Fatalf("%d names of %d events", len(textNames), evCount)
	}
	for typ, name := range textNames {
		if !timed(byte(typ)) {
			continue
		}
		events := []byte{evProcStatus, 1, 0, procRunning, evGoStatus, 1, 1, 7, goRunning,
			evGoStatus, 1, 2, 8, goWaiting, byte(typ), 1}
		for range v2Shapes[typ].args {
			events = append(events, 2)
		}
		data := []byte("go 1.26 trace\x00\x00\x00")
		for _, b := range [][]byte{binary.AppendUvarint([]byte{evSync, evFrequency}, linuxFreq), events} {
			data = append(data, evEventBatch, 1, 7, 1, byte(len(b)))
			data = append(data, b...)
		}
		tr, err := FromBytes(append(data, evEndOfGeneration), Options{})
		if err != nil {
			t.Fatal(err)
		}
		before := 0
		for e := range tr.Events() {
			if e.Kind != KindGap && e.Kind != KindSync {
				before++
			}
		}
		if s := tr.Stats(); s.Experimental != 0 || before < 3 {
			t.Errorf("%s: nobody handles it: %d events of states and %+v", name, before, s)
		}
	}
}

// TestGoTests reads the hard small cases with which Go tests its own reader, where Go's source is
// installed.
func TestGoTests(t *testing.T) {
	//lint:ignore SA1019 a test runs where it was built; without the folder it skips
	names, _ := filepath.Glob(filepath.Join(runtime.GOROOT(), "src/internal/trace/testdata/tests/*.test"))
	if len(names) == 0 {
		t.Skip("no Go source here")
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".test"), func(t *testing.T) {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			head, text, ok := strings.Cut(string(b), "-- trace --\n")
			if !ok {
				t.Fatal("no trace")
			}
			data := fromText(t, text)
			checkAll(t, data, 2)
			if strings.Contains(head, "SUCCESS") {
				compareWithReference(t, data, 64)
			}
		})
	}
}
