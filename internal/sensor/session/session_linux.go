package session

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// own is the session of this process.
var own = autogroup{dir: "/proc", sessionOf: unix.Getsid}

// Lowered gives the session of this process the least weight, or the one that it had before. It
// does nothing where somebody else is at work in that session.
func Lowered(lower bool) { own.lowered(lower) }

// autogroup is the weight of the session of the process that dir calls self.
type autogroup struct {
	dir       string
	sessionOf func(pid int) (sid int, err error)
	sync.Mutex
	looked bool
	alone  bool // see onlyOne
	was    int  // its nice value
	lower  bool // it has leastNice by now
}

const leastNice = 19

func (a *autogroup) lowered(lower bool) {
	a.Lock()
	defer a.Unlock()
	if a.lower == lower {
		return
	}
	if !a.looked {
		a.looked = true
		a.alone = a.read() && a.onlyOne(os.Getpid())
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

// mostProcesses is how many processes are looked at: each takes some 0.3 us.
const mostProcesses = 16384

// onlyOne reports whether all processes of pid's session are pid and those that it comes from, as
// the shell that waits for it. It is false where that cannot be seen.
func (a *autogroup) onlyOne(pid int) bool {
	sid, err := a.sessionOf(pid)
	if err != nil || sid == 0 { // 0: its first process is outside of this pid namespace
		return false
	}
	from := map[int]bool{}
	for p := pid; p != 0 && !from[p]; p = a.parent(p) {
		if s, err := a.sessionOf(p); err != nil || s != sid {
			break
		}
		from[p] = true
	}
	d, err := os.Open(a.dir)
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
		if s, err := a.sessionOf(p); err == nil && s == sid {
			return false
		}
	}
	return true
}

// parent is the fourth field of /proc/PID/stat (proc_pid_stat(5)), 0 where it cannot be read.
func (a *autogroup) parent(pid int) (parent int) {
	b, err := os.ReadFile(filepath.Join(a.dir, strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	var state string
	after := b[bytes.LastIndexByte(b, ')')+1:]
	if n, _ := fmt.Sscan(string(after), &state, &parent); n < 2 {
		return 0
	}
	return parent
}
