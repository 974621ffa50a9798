package bpf

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// session gives this process' session the least weight while the threads run behind others: the
// kernel's scheduler divides the CPUs among sessions first (sched(7), autogroup), and compares the
// classes of threads within one only. Beside a server of another session p99 was 3.9 times as long
// with SCHED_IDLE alone, and 1.4 times with this. It does so only in a session in which nobody else
// is at work.
var session = autogroup{dir: "/proc"}

// autogroup is the weight of the session of the process that dir calls self.
type autogroup struct {
	dir string
	sync.Mutex
	looked bool
	alone  bool // see onlyOneIn
	was    int  // its nice value
	lower  bool // it has leastNice by now
}

const leastNice = 19

// lowered gives the session the least weight, or the one that it had.
func (a *autogroup) lowered(lower bool) {
	a.Lock()
	defer a.Unlock()
	if a.lower == lower {
		return
	}
	if !a.looked {
		a.looked = true
		a.alone = a.read() && onlyOneIn(a.dir, os.Getpid())
	}
	if !a.alone {
		return
	}
	nice := a.was
	if lower {
		nice = leastNice
	}
	if os.WriteFile(a.file(), strconv.AppendInt(nil, int64(nice), 10), 0) == nil {
		a.lower = lower
	}
}

func (a *autogroup) file() string { return filepath.Join(a.dir, "self", "autogroup") }

// read reports whether there is such a weight: the file is "/autogroup-12 nice 0".
func (a *autogroup) read() bool {
	b, err := os.ReadFile(a.file())
	if err != nil || !strings.HasPrefix(string(b), "/autogroup-") {
		return false
	}
	_, nice, _ := strings.Cut(string(b), " nice ")
	a.was, err = strconv.Atoi(strings.TrimSpace(nice))
	return err == nil
}

// mostProcesses is how many processes are looked at: each takes some 10 us.
const mostProcesses = 4096

// onlyOneIn reports whether all processes of pid's session are pid and those that it comes from, as
// the shell that waits for it. It is false where that cannot be seen.
func onlyOneIn(dir string, pid int) bool {
	_, sid, ok := parentAndSession(dir, pid)
	if !ok || sid == 0 { // 0: its first process is outside of this pid namespace
		return false
	}
	from := map[int]bool{}
	for p := pid; ok && p != 0 && !from[p]; {
		from[p] = true
		p, _, ok = parentAndSession(dir, p)
	}
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	names, err := d.Readdirnames(mostProcesses)
	if err != nil || len(names) == mostProcesses {
		return false
	}
	for _, name := range names {
		p, err := strconv.Atoi(name)
		if err != nil || from[p] {
			continue
		}
		if _, s, ok := parentAndSession(dir, p); ok && s == sid {
			return false
		}
	}
	return true
}

// parentAndSession reads the fourth and the sixth field of /proc/PID/stat (proc_pid_stat(5)).
func parentAndSession(dir string, pid int) (parent, sid int, ok bool) {
	b, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, 0, false
	}
	var state string
	var group int
	after := b[bytes.LastIndexByte(b, ')')+1:]
	n, _ := fmt.Sscan(string(after), &state, &parent, &group, &sid)
	return parent, sid, n == 4
}
