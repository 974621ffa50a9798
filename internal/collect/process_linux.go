package collect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/whystall/whystall/internal/evidence"
)

// identify finds out what pid is. An error is one line with what to do next.
func identify(pid int, withArgs bool) (t evidence.Target, s procStat, err error) {
	what := fmt.Sprintf("pid %d", pid)
	dir := procDir(pid)
	b, err := readSome(filepath.Join(dir, "stat"))
	if err != nil {
		return t, s, &Error{What: what, Why: noProcess(pid)}
	}
	if s, err = parseStat(b); err != nil {
		return t, s, fmt.Errorf("read %s/stat: %w", dir, err)
	}
	what = fmt.Sprintf("pid %d (%s)", pid, s.comm)
	status, _ := readSome(filepath.Join(dir, "status"))
	switch tgid, _ := strconv.Atoi(statusField(status, "Tgid")); {
	case s.kernel:
		return t, s, &Error{What: what,
			Why: "is a kernel thread, not a program: give the pid of the process that waits for it"}
	case tgid != 0 && tgid != pid:
		return t, s, &Error{What: what, Why: fmt.Sprintf("is a thread of process %d: use --pid %d", tgid, tgid)}
	case dead(s) && outlived(pid):
		return t, s, &Error{What: what,
			Why: "its first thread has ended while others go on: /proc then shows neither the program nor its memory map"}
	case dead(s):
		return t, s, &Error{What: what,
			Why: fmt.Sprintf("has ended (a zombie: its parent %d has not collected its exit status)", s.parent)}
	case pid == os.Getpid():
		return t, s, &Error{What: what, Why: "is whystall itself"}
	}
	exe, err := os.Readlink(filepath.Join(dir, "exe"))
	if errors.Is(err, fs.ErrPermission) {
		return t, s, &Error{What: what, Why: notOurs(dir)}
	} else if err != nil {
		return t, s, &Error{What: what, Why: "it is ending"}
	}
	t = evidence.Target{Service: evidence.Service{PID: pid, Container: elsewhereNS(dir)},
		NSPID: nsPID(status, pid), Comm: s.comm, Exe: exe, Started: startedAt(s.start)}
	if b, err := readSome(filepath.Join(dir, "environ")); err == nil {
		t.Env = parseEnv(b)
	}
	if withArgs {
		if b, err := readSome(filepath.Join(dir, "cmdline")); err == nil && len(b) > 0 {
			t.Args = parseArgs(b)
		}
	}
	bin := examine(filepath.Join(dir, "exe"), exe)
	t.Runtime, t.GoVersion, t.BuildID = bin.runtime, bin.goVersion, bin.buildID
	return t, s, nil
}

// readSome reads a small file of /proc, cut at 4 MiB.
func readSome(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 4<<20))
}

// noProcess says whether /proc hides the process, or there is none.
func noProcess(pid int) string {
	if err := syscall.Kill(pid, 0); err == nil || errors.Is(err, syscall.EPERM) {
		return "belongs to another user, and /proc hides it (mount option hidepid): run whystall as root"
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return "/proc is not mounted here: mount it, or in a container share the host's pid namespace"
	}
	return "no such process here: pgrep -a NAME lists pids; in a container only processes of its own pid namespace are visible"
}

// notOurs says what would permit looking at a process.
func notOurs(dir string) string {
	if os.Geteuid() == 0 {
		if status, err := readSome("/proc/self/status"); err == nil && hasCapability(status, capPtrace) {
			return "root may not look at it here, despite CAP_SYS_PTRACE: a security module forbids it (Landlock, AppArmor, SELinux), or the process is in a user namespace that is not below this one"
		}
		return "root may not look at it here: CAP_SYS_PTRACE is missing (in a container: --cap-add SYS_PTRACE, or --privileged)"
	}
	st, err := os.Stat(dir)
	if err != nil {
		return "it is ending"
	}
	uid := st.Sys().(*syscall.Stat_t).Uid
	if int(uid) == os.Geteuid() {
		return "is yours, but you may not look at it (it changed its user or has capabilities): run whystall as root"
	}
	name := strconv.Itoa(int(uid))
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return "belongs to user " + name +
		": run whystall as that user or as root (sudo whystall ...), or give its address with --pprof instead of --pid"
}

// nsPID is the last pid of the line NSpid, which is that of the innermost namespace; pid without
// one.
func nsPID(status []byte, pid int) int {
	if f := strings.Fields(statusField(status, "NSpid")); len(f) > 0 {
		if n, err := strconv.Atoi(f[len(f)-1]); err == nil {
			return n
		}
	}
	return pid
}

// elsewhereNS reports whether the process lives in other namespaces than we do.
func elsewhereNS(dir string) bool {
	for _, ns := range []string{"pid", "mnt", "cgroup"} {
		ours, err := os.Readlink("/proc/self/ns/" + ns)
		theirs, err2 := os.Readlink(filepath.Join(dir, "ns", ns))
		if err == nil && err2 == nil && ours != theirs {
			return true
		}
	}
	return false
}

// startedAt turns ticks since boot into CLOCK_MONOTONIC, which stands still while the machine is
// suspended.
func startedAt(ticks int64) int64 {
	boot, ok := readClock(clockBoottime)
	if !ok {
		return 0
	}
	return ticks*(1e9/userHZ) - (boot - monotonic())
}

func dead(s procStat) bool { return s.state == 'Z' || s.state == 'X' }

// outlived reports whether a process whose first thread has ended has others that go on.
func outlived(pid int) bool {
	tasks, err := os.ReadDir(filepath.Join(procDir(pid), "task"))
	if err != nil {
		return false
	}
	for _, t := range tasks {
		b, err := readSome(filepath.Join(procDir(pid), "task", t.Name(), "stat"))
		if err != nil {
			continue
		}
		if s, err := parseStat(b); err == nil && !dead(s) {
			return true
		}
	}
	return false
}

// life identifies a target for the watch.
type life struct {
	pid   int
	start int64
	exe   string
}

// look reads the target's state and reports whether it is still there. It takes over the path of a
// program that the target now runs.
func (l *life) look() (s procStat, there bool) {
	b, err := readSome(filepath.Join(procDir(l.pid), "stat"))
	if err == nil {
		s, err = parseStat(b)
	}
	if err != nil || s.start != l.start || dead(s) && !outlived(l.pid) {
		return s, false
	}
	if exe, err := os.Readlink(filepath.Join(procDir(l.pid), "exe")); err == nil && exe != l.exe {
		// An update replaces a program's file under it; the process goes on as it was.
		if exe != l.exe+" (deleted)" {
			l.exe = exe
		}
	}
	return s, true
}

// children lists the living child processes of pid that its first thread created.
func children(pid int) (pids []int) {
	b, err := readSome(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	for _, f := range strings.Fields(string(b)) {
		if n, err := strconv.Atoi(f); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}
