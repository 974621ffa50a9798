package bpf

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// perfEvents is one software event on each CPU, with a program.
type perfEvents []int

func (p perfEvents) Close() error {
	for _, fd := range p {
		unix.Close(fd)
	}
	return nil
}

// attachPerf opens a software event on each CPU that calls the program for every fault.
func (l *loader) attachPerf(p program, prog *ebpf.Program) (perfEvents, error) {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Sample: 1}
	switch p.name {
	case whystallProgFaultMinor:
		attr.Config = unix.PERF_COUNT_SW_PAGE_FAULTS_MIN
	case whystallProgFaultMajor:
		attr.Config = unix.PERF_COUNT_SW_PAGE_FAULTS_MAJ
	default:
		return nil, errors.New("no such event")
	}
	attr.Size = uint32(unsafe.Sizeof(attr))
	var fds perfEvents
	for _, r := range l.rings {
		fd, err := unix.PerfEventOpen(&attr, -1, r.cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err == nil {
			fds = append(fds, fd)
			err = unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, prog.FD())
		}
		if err != nil {
			fds.Close()
			return nil, fmt.Errorf("%s on CPU %d: %w", p.tracepoint, r.cpu, err)
		}
	}
	return fds, nil
}

// addresses finds the kernel's functions by name; hidden reports that the kernel shows this user no
// addresses.
func addresses[V any](names map[string]V) (found map[string]uint64, hidden bool, err error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	found = map[string]uint64{}
	for s := bufio.NewScanner(f); s.Scan() && len(found) < len(names); {
		// "ffffffff813b8af0 t sched_cfs_slack_timer", and for a module's a tab and its name
		line := s.Bytes()
		at := bytes.IndexByte(line, ' ')
		if at < 0 || len(line) < at+4 {
			continue
		}
		name := line[at+3:]
		if _, ok := names[string(name)]; !ok {
			continue
		}
		addr, err := strconv.ParseUint(string(line[:at]), 16, 64)
		if err != nil || addr == 0 {
			hidden = true
			continue
		}
		found[string(name)] = addr
	}
	return found, hidden, nil
}

// lacking is the error for names that were not found; nil if all were found.
func lacking[V any](names map[string]V, found map[string]uint64, hidden bool) error {
	var without []string
	for n := range names {
		if found[n] == 0 {
			without = append(without, n)
		}
	}
	slices.Sort(without)
	switch {
	case len(without) == 0:
		return nil
	case hidden:
		return errors.New("/proc/kallsyms hides addresses: needs CAP_SYSLOG, or kernel.kptr_restrict=0")
	}
	return fmt.Errorf("/proc/kallsyms lacks %q", without)
}
