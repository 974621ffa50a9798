package collect

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/need"
)

const (
	perfTarget = "COLLECT_TEST_PERF_TARGET"
	perfNobody = "COLLECT_TEST_PERF_NOBODY"
)

// pingpong is the target: a thread that blocks in a pipe a known number of times, one that
// computes, and ones that come and go.
func pingpong() {
	there, back := make([]int, 2), make([]int, 2)
	syscall.Pipe(there)
	syscall.Pipe(back)
	one := []byte{1}
	go func() {
		runtime.LockOSThread()
		b := make([]byte, 1)
		for {
			syscall.Read(there[0], b)
			syscall.Write(back[1], one)
		}
	}()
	in := bufio.NewScanner(os.Stdin)
	runtime.LockOSThread()
	fmt.Println(syscall.Gettid())
	for in.Scan() {
		n, _ := strconv.Atoi(in.Text())
		b := make([]byte, 1)
		for range n {
			syscall.Write(there[1], one)
			syscall.Read(back[0], b)
			if n%10 == 0 {
				computed += computeForTest(100_000)
			}
		}
		made := make(chan int)
		go func() {
			runtime.LockOSThread() // and ends with the goroutine
			tid := syscall.Gettid()
			computed += computeForTest(1_000_000_000) // half a second of CPU or more
			made <- tid
		}()
		fmt.Println(<-made)
	}
}

var computed int

//go:noinline
func computeForTest(n int) (sum int) {
	for i := range n {
		sum += i * i
	}
	return sum
}

// contextSwitches is the kernel's own count for a thread.
func contextSwitches(t *testing.T, pid, tid int) (all, voluntary int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"} {
		v, err := strconv.Atoi(statusField(b, name))
		if err != nil {
			t.Fatal(err)
		}
		if all += v; name[0] == 'v' {
			voluntary = v
		}
	}
	return all, voluntary
}

func TestPerfCollector(t *testing.T) {
	if os.Getenv(perfTarget) != "" {
		pingpong()
		return
	}
	need.Kernel(t, "perf")
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestPerfCollector$")
	cmd.Env = append(os.Environ(), perfTarget+"=1")
	cmd.Stderr = os.Stderr
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	said := bufio.NewScanner(out)
	number := func() int {
		if !said.Scan() {
			t.Fatal("the target ended")
		}
		n, err := strconv.Atoi(said.Text())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	tid := number()

	p := Process{PID: cmd.Process.Pid, Stacks: true}
	can, err := perfReach(p)
	if err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	began, ended := make(chan struct{}), make(chan error, 1)
	p.Recording = func() { close(began) }
	go func() {
		_, err := recordPerf(ctx, p, &stream)
		ended <- err
	}()
	select {
	case <-began:
	case err := <-ended:
		t.Fatal(err)
	}
	old := map[int]bool{}
	entries, _ := os.ReadDir(procDir(p.PID) + "/task")
	for _, e := range entries {
		n, _ := strconv.Atoi(e.Name())
		old[n] = true
	}
	before, beforeBlocked := contextSwitches(t, p.PID, tid)
	const rounds = 1000
	fmt.Fprintln(in, rounds)
	fresh := number()
	after, afterBlocked := contextSwitches(t, p.PID, tid)
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	r, err := kernel.NewReader(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(stream.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Header(); h.Source != "perf" || h.PID != uint32(p.PID) || len(h.Missing) == 0 || h.AllTasks != can.whole {
		t.Errorf("header: %+v", h)
	}
	var outs, ins, waits, queued, born, freshOuts, sampled, lost int
	stacks, funcs := map[uint32]int{}, map[string]int{}
	on := false
	err = r.Each(func(recs []kernel.Record) error {
		for _, rec := range recs {
			switch rec.Kind {
			case kernel.Switch:
				if rec.TID == uint32(tid) {
					if rec.Flags&kernel.Target == 0 {
						t.Error("a switch of the target's thread without its flag")
					}
					outs++
					if rec.Arg[0] == 0 {
						queued++
					}
					if !on && outs > 1 && lost == 0 {
						t.Errorf("left twice by %d", rec.Time)
					}
					on = false
				}
				if rec.Other == uint32(tid) {
					ins++
					on = true
				}
				if rec.TID == uint32(fresh) {
					freshOuts++
				}
			case kernel.Clone:
				if rec.Flags&kernel.Target != 0 {
					born++
				}
			case kernel.WaitStack:
				if rec.TID == uint32(tid) && rec.Kernel != 0 {
					waits++
				}
			case kernel.Sample:
				sampled++
				stacks[rec.User]++
			case kernel.Lost:
				lost += int(rec.Arg[0])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Ended() != "" {
		t.Errorf("the stream is not whole: %s", r.Ended())
	}
	// A stack is named meanwhile, so it may come after its samples.
	for id, n := range stacks {
		for _, f := range r.Stack(id) {
			funcs[f.Func] += n
		}
	}
	// Where a machine is so busy that records are lost, each may have been one of those that are
	// counted.
	if lost > 0 {
		t.Logf("%d records lost", lost)
	}
	if n := after - before; outs+lost < n || outs > n+20 {
		t.Errorf("%d switch-outs of thread %d, the kernel counts %d", outs, tid, n)
	}
	if ins+lost < outs-1 || ins > outs+lost+1 {
		t.Errorf("it left %d times and came %d times", outs, ins)
	}
	// Woken while it is about to block, a thread counts as the one here and as the other there.
	if n, blocked := afterBlocked-beforeBlocked, outs-queued; n == 0 || blocked+lost < n*9/10-5 || blocked > n*11/10+20 {
		t.Errorf("it blocked %d times, the kernel counts %d", blocked, n)
	}
	if can.kernel && waits+lost < outs-20 {
		t.Errorf("%d stacks of %d waits", waits, outs)
	}
	// The runtime may have had an idle thread for it.
	if lost == 0 && (born == 0 && !old[fresh] || freshOuts == 0) {
		t.Errorf("a thread made meanwhile: %d births, %d switches", born, freshOuts)
	}
	inCompute := 0
	for f, n := range funcs {
		if strings.HasSuffix(f, "collect.computeForTest") {
			inCompute = n
		}
	}
	if sampled == 0 || inCompute == 0 {
		t.Errorf("%d samples, %d in the function that computes: %v", sampled, inCompute, funcs)
	}
	named := map[uint32]string{}
	for _, th := range r.Threads() {
		named[th.TID] = th.Comm
		if th.TID == uint32(tid) && (!th.Target || th.PID != uint32(p.PID) || th.NSTID != uint32(tid)) {
			t.Errorf("thread: %+v", th)
		}
	}
	if named[uint32(tid)] == "" || named[uint32(fresh)] == "" {
		t.Errorf("threads %d and %d are %q and %q", tid, fresh, named[uint32(tid)], named[uint32(fresh)])
	}
	if os.Getenv(perfNobody) != "" {
		fmt.Printf("as nobody: whole machine %v, kernel %v\n", can.whole, can.kernel)
	}
}

func TestPerfCollectorUnprivileged(t *testing.T) {
	if os.Getuid() != 0 {
		need.Missing(t, "root", "it is to become nobody")
	}
	need.Kernel(t, "perf")
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestPerfCollector$", "-test.v")
	cmd.Env = append(os.Environ(), perfNobody+"=1")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	defer context.AfterFunc(ctx, func() { cmd.Process.Kill() })()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("as nobody:\n%s", out)
	}
	if !strings.Contains(string(out), "--- PASS: TestPerfCollector") {
		t.Errorf("as nobody it did not run:\n%s", out)
	}
	t.Logf("%s", out)
}
