//go:build unix

package exectrace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"runtime/trace"
	"sync"
	"syscall"
	"testing"

	ref "golang.org/x/exp/trace"
)

// work does n rounds of what a trace can hold: wakings, syscalls, tasks, regions, logs, coroutines,
// garbage.
func work(n int) {
	ping, pong := make(chan []byte), make(chan []byte)
	var wg sync.WaitGroup
	wg.Go(func() {
		for b := range ping {
			pong <- append([]byte(nil), b...)
		}
		close(pong)
	})
	ctx, task := trace.NewTask(context.Background(), "outer")
	for k := range n {
		trace.WithRegion(ctx, "round", func() {
			ping <- make([]byte, 10_000)
			<-pong
		})
		if k%64 == 0 {
			_, inner := trace.NewTask(ctx, "inner")
			trace.Log(ctx, "at", "a round")
			next, stop := iter.Pull(func(yield func(int) bool) {
				for i := 0; yield(i); i++ {
				}
			})
			next()
			next()
			stop()
			os.ReadFile("/proc/self/stat")
			inner.End()
		}
	}
	task.End()
	close(ping)
	wg.Wait()
}

// TestLive traces this process and holds the reader to the reference.
func TestLive(t *testing.T) {
	if trace.IsEnabled() {
		t.Skip("somebody else traces this process")
	}
	var buf bytes.Buffer
	var cpu bytes.Buffer
	if err := pprof.StartCPUProfile(&cpu); err == nil { // samples go to the trace too
		defer pprof.StopCPUProfile()
	}
	if err := trace.Start(&buf); err != nil {
		t.Fatal(err)
	}
	old := runtime.GOMAXPROCS(3)
	work(2000)
	runtime.GC()
	runtime.GOMAXPROCS(old)
	trace.Stop()
	if runtime.GOOS == "linux" {
		compareWithReference(t, buf.Bytes(), 64)
	}
	tr, err := FromBytes(buf.Bytes(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkEvents(t, tr)
	c := tr.Clock()
	if !c.Wall || c.WallNS < 1_700_000_000e9 {
		t.Errorf("clock %+v", c)
	}
	if runtime.GOOS == "linux" && !c.Monotonic {
		t.Errorf("clock %+v", c)
	}
	sum := tr.Totals(nil)
	if sum.Tasks < 32 || sum.Regions < 2000 || sum.Logs < 30 || len(sum.Pauses) == 0 || len(sum.GCs) == 0 {
		t.Errorf("%+v", brief(sum))
	}
}

func TestFlightRecorder(t *testing.T) {
	f := trace.NewFlightRecorder(trace.FlightRecorderConfig{})
	if err := f.Start(); err != nil {
		t.Skip(err)
	}
	defer f.Stop()
	work(1000)
	var buf bytes.Buffer
	if _, err := f.WriteTo(&buf); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		compareWithReference(t, buf.Bytes(), 64)
	}
	checkAll(t, buf.Bytes(), 2)
}

// TestChild is no test: it is what TestCrashed runs, a process that dies with its trace open.
func TestChild(t *testing.T) {
	how := os.Getenv("EXECTRACE_CHILD")
	if how == "" {
		t.Skip("only as a child of TestCrashed")
	}
	f, err := os.Create(os.Getenv("EXECTRACE_FILE"))
	if err != nil {
		t.Fatal(err)
	}
	debug.SetTraceback("none")
	if err := trace.Start(f); err != nil {
		t.Fatal(err)
	}
	// What a thread has in its buffers is lost. Where the process gets little CPU, the thread that
	// writes them is behind.
	for size := int64(0); size < 1<<20; {
		work(10_000)
		st, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		size = st.Size()
	}
	switch how {
	case "exit":
		os.Exit(0)
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "throw":
		var m map[int]int
		//lint:ignore SA5000 the crash is what is wanted
		m[1] = 1
	}
}

func TestCrashed(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	for _, how := range []string{"exit", "kill", "throw"} {
		file := filepath.Join(t.TempDir(), how)
		cmd := exec.Command(exe, "-test.run=^TestChild$")
		cmd.Env = append(os.Environ(), "EXECTRACE_CHILD="+how, "EXECTRACE_FILE="+file)
		cmd.Run() // it fails, that is the point
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, tr := checkAll(t, data, 2)
		// The child ends when a megabyte is written, and an event takes five bytes.
		if c.events < 100_000 {
			t.Errorf("%s: %d events in %d bytes", how, c.events, len(data))
		}
		g := tr.Gaps()
		if len(g) == 0 {
			// It may have died just between two generations. Then the reference, too, reads all
			// there is to the end.
			n, err := countReference(data)
			if err != nil || n != int64(c.events) {
				t.Errorf("%s: nothing says that the end is missing; x/exp/trace: %d events, %v", how, n, err)
			}
		}
		t.Logf("%s: %d bytes, %d events, %+v", how, len(data), c.events, g)
	}
}

// countReference counts the events that x/exp/trace reads before the trace's end, or before what it
// cannot read.
func countReference(data []byte) (n int64, err error) {
	r, err := ref.NewReader(bytes.NewReader(data))
	for err == nil {
		if _, err = r.ReadEvent(); err == nil {
			n++
		}
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// TestShrinks cuts the file while it is mapped.
func TestShrinks(t *testing.T) {
	data := readFixture(t, v2Fixture)
	read := map[string]func(*Trace){
		"events": func(tr *Trace) {
			for range tr.Events() {
			}
		},
		"totals": func(tr *Trace) { tr.Totals(nil) },
	}
	for name, f := range read {
		file := filepath.Join(t.TempDir(), "trace")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		tr, err := Open(file, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, int64(len(data)/2)); err != nil {
			t.Fatal(err)
		}
		f(tr)
		if err := tr.Err(); !errors.Is(err, errFault) {
			t.Errorf("%s: error %v", name, err)
		}
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
		f(tr)
		if err := tr.Err(); !errors.Is(err, errClosed) {
			t.Errorf("%s: error %v of a closed trace", name, err)
		}
	}
}

func TestSpool(t *testing.T) {
	data := readFixture(t, v2Fixture)
	whole, _ := checkAll(t, data, 2)
	dir := t.TempDir()
	r, w := io.Pipe()
	go func() {
		w.Write(data)
		w.CloseWithError(errors.New("connection reset"))
	}()
	tr, err := New(r, Options{TempDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left in the temporary directory", left[0])
	}
	if c := checkEvents(t, tr); c.hash != whole.hash || len(tr.Gaps()) != 1 {
		t.Errorf("%+v from a pipe, %+v from a file; gaps %v", c, whole, tr.Gaps())
	}
	tr.Close()
	if tr, err = New(bytes.NewReader(data), Options{TempDir: dir, MaxSpool: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if c := checkEvents(t, tr); c.events < whole.events/4 || len(tr.Gaps()) < 2 {
		t.Errorf("%+v with a bound, gaps %v", c, tr.Gaps())
	}
	if _, err := New(bytes.NewReader([]byte("<html>404 page not found")),
		Options{TempDir: dir}); !errors.Is(err, ErrNotTrace) {
		t.Errorf("error %v", err)
	}
}
