package perfevent

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whystall/whystall/internal/need"
)

// switches gives how often the calling thread left a CPU so far, by the kernel's own count.
func switches(t *testing.T) int {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		t.Fatal(err)
	}
	return int(u.Nvcsw + u.Nivcsw)
}

// block makes the calling thread leave its CPU n times, less those when its timer was there before
// it had left: switches tells.
func block(n int) {
	for range n {
		unix.Nanosleep(&unix.Timespec{Nsec: 20e3}, nil)
	}
}

// blockReading is block, reading meanwhile: a busy machine's switches fill a ring in less time than
// n sleeps may take there.
func blockReading(t *testing.T, r *Reader, n int, f func(*Record)) {
	t.Helper()
	for ; n > 0; n -= 10 {
		block(min(n, 10))
		if err := r.Read(f); err != nil {
			t.Fatal(err)
		}
	}
}

// drain reads what comes until the stop record of a thread that blocks after everything is there.
func drain(t *testing.T, r *Reader, f func(*Record)) {
	t.Helper()
	// A reading sees all that was recorded before it started.
	for range 2 {
		if err := r.Read(f); err != nil {
			t.Fatal(err)
		}
	}
}

// ownThread tests on a thread of our own that every switch the kernel counts is recorded.
func ownThread(t *testing.T, o Options) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	o.PID, o.Switches = os.Getpid(), true
	r, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	self := uint32(unix.Gettid())
	var own []Record
	lost := 0
	last := map[uint32]int64{}
	see := func(rec *Record) {
		if rec.Kind == Lost {
			lost += int(rec.Count)
		}
		if rec.Kind != Switch && rec.Kind != SwitchCPUWide {
			return
		}
		if rec.Time < last[rec.CPU] {
			t.Errorf("CPU %d: a switch at %d after one at %d", rec.CPU, rec.Time, last[rec.CPU])
		}
		last[rec.CPU] = rec.Time
		if rec.TID == self {
			own = append(own, *rec)
		}
	}
	from := now()
	before := switches(t)
	blockReading(t, r, 300, see)
	after := switches(t)
	to := now()
	block(1)
	drain(t, r, see)
	outs, ins := 0, 0
	for _, rec := range own {
		if rec.Time < from || rec.Time > to {
			continue
		}
		if rec.PID != uint32(os.Getpid()) {
			t.Errorf("a record of ours names process %d", rec.PID)
		}
		if rec.Out {
			outs++
		} else {
			ins++
		}
	}
	// Where a machine is so busy that records are lost, each may have been one of those that are
	// counted.
	if lost > 0 {
		t.Logf("%d records lost", lost)
	}
	// The thread may be switched between a count and the time beside it.
	if n := after - before; outs+lost < n || outs > n+4 {
		t.Errorf("%d switch-outs recorded, the kernel counts %d", outs, n)
	}
	if ins+lost < outs-1 || ins > outs+lost+1 {
		t.Errorf("left %d times and came %d times", outs, ins)
	}
}

// newThread tests that a thread made while recording is seen from its birth on.
func newThread(t *testing.T, o Options) {
	o.PID, o.Switches = os.Getpid(), true
	r, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const made = 8
	type thread struct {
		tid  uint32
		left int
	}
	slept := make(chan thread, made)
	hold := make(chan struct{})
	for range made {
		// A locked goroutine that ends takes its thread with it, so none is used again.
		go func() {
			runtime.LockOSThread()
			before := switches(t)
			block(20)
			slept <- thread{uint32(unix.Gettid()), switches(t) - before}
			<-hold
		}()
	}
	born, outs, lost := map[uint32]bool{}, map[uint32]int{}, 0
	see := func(rec *Record) {
		switch {
		case rec.Kind == Lost:
			lost += int(rec.Count)
		case rec.Kind == Fork && rec.OtherPID == uint32(os.Getpid()):
			born[rec.TID] = true
		case (rec.Kind == Switch || rec.Kind == SwitchCPUWide) && rec.Out:
			outs[rec.TID]++
		}
	}
	want := map[uint32]int{}
	for len(want) < made {
		select {
		case x := <-slept:
			want[x.tid] = x.left
		default:
			blockReading(t, r, 10, see)
		}
	}
	close(hold)
	drain(t, r, see)
	fresh := 0
	for tid, left := range want {
		if born[tid] {
			fresh++
		}
		if outs[tid]+lost < left {
			t.Errorf("thread %d left its CPU %d times, %d switch-outs are recorded, %d records lost", tid, left, outs[tid], lost)
		}
	}
	// A thread that the runtime had idle may have served one of them.
	if fresh == 0 && lost == 0 {
		t.Errorf("of %d threads no birth is recorded", made)
	}
}

