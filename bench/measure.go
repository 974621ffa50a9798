package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// runProgram runs p once, and gives what it took and the key=value words which it printed.
func runProgram(ctx context.Context, p program) (c cost, says map[string]string, err error) {
	cmd := exec.CommandContext(ctx, p.args[0], p.args[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return c, nil, err
	}
	private := watchMemory(cmd.Process.Pid)
	err = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); err != nil && !(p.found && code == 1) {
		return c, nil, fmt.Errorf("run %s: %w\n%s", p.name, err, &stderr)
	}
	c = costOf(cmd.ProcessState, time.Since(start))
	c.private = private()
	says = parseSays(stdout.String())
	if !p.found { // explain prints for people
		c.heap, _ = strconv.ParseInt(says["heap"], 10, 64)
	}
	return c, says, nil
}

// pageMemory is how many bytes of memory go tool trace takes for each byte of the trace; measured:
// 229.
const pageMemory = 260

// runPage runs go tool trace until its first page answers, then kills it. why says why it was not
// run.
func runPage(ctx context.Context, trace string, size int64) (c cost, why string, err error) {
	if need, free := size*pageMemory, freeMemory(); free < need {
		return c, fmt.Sprintf("it needs about %s MB of memory, %s are free", mb(need), mb(free)), nil
	}
	// The tool itself, not the go command, which would wait for it as a child of its own. Asked
	// once for its path, go builds it.
	if b, err := exec.CommandContext(ctx, "go", "tool", "trace", "-h").CombinedOutput(); err != nil && len(b) == 0 {
		return c, "go tool trace does not start: " + err.Error(), nil
	}
	path, err := exec.CommandContext(ctx, "go", "tool", "-n", "trace").Output()
	if err != nil {
		return c, "go tool trace is not to be found: " + err.Error(), nil
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return c, "", err
	}
	addr := ln.Addr().String()
	ln.Close()

	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, strings.TrimSpace(string(path)), "-http="+addr, trace)
	cmd.Env = append(os.Environ(), "BROWSER=true") // it would open one
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return c, "go tool trace does not start: " + err.Error(), nil
	}
	private := watchMemory(cmd.Process.Pid)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case err := <-ended:
			if e := context.Cause(ctx); e != nil {
				err = e
			}
			return c, fmt.Sprintf("go tool trace ended before its page: %v: %s", err,
				strings.TrimSpace(stderr.String())), nil
		case <-poll.C:
			if !answers(ctx, "http://"+addr+"/") {
				continue
			}
			wall := time.Since(start)
			cmd.Process.Kill()
			<-ended
			c = costOf(cmd.ProcessState, wall)
			c.private = private()
			return c, "", nil
		}
	}
}

// answers reports whether url answers with status 200.
func answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK
}

// costOf reads what the kernel counted for a process which has ended.
func costOf(s *os.ProcessState, wall time.Duration) cost {
	c := cost{cpu: s.UserTime() + s.SystemTime(), wall: wall}
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		c.rss = int64(u.Maxrss)
		if runtime.GOOS == "linux" { // KiB there, bytes on macOS
			c.rss *= 1024
		}
	}
	return c
}

// watchMemory samples a process' memory that is not a file's until the returned function is called,
// after its end: the largest of them. What is mapped of a trace is the page cache's and not
// counted.
func watchMemory(pid int) func() int64 {
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		t := time.NewTicker(10 * time.Millisecond)
		defer t.Stop()
		for {
			most = max(most, field(fmt.Sprintf("/proc/%d/status", pid), "RssAnon:"))
			select {
			case <-stop:
				peak <- most
				return
			case <-t.C:
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-peak
	}
}

// freeMemory is how many bytes could be had without swapping; 0 where that is not known.
func freeMemory() int64 { return field("/proc/meminfo", "MemAvailable:") }

// field reads a value in kB from a /proc file, and gives it in bytes; 0 where there is none.
func field(file, key string) int64 {
	b, _ := os.ReadFile(file) // it is not there on other systems, or when the process has ended
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, key); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			return kb * 1024
		}
	}
	return 0
}

func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}

// warm reads the file once, so that no program pays for the disk.
func warm(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err
}

// quartiles gives the bounds of the middle half of l, and its median.
func quartiles(l []float64) (low, mid, high float64) {
	if len(l) == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	l = slices.Sorted(slices.Values(l))
	n := len(l)
	return l[n/4], (l[(n-1)/2] + l[n/2]) / 2, l[n-1-n/4]
}
