package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// part is a part of the recorder, or something that stands for it.
type part struct {
	key, title string
	args       []string // of whystall record; nil: another kind
	page       string   // that is fetched
	long       bool     // the page lasts as long as the window
	whole      bool     // --for counts, and what it felt like from its start to its end is a row too
}

// harmParts is the table of parts, in the order of the rows. The pages are those that a recording
// fetches, the CPU profile only when it is asked for, and allocs for comparison.
func harmParts() []part {
	l := []part{
		{key: "none", title: "nothing: the same twice"},
		{key: "readings", title: "readings of /proc alone", args: []string{"--no-probe", "--no-kernel"}},
		{key: "kernel", title: "kernel's records, no stacks", args: []string{"--no-probe", "--no-stacks"}},
		{key: "stacks", title: "kernel's records with stacks", args: []string{"--no-probe"}},
		{key: "trace", title: "the trace alone", page: "trace?seconds=600", long: true},
		{key: "cpu", title: "the CPU profile alone", page: "profile?seconds=600", long: true},
	}
	for _, page := range []string{"goroutine", "heap", "heap?debug=1", "allocs", "mutex", "mutex?debug=1", "block"} {
		key := strings.ReplaceAll(strings.TrimSuffix(page, "=1"), "?", "-")
		l = append(l, part{key: "page-" + key, title: "the page " + page + ", once a window", page: page})
	}
	return append(l, part{key: "whole", title: "whystall record", args: []string{}, whole: true})
}

// fits reports whether the target has what the part asks for.
func (p part) fits(t stressed) bool { return !t.native || p.page == "" }

// felts are the windows of one half of a pair.
type felts struct {
	window    felt
	own       float64 // CPUs that the recorder took in the window
	time      span    // of the whole: from the recorder's start to its end, or as long without one
	all       felt
	allOwn    float64
	stolen    float64 // CPUs that the hypervisor took in that time; 0 for parts that are not whole
	earlyTime span    // while it recorded the kernel's events and no trace yet
	early     felt    // none due: there was no such time
	earlyOwn  float64
	slices    string // p99 over the recorder's time
}

// attached measures a window with the part at work.
func (s *stand) attached(ctx context.Context, p part) (f felts, err error) {
	switch {
	case p.args != nil:
		return s.recorded(ctx, p)
	case p.page != "":
		return s.fetched(ctx, p)
	}
	f.window, err = s.measure(ctx, nil)
	return f, err
}

// fetched measures while a page is fetched: one that lasts is at work from before the window on;
// another is fetched a tenth into the window.
func (s *stand) fetched(ctx context.Context, p part) (f felts, err error) {
	h, err := startHelper(ctx, "fetch", "http://"+s.target.says["addr"]+"/debug/pprof/"+p.page)
	if err != nil {
		return f, err
	}
	s.recorder = h.pid
	defer func() { s.recorder = 0; h.end() }()
	start := func() error { _, err := h.in.Write([]byte("\n")); return err }
	if p.long {
		if err := start(); err != nil {
			return f, err
		}
		if err := pause(ctx, s.o.settle); err != nil {
			return f, err
		}
		start = nil
	}
	cpu, at := processCPU(h.pid), time.Now()
	f.window, err = s.measure(ctx, start)
	f.own = cpus(cpu, processCPU(h.pid), time.Since(at))
	if err == nil && gone(h.pid) {
		err = fmt.Errorf("the page %s was not answered", p.page)
	}
	return f, err
}

