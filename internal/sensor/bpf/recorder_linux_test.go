package bpf

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/whystall/whystall/internal/need"
)

// The tests record processes that are this binary in a role. A role reads lines from its stdin,
// does one thing for each, and answers with a line.
const roleVar = "WHYSTALL_BPF_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	f := roles[role]
	fmt.Println("ready")
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		fmt.Println(f(s.Text()))
	}
}

var roles = map[string]func(string) string{
	"threads": func(n string) string {
		count, _ := strconv.Atoi(n)
		var tids []string
		for range count {
			tid := make(chan int)
			go func() {
				runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
				tid <- unix.Gettid()
			}()
			tids = append(tids, strconv.Itoa(<-tid))
		}
		return strings.Join(tids, " ")
	},
	// So much CPU time: on a busy machine as much of the clock's may be none.
	"spin": func(ms string) string {
		n, _ := strconv.Atoi(ms)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		used := func() time.Duration {
			var at unix.Timespec
			unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at)
			return time.Duration(at.Nano())
		}
		for end := used() + time.Duration(n)*time.Millisecond; used() < end; {
		}
		return "spun"
	},
	// Two threads pass a word by futex; then one sleeps, to be woken by a timer.
	"futex": func(string) string {
		var word atomic.Uint32
		var waiter, waker int
		var wg sync.WaitGroup
		started := make(chan int)
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			started <- unix.Gettid()
			for word.Load() == 0 {
				futex(&word, 0, 0) // FUTEX_WAIT
			}
			time := unix.Timespec{Nsec: 3e6}
			unix.Nanosleep(&time, nil)
		})
		waiter = <-started
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			waker = unix.Gettid()
			for !asleep(waiter, &word) {
				runtime.Gosched()
			}
			word.Store(1)
			futex(&word, 1, 1) // FUTEX_WAKE
		})
		wg.Wait()
		return fmt.Sprint(waiter, waker, uint64(uintptr(unsafe.Pointer(&word))))
	},
	"pingpong": func(n string) string {
		count, _ := strconv.Atoi(n)
		var a, b [2]int
		unix.Pipe(a[:])
		unix.Pipe(b[:])
		go func() {
			runtime.LockOSThread()
			c := make([]byte, 1)
			for {
				if n, _ := unix.Read(a[0], c); n != 1 {
					return
				}
				unix.Write(b[1], c)
			}
		}()
		c := make([]byte, 1)
		for range count {
			unix.Write(a[1], c)
			unix.Read(b[0], c)
		}
		unix.Close(a[1])
		return "done"
	},
	// A recorder itself, which is killed.
	"record": func(pid string) string {
		n, _ := strconv.Atoi(pid)
		r, err := Open(Options{PID: n, Stacks: true})
		if err != nil {
			return err.Error()
		}
		var ids []string
		for _, p := range r.l.loaded {
			info, err := p.Info()
			if err != nil {
				return err.Error()
			}
			id, _ := info.ID()
			ids = append(ids, strconv.Itoa(int(id)))
		}
		return strings.Join(ids, " ")
	},
}

func futex(word *atomic.Uint32, op, val uintptr) {
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), op|128, val, 0, 0, 0)
}

// asleep reports whether a thread of ours sleeps in a futex call on the word: the runtime's own
// sleeps are on others.
func asleep(tid int, word *atomic.Uint32) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/syscall", tid))
	return strings.HasPrefix(string(b), fmt.Sprintf("%d 0x%x ", unix.SYS_FUTEX, uintptr(unsafe.Pointer(word))))
}

type actor struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func play(t *testing.T, role string) *actor {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a := &actor{t, cmd, in, bufio.NewReader(out)}
	t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	a.line()
	return a
}

func (a *actor) line() string {
	a.t.Helper()
	s, err := a.out.ReadString('\n')
	if err != nil {
		a.t.Fatalf("the process under test: %v", err)
	}
	return strings.TrimSpace(s)
}

func (a *actor) do(s string) string {
	a.t.Helper()
	fmt.Fprintln(a.in, s)
	return a.line()
}

