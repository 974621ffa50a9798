package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/whystall/whystall/lab/witness"
)

// child is one of a case's processes. It ends when its standard input does, so it cannot outlive
// the lab. The end of a run kills it as well.
type child struct {
	name  string
	pid   int
	args  []string // without the programs which start it, such as nice
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // its output; closed at its end
	says  map[string]string
	errs  tail
}

// start runs the process in the cgroups whose cgroup.procs are in join. It waits until the process
// says that it is ready.
func start(ctx context.Context, p *Process, program string, args, join []string) (*child, error) {
	c := &child{name: p.Name, args: args, lines: make(chan string), says: map[string]string{}}
	name := p.Name
	command := append([]string{program}, args...)
	if p.Nice != 0 {
		// By a program, not by a system call, which on Linux would lower only one thread.
		command = append([]string{"nice", "-n", strconv.Itoa(p.Nice)}, command...)
	}
	if p.CPUs != "" {
		command = append([]string{"taskset", "-c", p.CPUs}, command...)
	}
	if len(join) > 0 {
		// The shell joins before it becomes the program, so the program never runs outside.
		script := "for f in $1; do echo $$ > $f || exit 9; done; shift; exec \"$@\""
		command = append([]string{"sh", "-c", script, "sh", strings.Join(join, " ")}, command...)
	}
	c.cmd = exec.CommandContext(ctx, command[0], command[1:]...)
	c.cmd.Env = os.Environ()
	for k, v := range p.Env {
		c.cmd.Env = append(c.cmd.Env, k+"="+v)
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: p.Session}
	c.cmd.WaitDelay = time.Second
	c.cmd.Stderr = &c.errs
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c.pid = c.cmd.Process.Pid
	go func() {
		defer close(c.lines)
		s := bufio.NewScanner(out)
		s.Buffer(nil, 256<<20) // the figures of all requests are one line
		for s.Scan() {
			c.lines <- s.Text()
		}
	}()
	line, err := c.line(ctx, readyWithin)
	if err == nil && !strings.HasPrefix(line, "ready") {
		err = fmt.Errorf("want ready, got %q", line)
	}
	if err != nil {
		c.stop()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	for _, pair := range strings.Fields(line)[1:] {
		k, v, _ := strings.Cut(pair, "=")
		c.says[k] = v
	}
	return c, nil
}

// readyWithin is how long a process may take to get ready: one of them fills 2 GiB of memory first.
const readyWithin = 2 * time.Minute

var errTimeout = errors.New("no answer")

// line gives the next line of the child's output.
func (c *child) line(ctx context.Context, within time.Duration) (string, error) {
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	select {
	case l, ok := <-c.lines:
		if !ok {
			return "", errors.New("it ended: " + c.errs.String())
		}
		return l, nil
	case <-ctx.Done():
		return "", ctx.Err()
	case <-timeout.C:
		return "", fmt.Errorf("%w in %v", errTimeout, within)
	}
}

// mark asks a process with a witness for its figures since the last mark; with all, for every
// request too.
func (c *child) mark(ctx context.Context, all bool) ([]witness.Figures, error) {
	word := "mark\n"
	if all {
		word = "mark all\n"
	}
	if _, err := io.WriteString(c.in, word); err != nil {
		return nil, fmt.Errorf("ask %s: %w: %s", c.name, err, &c.errs)
	}
	line, err := c.line(ctx, 20*time.Second)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.name, err)
	}
	var f []witness.Figures
	if err := json.Unmarshal([]byte(line), &f); err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.name, err)
	}
	return f, nil
}

// stop kills the process and waits for its end.
func (c *child) stop() {
	c.cmd.Process.Kill()
	go func() {
		for range c.lines { // so that the goroutine ends which reads its output
		}
	}()
	c.cmd.Wait()
}

// tail keeps the end of what a child writes to its standard error.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if extra := len(t.b) - 4096; extra > 0 {
		t.b = t.b[extra:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b))
}