func TestOwnProcess(t *testing.T) {
	need.Kernel(t, "perf")
	t.Run("switches", func(t *testing.T) { ownThread(t, Options{}) })
	t.Run("new thread", func(t *testing.T) { newThread(t, Options{}) })
	t.Run("samples", samples)
	t.Run("faults", faults)
}

func TestWholeMachine(t *testing.T) {
	need.Kernel(t, "perf-all")
	t.Run("switches", func(t *testing.T) { ownThread(t, Options{AllTasks: true, Kernel: true}) })
	t.Run("new thread", func(t *testing.T) { newThread(t, Options{AllTasks: true, Kernel: true}) })
	t.Run("chain", chain)
	t.Run("stacks", switchStacks)
}

// chain: the thread that comes is the one that the record before announced, or comes from that one.
func chain(t *testing.T) {
	r, err := Open(Options{AllTasks: true, Kernel: true, Switches: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	next := map[uint32]uint32{}
	good, bad := 0, 0
	see := func(rec *Record) {
		if rec.Kind == Lost {
			clear(next) // a thread that came meanwhile was not announced
		}
		if rec.Kind != SwitchCPUWide {
			return
		}
		// Of the idle task some kernels record neither coming nor leaving.
		if n, ok := next[rec.CPU]; !rec.Out && ok && n != 0 && rec.TID != 0 {
			// Nor of some thread at times (6.18), often if that one is busy: then those beside it
			// agree on who it was.
			if n == rec.TID || n == rec.OtherTID {
				good++
			} else {
				bad++
			}
		}
		if rec.Out {
			next[rec.CPU] = rec.OtherTID
		}
	}
	blockReading(t, r, 300, see)
	drain(t, r, see)
	// Where two such threads follow each other nobody names both: that is the timeline's to find.
	if good < 100 || bad > good/20 {
		t.Errorf("%d come as announced, %d do not", good, bad)
	}
}

// used is the CPU time of the calling thread: on a busy machine a tenth of a second may be none.
func used(t *testing.T) time.Duration {
	t.Helper()
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		t.Fatal(err)
	}
	return time.Duration(at.Nano())
}

//go:noinline
func burn(t *testing.T, cpu time.Duration) (n int) {
	for end := used(t) + cpu; used(t) < end; {
		for range 1000 {
			n++
		}
	}
	return n
}

func samples(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r, err := Open(Options{PID: os.Getpid(), ClockNS: 1e6, Stacks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	self := uint32(unix.Gettid())
	burn(t, 50*time.Millisecond)
	n, deep := 0, 0
	drain(t, r, func(rec *Record) {
		if rec.Kind != Sample || rec.TID != self {
			return
		}
		if rec.Event != CPUClock || rec.Period != 1e6 {
			t.Errorf("a sample of event %d, period %d", rec.Event, rec.Period)
		}
		if len(rec.Kernel) > 0 {
			t.Error("a stack of the kernel, which was not asked for")
		}
		n++
		if len(rec.User) > 3 {
			deep++
		}
	})
	if n == 0 || deep == 0 {
		t.Errorf("%d samples, %d of them with a stack", n, deep)
	}
}

func faults(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const pages = 64
	page := os.Getpagesize()
	b, err := unix.Mmap(-1, 0, pages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	unix.Madvise(b, unix.MADV_NOHUGEPAGE)
	r, err := Open(Options{PID: os.Getpid(), MinorFaults: 1, MajorFaults: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range pages {
		b[i*page] = 1
	}
	self := uint32(unix.Gettid())
	seen := map[uint64]bool{}
	from := uint64(addressOf(b))
	drain(t, r, func(rec *Record) {
		if rec.Kind == Sample && rec.Event == MinorFault && rec.TID == self && rec.Addr >= from &&
			rec.Addr < from+uint64(len(b)) {
			seen[rec.Addr-from] = true
		}
	})
	if len(seen) != pages {
		t.Errorf("%d faults in %d pages that were touched first", len(seen), pages)
	}
}

func switchStacks(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r, err := Open(Options{PID: os.Getpid(), Switches: true, SwitchStacks: true, Stacks: true, Kernel: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	self := uint32(unix.Gettid())
	both, outs, lost := 0, 0, 0
	see := func(rec *Record) {
		if rec.Kind == Lost {
			lost += int(rec.Count)
		}
		if rec.TID != self {
			return
		}
		if rec.Kind == Switch && rec.Out {
			outs++
		}
		if rec.Kind == Sample && rec.Event == SwitchOut && len(rec.Kernel) > 2 && len(rec.User) > 2 {
			both++
		}
	}
	before := switches(t)
	blockReading(t, r, 50, see)
	left := switches(t) - before
	drain(t, r, see)
	if left == 0 || outs+lost < left || both+lost < outs-2 {
		t.Errorf("left %d times: %d switch-outs, %d with stacks of kernel and user, %d records lost", left, outs, both, lost)
	}
}

// unprivileged is set in a child that runs as nobody.
const unprivileged = "PERFEVENT_TEST_UNPRIVILEGED"

func TestUnprivileged(t *testing.T) {
	if os.Getenv(unprivileged) != "" {
		if os.Getuid() == 0 {
			t.Fatal("still root")
		}
		need.Kernel(t, "perf")
		t.Run("switches", func(t *testing.T) { ownThread(t, Options{}) })
		t.Run("new thread", func(t *testing.T) { newThread(t, Options{}) })
		t.Run("samples", samples)
		t.Run("faults", faults)
		t.Run("refused", func(t *testing.T) {
			err := Probe(Options{AllTasks: true, Kernel: true, Switches: true})
			if err == nil {
				t.Skip("this machine lets anybody record everything")
			}
			if !strings.Contains(err.Error(), "perf_event_paranoid") {
				t.Errorf("the refusal does not say what would permit it: %v", err)
			}
		})
		t.Run("other user's", func(t *testing.T) {
			if err := Probe(Options{PID: 1, Switches: true}); err == nil {
				t.Error("process 1 may be recorded")
			}
		})
		return
	}
	if os.Getuid() != 0 {
		need.Missing(t, "root", "it is to become nobody")
	}
	// The test's folder is closed to nobody, the program is not.
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestUnprivileged$", "-test.v")
	cmd.Env = append(os.Environ(), unprivileged+"=1")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as nobody: %v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP: TestUnprivileged (") {
		t.Skipf("as nobody:\n%s", out)
	}
	if !strings.Contains(string(out), "--- PASS: TestUnprivileged/switches") {
		t.Errorf("as nobody it did not run:\n%s", out)
	}
}

func TestOpenErrors(t *testing.T) {
	need.Kernel(t, "perf")
	if _, err := Open(Options{PID: 1 << 30, Switches: true}); err == nil {
		t.Error("a process that cannot be is recorded")
	}
	if _, err := Open(Options{PID: os.Getpid(), Switches: true, RingBytes: 5000}); err == nil {
		t.Error("a ring of 5000 bytes is accepted")
	}
}