func record(t *testing.T, o Options) *Recorder {
	t.Helper()
	r, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// all reads what there is, with copies of the stacks.
func all(t *testing.T, r *Recorder) []Event {
	t.Helper()
	return during(t, r, func() {})
}

// during reads while f runs, and then what there is: a busy machine fills the rings in less time
// than f may take there.
func during(t *testing.T, r *Recorder, f func()) (events []Event) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	until := int64(math.MaxInt64)
	for upTo := int64(0); upTo < until; {
		select {
		case <-done:
			until, done = monotonic(), nil
		case <-time.After(5 * time.Millisecond):
		}
		var err error
		upTo, err = r.Read(func(e *Event) {
			c := *e
			c.Stack = slices.Clone(e.Stack)
			events = append(events, c)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.SortStableFunc(events, func(a, b Event) int { return int(a.Time - b.Time) })
	return events
}

func numbers(t *testing.T, s string) (l []uint64) {
	t.Helper()
	for _, w := range strings.Fields(s) {
		n, err := strconv.ParseUint(w, 10, 64)
		if err != nil {
			t.Fatalf("want numbers, got %q", s)
		}
		l = append(l, n)
	}
	return l
}

// self gives the first namespace's number of a thread that we know by ours.
func self(t *testing.T, r *Recorder, events []Event, tid uint64) uint32 {
	t.Helper()
	for _, e := range events {
		if e.Kind == Named && uint64(e.Thread.SelfTID) == tid {
			return e.TID
		}
	}
	threads, err := r.Threads()
	if err != nil {
		t.Fatal(err)
	}
	for _, th := range threads {
		if uint64(th.SelfTID) == tid {
			return th.TID
		}
	}
	t.Fatalf("thread %d is not known", tid)
	return 0
}

func TestThreadsOfRecording(t *testing.T) {
	need.Kernel(t, "bpf")
	a := play(t, "threads")
	r := record(t, Options{PID: a.cmd.Process.Pid})
	old, err := r.Threads()
	if err != nil {
		t.Fatal(err)
	}
	var said string
	events := during(t, r, func() { said = a.do("40") })
	tids := numbers(t, said)
	isNew := 0
	for _, n := range tids {
		if slices.ContainsFunc(old, func(t Thread) bool { return uint64(t.SelfTID) == n && t.FromTarget }) {
			continue // the runtime had it already
		}
		isNew++
		tid := self(t, r, events, n)
		var named, forked, left bool
		for _, e := range events {
			if e.TID != tid {
				continue
			}
			named = named || e.Kind == Named && e.Thread.FromTarget
			forked = forked || e.Kind == Fork && e.Flags&Target != 0
			left = left || e.Kind == Switch && e.Flags&Target != 0
		}
		if !named || !forked || !left {
			t.Errorf("thread %d: named %v, forked %v, seen leaving a CPU %v", n, named, forked, left)
		}
	}
	if isNew < 20 {
		t.Errorf("only %d of 40 threads are new", isNew)
	}
	if l := r.Losses(nil); len(l) > 0 {
		t.Errorf("lost: %+v", l)
	}
}

func TestFutex(t *testing.T) {
	need.Kernel(t, "bpf")
	a := play(t, "futex")
	r := record(t, Options{PID: a.cmd.Process.Pid, Stacks: true})
	t.Logf("not told here: %q", r.Missing)
	for _, m := range r.Missing {
		if strings.Contains(m.Why, "refused by this kernel") {
			t.Errorf("a program of ours is wrong: %s", m)
		}
	}
	var said string
	events := during(t, r, func() { said = a.do("go") })
	n := numbers(t, said)
	waiter, waker, addr := self(t, r, events, n[0]), self(t, r, events, n[1]), n[2]
	var slept, woken, timer, due bool
	stacks := map[uint64]int{}
	for _, e := range events {
		if e.Kind == Defined {
			stacks[e.ID] = len(e.Stack)
		}
	}
	for _, e := range events {
		switch {
		case e.Kind == Switch && e.TID == waiter && e.Arg[1] == unix.SYS_FUTEX+1 && e.Arg[2] == addr:
			slept = true
		case e.Kind == Waking && e.TID == waiter && e.Other == waker && e.Arg[2] == addr:
			woken = true
			if e.Flags&Interrupt != 0 || e.Flags&OtherTarget == 0 || e.Arg[1] != unix.SYS_FUTEX+1 {
				t.Errorf("the waker is a thread of the target: %+v", e)
			}
			if stacks[e.User] < 2 {
				t.Errorf("no user stack of the waker: %+v", e)
			}
		case e.Kind == Waking && e.TID == waiter && e.Flags&Interrupt != 0 && woken:
			timer = true
		case e.Kind == TimerDue && e.TID == waiter:
			due = true
			if late := e.Time - int64(e.Arg[1]); late < 0 || late > int64(time.Minute) {
				t.Errorf("timer due %d ns before it fired", late)
			}
		}
	}
	if !slept || !woken || !timer {
		t.Errorf("slept on the futex %v, woken by who released it %v, by a timer %v", slept, woken, timer)
	}
	if !due && !slices.ContainsFunc(r.Missing, func(m Missing) bool {
		return m.Part == PartQuotaTimers || m.Part == PartFunctions || m.Part == "hrtimer_expire" ||
			m.Part == "csd_function"
	}) {
		t.Error("a timer's time was not told")
	}
}

// TestChain: on each CPU the thread that comes is the one that leaves next, except for what was
// lost, and nothing is.
func TestChain(t *testing.T) {
	need.Kernel(t, "bpf")
	a := play(t, "pingpong")
	r := record(t, Options{PID: a.cmd.Process.Pid})
	on := map[uint16]uint32{}
	var switches, breaks int
	for _, e := range during(t, r, func() { a.do("2000") }) {
		if e.Kind != Switch {
			continue
		}
		if was, ok := on[e.CPU]; ok && was != e.TID {
			breaks++
		}
		on[e.CPU] = e.Other
		switches++
	}
	if l := r.Losses(nil); len(l) > 0 {
		t.Errorf("lost: %+v", l)
	}
	// A hypervisor's threads were seen to come without ever leaving.
	if switches < 2000 || breaks*100 > switches {
		t.Errorf("%d switches, %d of them not by who was on the CPU", switches, breaks)
	}
}

func TestLoss(t *testing.T) {
	need.Kernel(t, "bpf")
	a := play(t, "pingpong")
	r := record(t, Options{PID: a.cmd.Process.Pid, Ring: os.Getpagesize()})
	a.do("5000")
	var lost uint64
	for _, l := range r.Losses(nil) {
		lost += l.Events
	}
	got := len(all(t, r))
	if lost == 0 || got == 0 {
		t.Errorf("with rings of a page, not read: %d events lost, %d kept", lost, got)
	}
	if again := r.Losses(nil); len(again) > len(r.CPUs) {
		t.Errorf("losses told twice: %v", again)
	}
}

func TestThrottled(t *testing.T) {
	need.Kernel(t, "bpf")
	a := play(t, "spin")
	group := quota(t, a.cmd.Process.Pid)
	r := record(t, Options{PID: a.cmd.Process.Pid})
	// A machine that gives less than the quota does not throttle: the kernel's own count shows it.
	before, counted := throttles(t, group), 0
	events := during(t, r, func() {
		for n := 0; n < 50 && counted < 3; n++ {
			a.do("40")
			counted = throttles(t, group) - before
		}
	})
	if counted < 3 {
		t.Skipf("in two seconds of CPU time the kernel throttled a spinning thread with a quota of a tenth of a CPU %d times: others use the machine", counted)
	}
	var throttled, given int
	for _, e := range events {
		if e.Kind == Switch && e.Flags&Target != 0 && e.Flags&(Throttled|GroupThrottled) != 0 {
			throttled++
		}
		if e.Kind == Unthrottle {
			given++
		}
	}
	if throttled == 0 {
		t.Error("a spinning thread with a quota of a tenth of a CPU is never seen throttled")
	}
	if given == 0 && !slices.ContainsFunc(r.Missing, func(m Missing) bool {
		return m.Part == PartQuotaTimers || m.Part == PartFunctions || m.Part == "hrtimer_expire" ||
			m.Part == "csd_function"
	}) {
		t.Error("no timer gave the quota back")
	}
}

// throttles is how often the kernel throttled a group.
func throttles(t *testing.T, group string) (n int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(group, "cpu.stat"))
	if err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(string(b)) {
		fmt.Sscanf(line, "nr_throttled %d", &n)
	}
	return n
}

// quota puts a process into a group of its own with 10 ms in 100, and takes the group away at the
// end.
func quota(t *testing.T, pid int) (group string) {
	t.Helper()
	v1, v2 := "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"
	dir, file, value := filepath.Join(v2, "whystall-test-"+strconv.Itoa(pid)), "cpu.max", "10000 100000"
	home := v2
	if _, err := os.Stat(filepath.Join(v1, "cpu.cfs_quota_us")); err == nil || exists(filepath.Join(v1, "tasks")) {
		dir, file, value, home = filepath.Join(v1, "whystall-test-"+strconv.Itoa(pid)), "cpu.cfs_quota_us", "10000", v1
	} else if control := filepath.Join(v2, "cgroup.subtree_control"); !enabled(control) {
		if err := os.WriteFile(control, []byte("+cpu"), 0); err != nil {
			need.Missing(t, "cgroup", err.Error())
		}
		t.Cleanup(func() { os.WriteFile(control, []byte("-cpu"), 0) })
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		need.Missing(t, "cgroup", err.Error())
	}
	t.Cleanup(func() {
		os.WriteFile(filepath.Join(home, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
		if err := os.Remove(dir); err != nil {
			t.Errorf("remove the test's group: %v", err)
		}
	})
	for name, v := range map[string]string{file: value, "cgroup.procs": strconv.Itoa(pid)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(v), 0); err != nil {
			need.Missing(t, "cgroup", err.Error())
		}
	}
	return dir
}

// enabled reports whether a group of version 2 gives its groups the cpu controller.
func enabled(control string) bool {
	b, _ := os.ReadFile(control)
	return slices.Contains(strings.Fields(string(b)), "cpu")
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func TestKilled(t *testing.T) {
	need.Kernel(t, "bpf")
	target := play(t, "spin")
	rec := play(t, "record")
	ids := numbers(t, rec.do(strconv.Itoa(target.cmd.Process.Pid)))
	if len(ids) < 10 {
		t.Fatalf("the recorder has %d programs", len(ids))
	}
	rec.cmd.Process.Kill()
	rec.cmd.Wait()
	// The kernel frees programs some moments after their last descriptor.
	for _, id := range ids {
		for end := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
			p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
			if err != nil {
				break
			}
			p.Close()
			if time.Now().After(end) {
				t.Fatalf("program %d is still there after its recorder was killed", id)
			}
		}
	}
	if got := target.do("1"); got != "spun" {
		t.Errorf("the target says %q", got)
	}
}

func TestGone(t *testing.T) {
	need.Kernel(t, "bpf")
	if _, err := Open(Options{PID: 1 << 30}); err == nil || !strings.Contains(err.Error(), "no such process") {
		t.Errorf("a process that does not exist: %v", err)
	}
}

func TestParseCPUs(t *testing.T) {
	for list, want := range map[string][]int{"0": {0}, "0-3": {0, 1, 2, 3}, "0,2-3,9": {0, 2, 3, 9}} {
		if got, err := parseCPUs(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("parseCPUs(%q) = %v, %v", list, got, err)
		}
	}
	for _, list := range []string{"", "a", "3-1", "-1", "0-99999999", "1,"} {
		if got, err := parseCPUs(list); err == nil {
			t.Errorf("parseCPUs(%q) = %v, want an error", list, got)
		}
	}
}
