package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

type options struct {
	record time.Duration
	format string
}

const (
	warmUp = time.Second
	look   = 3 * time.Second // what the symptom is measured over
)

// run tells the story of a case: the symptom by the clients' figures, then whystall's report of the
// server, then what the clients saw meanwhile. It gives whystall's exit status.
func run(ctx context.Context, c Case, v Variant, o options, stdout, stderr io.Writer) (status int, err error) {
	// 1. Build. The lab's own words go to stderr where stdout is for a program to read.
	say := stdout
	if o.format != "text" {
		say = stderr
	}
	if _, err := os.Stat("../cmd/whystall"); err != nil {
		return 0, fmt.Errorf("find whystall's source: %w; start the lab as: go run -C lab . run %s", err, c.Name)
	}
	dir, err := os.MkdirTemp("", "whystall-lab-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(say, "%s (%s): %s\n\n", c.Name, v.Name, c.Title)
	for _, p := range append(c.Story, "Here: "+v.Doc+".") {
		fmt.Fprintf(say, "%s\n", wrap(p, 98))
	}
	fmt.Fprintf(say, "\nbuilding whystall and the case ...\n")
	whystall, program := filepath.Join(dir, "whystall"), filepath.Join(dir, c.Name)
	if err := build(ctx, "..", whystall, "./cmd/whystall"); err != nil {
		return 0, err
	}
	if err := build(ctx, ".", program, "./"+c.Name); err != nil {
		return 0, err
	}

	// 2. Start the processes, each of which may need what an earlier one says.
	says := map[string]string{}
	children := map[string]*child{}
	for _, p := range v.Start {
		args, err := fill(p.Args, says)
		if err != nil {
			return 0, err
		}
		child, err := start(ctx, p.Name, p.Nice, program, args)
		if err != nil {
			return 0, err
		}
		defer child.stop()
		children[p.Name] = child
		for k, v := range child.says {
			says[p.Name+"."+k] = v
		}
		fmt.Fprintf(say, "  %-8s pid %-7d %s\n", p.Name, child.cmd.Process.Pid, child.describe())
	}
	clients, pprof := children["clients"], says["server.pprof"]
	if clients == nil || pprof == "" {
		return 0, fmt.Errorf("read case %s: variant %s has no clients, or its server no pprof", c.Name, v.Name)
	}

	// 3. The symptom.
	if err := wait(ctx, clients, warmUp); err != nil {
		return 0, err
	}
	if _, err := clients.mark(ctx); err != nil {
		return 0, err
	}
	if err := wait(ctx, clients, look); err != nil {
		return 0, err
	}
	if err := symptom(ctx, clients, say, fmt.Sprintf("what the clients see, %.0f s long:", look.Seconds())); err != nil {
		return 0, err
	}

	// 4. The diagnosis, as of any process.
	args := []string{"diagnose", "--pprof", pprof, "--for", o.record.String(), "--format", o.format}
	fmt.Fprintf(say, "\n$ whystall %s\n\n", strings.Join(args, " "))
	status, err = diagnose(ctx, whystall, args, stdout, stderr)
	if err != nil {
		return 0, err
	}

	// 5. What the clients saw while whystall looked: recording has its price.
	if err := symptom(ctx, clients, say, "what the clients saw meanwhile:"); err != nil {
		return 0, err
	}
	for name, child := range children {
		select {
		case _, open := <-child.lines:
			if !open {
				return 0, fmt.Errorf("%s died: %s", name, &child.errs)
			}
		default:
		}
	}
	return status, nil
}

func build(ctx context.Context, dir, out, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-C", dir, "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("build %s: %w\n%s", pkg, err, b)
	}
	return nil
}

// diagnose runs whystall on the lab's own terminal. It is interrupted, not killed, so that it can
// clean up after itself.
func diagnose(ctx context.Context, whystall string, args []string, stdout, stderr io.Writer) (status int, err error) {
	cmd := exec.CommandContext(ctx, whystall, args...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode(), nil
	}
	return 0, err
}

func symptom(ctx context.Context, clients *child, w io.Writer, title string) error {
	figures, err := clients.mark(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s\n", title)
	for _, f := range figures {
		fmt.Fprintf(w, "  %-26s %s\n", f.Name+":", f)
	}
	return nil
}

// wait lets the service run; a client that dies ends it.
func wait(ctx context.Context, clients *child, d time.Duration) error {
	line, err := clients.line(ctx, d)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return fmt.Errorf("read clients: unasked line %q", line)
	case errors.Is(err, errTimeout):
		return nil
	}
	return fmt.Errorf("read clients: %w", err)
}

// fill puts what earlier processes said into arguments.
func fill(args []string, says map[string]string) ([]string, error) {
	var out []string
	for _, a := range args {
		if name, ok := strings.CutPrefix(a, "{"); ok {
			name = strings.TrimSuffix(name, "}")
			if a, ok = says[name]; !ok {
				return nil, fmt.Errorf("read case: no earlier process says {%s}", name)
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// describe is a process' ready line for people, and how many CPUs its machine has where that matters.
func (c *child) describe() string {
	s := strings.Join(c.args, " ")
	if url := c.says["url"]; url != "" {
		s += fmt.Sprintf(" -> %s (%d CPUs)", url, runtime.NumCPU())
	}
	return s
}

func wrap(text string, width int) string {
	var b strings.Builder
	n := 0
	for _, w := range strings.Fields(text) {
		switch {
		case n == 0:
		case n+1+len(w) > width:
			b.WriteByte('\n')
			n = 0
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(w)
		n += len(w)
	}
	return b.String()
}
