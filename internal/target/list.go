package target

import (
	"bytes"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Process is what is known of one.
type Process struct {
	PID     int
	Comm    string
	Exe     string   // "" where another user's is hidden
	Program string   // the first argument, "" of a kernel thread
	Groups  []string // its cgroups' paths, of all hierarchies
	Ticks   int64    // CPU time, user and system, in ticks
	CPU     float64  // CPUs in use, over a short while; of those that are listed
}

// most bounds what is read: of each file, and how many processes.
const (
	mostBytes     = 64 << 10
	mostProcesses = 1 << 17
)

// list reads the processes of a /proc, by pid. What ends meanwhile is left out, and so are kernel
// threads and the caller.
func list(proc string, self int) (l []Process, err error) {
	dir, err := os.Open(proc)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(mostProcesses)
	if err != nil && len(names) == 0 {
		return nil, err
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == self {
			continue
		}
		if p, ok := read(proc, pid); ok {
			l = append(l, p)
		}
	}
	slices.SortFunc(l, func(a, b Process) int { return a.PID - b.PID })
	return l, nil
}

// read reads one process; false: it has ended, is a zombie or of the kernel.
func read(proc string, pid int) (p Process, ok bool) {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	p.PID = pid
	if p.Comm, p.Ticks, ok = stat(dir); !ok {
		return p, false
	}
	args := some(filepath.Join(dir, "cmdline"))
	if len(args) == 0 {
		return p, false // of the kernel
	}
	first, _, _ := bytes.Cut(args, []byte{0})
	p.Program = string(first)
	p.Exe, _ = os.Readlink(filepath.Join(dir, "exe"))
	p.Exe = strings.TrimSuffix(p.Exe, " (deleted)")
	for line := range strings.Lines(string(some(filepath.Join(dir, "cgroup")))) {
		// hierarchy:controllers:path
		if f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3); len(f) == 3 {
			p.Groups = append(p.Groups, f[2])
		}
	}
	return p, true
}

// stat reads the name and the CPU time. The name is in brackets and may hold any character, so it
// ends at the last bracket.
func stat(dir string) (comm string, ticks int64, ok bool) {
	s := string(some(filepath.Join(dir, "stat")))
	open, end := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')')
	if open < 0 || end < open {
		return "", 0, false
	}
	f := strings.Fields(s[end+1:])
	const state, user, system = 0, 11, 12 // fields 3, 14 and 15 of proc_pid_stat(5)
	if len(f) <= system || f[state] == "Z" || f[state] == "X" {
		return "", 0, false
	}
	u, err := strconv.ParseInt(f[user], 10, 64)
	v, err2 := strconv.ParseInt(f[system], 10, 64)
	return s[open+1 : end], u + v, err == nil && err2 == nil
}

// some reads a small file, cut; nothing where it cannot be read.
func some(name string) []byte {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, mostBytes))
	return b
}

// is reports whether the process runs the program of that name. The kernel cuts its own name for it
// after 15 bytes.
func (p *Process) is(name string) bool {
	const commBytes = 15
	by := func(file string) bool { return file != "" && path.Base(file) == name }
	return p.Comm == name || len(name) > commBytes && p.Comm == name[:commBytes] &&
		(by(p.Exe) || by(p.Program)) || by(p.Exe)
}

// in reports whether one of its cgroups has a part that fits.
func (p *Process) in(fits func(part string) bool) bool {
	for _, g := range p.Groups {
		if slices.ContainsFunc(strings.Split(g, "/"), fits) {
			return true
		}
	}
	return false
}
