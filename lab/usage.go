package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// used is what a process used, as the kernel counts.
type used struct {
	cpu          time.Duration
	minor, major int64
	threads      int64
	voluntary    int64 // context switches of the threads which live
	involuntary  int64

	live  map[string]bool // the threads, by TID
	ended bool            // threads have ended, and their counts of switches are lost
}

func (u used) since(b used) used {
	d := used{cpu: u.cpu - b.cpu, minor: u.minor - b.minor, major: u.major - b.major,
		threads: u.threads, voluntary: max(u.voluntary-b.voluntary, 0),
		involuntary: max(u.involuntary-b.involuntary, 0)}
	for tid := range b.live {
		d.ended = d.ended || !u.live[tid]
	}
	return d
}

func usedBy(pid int) (u used) {
	dir := "/proc/" + strconv.Itoa(pid)
	b, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return u
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 18 {
		return u
	}
	n := func(i int) int64 { v, _ := strconv.ParseInt(f[i], 10, 64); return v }
	u.minor, u.major, u.threads = n(7), n(9), n(17)
	u.cpu = time.Duration(n(11)+n(12)) * (time.Second / 100) // USER_HZ is 100 wherever Go runs
	u.live = map[string]bool{}
	tasks, _ := os.ReadDir(dir + "/task")
	for _, t := range tasks {
		u.live[t.Name()] = true
		b, _ := os.ReadFile(dir + "/task/" + t.Name() + "/status")
		for line := range strings.Lines(string(b)) {
			key, value, _ := strings.Cut(line, ":")
			v, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			switch key {
			case "voluntary_ctxt_switches":
				u.voluntary += v
			case "nonvoluntary_ctxt_switches":
				u.involuntary += v
			}
		}
	}
	return u
}

// resident is a process' resident memory in bytes.
func resident(pid int) int64 {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if f := strings.Fields(string(b)); len(f) > 1 {
		n, _ := strconv.ParseInt(f[1], 10, 64)
		return n * int64(os.Getpagesize())
	}
	return 0
}

// busyCPU is the CPU time which the whole machine has used, and which its hypervisor gave to other
// machines. Neither was available.
func busyCPU() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	var sum time.Duration
	for i, f := range strings.Fields(line) {
		if i >= 1 && i <= 8 && i != 4 && i != 5 { // all but idle and iowait; guests are in user
			n, _ := strconv.ParseInt(f, 10, 64)
			sum += time.Duration(n) * (time.Second / 100)
		}
	}
	return sum
}

// kernelCPU is the CPU time of the kernel's own threads, such as khugepaged. They work for some
// process, and it is not known for which.
func kernelCPU() (sum time.Duration) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		b, _ := os.ReadFile("/proc/" + e.Name() + "/stat")
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 12 && f[1] == "2" { // kthreadd's children
			n, _ := strconv.ParseInt(f[12], 10, 64)
			sum += time.Duration(n) * (time.Second / 100)
		}
	}
	return sum
}

// labCPU is the CPU time of the variant's processes, and of whystall, which is a child that has
// ended.
func (s *stage) labCPU() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_CHILDREN, &r)
	sum := time.Duration(r.Utime.Nano() + r.Stime.Nano())
	for _, c := range s.order {
		sum += usedBy(c.pid).cpu
	}
	return sum
}

// available is how much memory, in bytes, could be had without swapping.
func available() (int64, error) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemAvailable:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("read memory: no MemAvailable")
}

// nodes is the number of NUMA nodes.
func nodes() int {
	entries, _ := os.ReadDir("/sys/devices/system/node")
	n := 0
	for _, e := range entries {
		if id, ok := strings.CutPrefix(e.Name(), "node"); ok {
			if _, err := strconv.Atoi(id); err == nil {
				n++
			}
		}
	}
	return max(n, 1)
}