// recorded measures while whystall records. --for is what is needed: it ends by itself, as a user's
// does.
func (s *stand) recorded(ctx context.Context, p part) (f felts, err error) {
	file := filepath.Join(s.dir, p.key+".case")
	seconds := math.Ceil((s.o.settle + s.o.window + time.Second).Seconds())
	args := append([]string{"record", "--pid", strconv.Itoa(s.target.pid), "--for",
		fmt.Sprintf("%.0fs", seconds), "--force", "-o", file}, p.args...)
	cmd := exec.CommandContext(ctx, s.whystall, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	cmd.SysProcAttr = ownSession()
	var output strings.Builder
	cmd.Stderr = &output
	began, atFirst := monotonicNS(), readStat()
	if err := cmd.Start(); err != nil {
		return f, err
	}
	s.recorder = cmd.Process.Pid
	defer func() { s.recorder = 0 }()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	early := s.awaitRecording(p, cmd.Process.Pid, file+".part")
	err = pause(ctx, s.o.settle)
	if err == nil {
		cpu, at := processCPU(cmd.Process.Pid), time.Now()
		f.window, err = s.measure(ctx, nil)
		f.own = cpus(cpu, processCPU(cmd.Process.Pid), time.Since(at))
	}
	over := len(ended) > 0
	if e := <-ended; err == nil && e == nil && over {
		err = errors.New("whystall record ended before the window did")
	} else if e != nil && err == nil {
		err = fmt.Errorf("whystall record: %w: %s", e, lastLine(output.String()))
	}
	if err != nil {
		return f, err
	}
	now := monotonicNS()
	c := costOf(cmd.ProcessState, 0)
	f.allOwn = c.cpu.Seconds() / (float64(now-began) / 1e9)
	if early.from > 0 && early.to-early.from > int64(time.Second) {
		f.earlyOwn = cpus(early.cpuFrom, early.cpuTo, time.Duration(early.to-early.from))
		f.earlyTime = early
		if f.early, err = s.felt(early.from, early.to); err != nil {
			return f, err
		}
	}
	f.time, s.lasts = span{from: began, to: now}, time.Duration(now-began)
	f.slices, f.stolen = s.overTime(began, now), atFirst.stolenSince()
	f.all, err = s.felt(began, now)
	return f, err
}

// awaitRecording waits until all that the part records is at work. The trace is when it has bytes.
// The kernel's events are when the recorder has opened no more of the files that bring them for a
// while: the stream's own file gets its first bytes late. early is the time between the two.
func (s *stand) awaitRecording(p part, pid int, dir string) (early span) {
	had, since := 0, time.Now()
	for t := time.Now(); time.Since(t) < 20*time.Second && !gone(pid); time.Sleep(20 * time.Millisecond) {
		if n := eventFiles(pid); n > had { // it closes some of them for a while, to be cheaper
			had, since = n, time.Now()
		}
		trace, err := os.Stat(filepath.Join(dir, "trace.out"))
		traced := err == nil && trace.Size() > 0 || untraced(dir)
		if had > 0 && time.Since(since) > 300*time.Millisecond && early.from == 0 {
			early = span{from: monotonicNS(), cpuFrom: processCPU(pid)}
		}
		switch {
		case p.key == "readings" && time.Since(t) > time.Second/2,
			traced && had > 0,
			early.from > 0 && (!p.whole || s.t.native):
			early.to, early.cpuTo = monotonicNS(), processCPU(pid)
			return early
		}
	}
	return span{}
}

// untraced reports whether whystall has left the trace out, to spare the target.
func untraced(dir string) bool {
	var m struct {
		Collectors []struct{ Name, State string }
	}
	b, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil || json.Unmarshal(b, &m) != nil {
		return false
	}
	for _, c := range m.Collectors {
		if c.Name == "trace" && c.State == "unavailable" {
			return true
		}
	}
	return false
}

// span is a time, and a process' CPU time at its ends.
type span struct{ from, to, cpuFrom, cpuTo int64 }

// eventFiles is how many files a process has open by which the kernel sends events.
func eventFiles(pid int) (n int) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		to, _ := os.Readlink(filepath.Join(dir, f.Name()))
		if strings.Contains(to, "bpf_link") || strings.Contains(to, "bpf-link") || strings.Contains(to, "perf_event") {
			n++
		}
	}
	return n
}

// gone reports whether a process has ended, collected by its parent or not.
func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

func cpus(before, after int64, took time.Duration) float64 {
	if before < 0 || after < before {
		return 0
	}
	return float64(after-before) / float64(took)
}
