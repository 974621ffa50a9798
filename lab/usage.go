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

// used is what a process used, by the kernel's own counts.
type used struct {
	cpu            time.Duration
	minor, major   int64
	threads        int64
	voluntary, inv int64 // context switches of the threads that live

	live map[string]bool // threads, by their numbers
	gone bool            // threads have ended, and taken their counts of switches with them
}

func (u used) since(b used) used {
	d := used{cpu: u.cpu - b.cpu, minor: u.minor - b.minor, major: u.major - b.major, threads: u.threads, voluntary: max(u.voluntary-b.voluntary, 0), inv: max(u.inv-b.inv, 0)}
	for tid := range b.live {
		d.gone = d.gone || !u.live[tid]
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
				u.inv += v
			}
		}
	}
	return u
}

// resident is a process' memory in bytes.
func resident(pid int) int64 {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if f := strings.Fields(string(b)); len(f) > 1 {
		n, _ := strconv.ParseInt(f[1], 10, 64)
		return n * int64(os.Getpagesize())
	}
	return 0
}

// busy is the CPU time that the whole machine has used, and what its hypervisor gave to other machines meanwhile: both are CPU that
// was not to be had.
func busy() time.Duration {
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

// ofKernel is the CPU time of the kernel's own threads, such as khugepaged: work that somebody's processes make for it.
func ofKernel() (sum time.Duration) {
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

// own is the CPU time of the variant's processes and of whystall, which is a child that ended.
func (s *stage) own() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_CHILDREN, &r)
	sum := time.Duration(r.Utime.Nano() + r.Stime.Nano())
	for _, c := range s.order {
		sum += usedBy(c.pid).cpu
	}
	return sum
}

// available is how much memory could be had without swapping.
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
