package collect

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sensor/perfevent"
)

// perfThreads knows threads by name: those of the target, and others when they turn up on a CPU.
// The kernel reports new threads and new names; a thread that existed before is read from /proc
// once.
type perfThreads struct {
	p       Process
	sameNS  bool
	byTID   map[uint32]*perfThread
	todo    []uint32 // turned up, not written yet
	cgroups map[uint32]string
}

type perfThread struct {
	kernel.Thread
	written bool
	read    bool // /proc was read, or the kernel reported all there is
}

const maxPerfThreads = 1 << 16

func newPerfThreads(p Process) *perfThreads {
	return &perfThreads{p: p, sameNS: samePIDNamespace(p), byTID: map[uint32]*perfThread{},
		cgroups: map[uint32]string{}}
}

func samePIDNamespace(p Process) bool {
	ours, err := os.Readlink("/proc/self/ns/pid")
	theirs, err2 := os.Readlink(filepath.Join(procDir(p.PID), "ns/pid"))
	return err == nil && err2 == nil && ours == theirs
}

// writeAll writes the target's threads.
func (l *perfThreads) writeAll(w *kernel.Writer) {
	entries, err := os.ReadDir(filepath.Join(procDir(l.p.PID), "task"))
	if err != nil {
		return
	}
	for _, e := range entries {
		if tid, err := strconv.ParseUint(e.Name(), 10, 32); err == nil {
			l.seen(uint32(l.p.PID), uint32(tid))
		}
	}
	l.flush(w)
}

func (l *perfThreads) isTarget(tid uint32) bool {
	t := l.byTID[tid]
	return t != nil && t.Target
}

// seen notes that a thread turned up.
func (l *perfThreads) seen(pid, tid uint32) {
	if tid == 0 || tid == ^uint32(0) {
		return
	}
	t := l.byTID[tid]
	if t == nil {
		if len(l.byTID) >= maxPerfThreads {
			l.forget()
		}
		t = &perfThread{Thread: kernel.Thread{TID: tid, PID: pid, Target: pid == uint32(l.p.PID)}}
		l.byTID[tid] = t
	}
	if !t.written {
		t.written = true
		l.todo = append(l.todo, tid)
	}
}

// forget makes room on a machine that makes threads all the time.
func (l *perfThreads) forget() {
	for tid, t := range l.byTID {
		if !t.Target {
			delete(l.byTID, tid)
		}
	}
	clear(l.cgroups)
	if len(l.byTID) >= maxPerfThreads {
		clear(l.byTID)
	}
}

// born takes a new thread, which inherits name and cgroup from its creator.
func (l *perfThreads) born(r *perfevent.Record) {
	t := &perfThread{Thread: kernel.Thread{Since: r.Time, TID: r.TID, PID: r.PID, Target: r.PID == uint32(l.p.PID)}}
	if creator := l.byTID[r.OtherTID]; creator != nil && creator.read {
		t.Comm, t.Kernel, t.Cgroup, t.read = creator.Comm, creator.Kernel, creator.Cgroup, true
		if t.Target {
			t.read = l.sameNS // its number in its own namespace has to be read
			t.NSTID = t.TID
		}
	}
	if len(l.byTID) >= maxPerfThreads {
		l.forget()
	}
	l.byTID[r.TID] = t
	if t.Target {
		l.seen(t.PID, t.TID)
	}
}

// named takes a thread's new name. One that was written is written again.
func (l *perfThreads) named(r *perfevent.Record) {
	t := l.byTID[r.TID]
	if t == nil {
		return // it will be read when it turns up
	}
	again := *t
	again.Comm, again.Since = r.Name, r.Time
	again.written = false
	l.byTID[r.TID] = &again
	if t.written {
		l.seen(again.PID, r.TID)
	}
}

// gone forgets a thread that has ended: its number may be used again.
func (l *perfThreads) gone(r *perfevent.Record) {
	if t := l.byTID[r.TID]; t != nil && t.written && !t.Target {
		delete(l.byTID, r.TID)
	}
}

// flush writes the threads that have turned up.
func (l *perfThreads) flush(w *kernel.Writer) {
	for _, tid := range l.todo {
		t := l.byTID[tid]
		if t == nil {
			continue
		}
		if !t.read {
			l.read(t)
		}
		w.Thread(t.Thread) // an error stays, and the next Records returns it
	}
	l.todo = l.todo[:0]
}

// read reads from /proc which thread it is. For one that has ended, what the kernel reported
// remains.
func (l *perfThreads) read(t *perfThread) {
	t.read = true
	dir := filepath.Join(procDir(int(t.PID)), "task", strconv.Itoa(int(t.TID)))
	if b, err := readSome(filepath.Join(dir, "stat")); err == nil {
		if st, err := parseStat(b); err == nil {
			t.Kernel = st.kernel
			if t.Comm == "" {
				t.Comm = st.comm
			}
		}
	}
	if !t.Kernel {
		path, ok := l.cgroups[t.PID]
		if !ok {
			b, _ := readSome(filepath.Join(procDir(int(t.PID)), "cgroup"))
			path = cpuCgroup(string(b))
			l.cgroups[t.PID] = path
		}
		t.Cgroup = path
	}
	if t.Target {
		t.NSTID = t.TID
		if l.sameNS {
			return
		}
		t.NSTID = 0
		if b, err := readSome(filepath.Join(dir, "status")); err == nil {
			t.NSTID = uint32(nsPID(b, 0))
		}
	}
}

// cpuCgroup finds the group that has the cpu controller in /proc/PID/cgroup: "4:cpu,cpuacct:/a",
// else v2's "0::/a".
func cpuCgroup(text string) string {
	v2 := ""
	for line := range strings.SplitSeq(text, "\n") {
		_, rest, _ := strings.Cut(line, ":")
		controllers, path, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		if strings.HasPrefix(line, "0::") {
			v2 = path
		}
		for c := range strings.SplitSeq(controllers, ",") {
			if c == "cpu" {
				return path
			}
		}
	}
	return v2
}
