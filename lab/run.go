package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

type runOptions struct {
	options
	record time.Duration
	format string
	only   bool // only the named variant, without the remedy
}

func runArgs(ctx context.Context, shared options, args []string) int {
	name, o := args[0], runOptions{options: shared}
	fs := o.flags("run")
	variant := fs.String("variant", "", "")
	fs.DurationVar(&o.record, "for", 10*time.Second, "")
	fs.StringVar(&o.format, "format", "text", "")
	if fs.Parse(args[1:]) != nil {
		return exitUsage
	}
	if fs.NArg() > 0 || o.record < time.Second {
		fmt.Fprintf(o.stderr, "lab: want one CASE, and --for of at least 1s\n%s", usage)
		return exitUsage
	}
	o.only = *variant != ""
	c := find(o.cases, name)
	if c == nil {
		fmt.Fprintf(o.stderr, "lab: no case %q; lab list shows them\n", name)
		return exitUsage
	}
	v := c.variant(cmp.Or(*variant, "ill"))
	if v == nil {
		fmt.Fprintf(o.stderr, "lab: %s has no variant %q; lab list shows them\n", name, *variant)
		return exitUsage
	}
	status, err := run(ctx, c, v, o)
	if err == nil && status > 1 {
		err = fmt.Errorf("whystall's exit status is %d", status)
	}
	return o.ended(ctx, c.Name+", "+v.Name, err)
}

// look is how long the symptom is measured.
const look = 4 * time.Second

// showing is a case which is shown.
type showing struct {
	runOptions
	c        *Case
	b        *builder
	whystall string
	dir      string    // for recordings
	words    io.Writer // for the lab's own words
}

// run shows a case: the symptom by the clients' figures, what whystall says about the server, the
// remedy, and the clients again. It gives whystall's exit status.
func run(ctx context.Context, c *Case, v *Variant, o runOptions) (status int, err error) {
	dir, remove, err := tempDir()
	if err != nil {
		return 0, err
	}
	defer remove()
	// The lab's own words go to stderr where stdout is for a program to read.
	x := showing{runOptions: o, c: c, dir: dir, words: o.stdout}
	if o.format != "text" {
		x.words = o.stderr
	}
	x.b = newBuilder(dir, x.words, o.prebuilt)
	fmt.Fprintf(x.words, "%s (%s): %s\n\n", c.Name, v.Name, c.Title)
	for _, p := range append(c.Story, "Here: "+v.Doc+".") {
		fmt.Fprintf(x.words, "%s\n", wrap(p, 98))
	}
	fmt.Fprintln(x.words)
	if x.whystall, err = x.b.whystall(ctx); err != nil {
		return 0, err
	}
	before, status, err := x.symptom(ctx, v)
	if err != nil || o.only {
		return status, err
	}
	after, err := x.remedy(ctx, c.variant(v.cured()))
	if err != nil {
		return status, err
	}
	compare(x.words, before, after)
	if err := x.judged(ctx); err != nil {
		return status, err
	}
	if e, ok := experiments[c.Name]; ok {
		err = tryAll(ctx, x.b, c, e, 2*time.Second, x.words)
	}
	return status, err
}

// symptom runs a variant, prints what its clients see, and has whystall diagnose its server like
// any other process.
func (x *showing) symptom(ctx context.Context, v *Variant) (before *seen, status int, err error) {
	s, err := set(ctx, x.b, x.c, v)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	for _, p := range s.order {
		fmt.Fprintf(x.words, "  %-8s pid %-7d %s\n", p.name, p.pid, p.describe())
	}
	if err := s.warmUp(ctx); err != nil {
		return nil, 0, err
	}
	others := s.others()
	if before, err = s.watch(ctx, look); err != nil {
		return nil, 0, err
	}
	view := "the clients see"
	if s.child["clients"] == nil {
		view = "the program measures itself"
	}
	before.print(x.words, fmt.Sprintf("what %s, %.0f s long:", view, look.Seconds()))
	args := []string{"diagnose", "--pid", strconv.Itoa(s.pid()), "--for", x.record.String(), "--format", x.format}
	fmt.Fprintf(x.words, "\n$ whystall %s\n\n", strings.Join(args, " "))
	file := filepath.Join(x.dir, x.c.Name+".case")
	if status, err = diagnose(ctx, x.whystall, append(args, "-o", file), x.stdout, x.stderr); err != nil {
		return nil, status, err
	}
	// What the clients saw while whystall recorded, as recording has its price.
	figures, err := s.clients().mark(ctx, false)
	if err != nil {
		return nil, status, err
	}
	(&seen{figures: figures}).print(x.words, fmt.Sprintf("what %s, while whystall recorded:", view))
	if before.report, err = ask(ctx, x.whystall, "explain", file); err != nil {
		return nil, status, err
	}
	before.others = others()
	return before, status, s.dead()
}

// remedy runs the cured variant, and diagnoses it as well.
func (x *showing) remedy(ctx context.Context, cured *Variant) (after *seen, err error) {
	fmt.Fprintf(x.words, "\nthe remedy: %s\n\n", wrap(x.c.remedy(), 86))
	s, err := set(ctx, x.b, x.c, cured)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := s.warmUp(ctx); err != nil {
		return nil, err
	}
	others := s.others()
	if after, err = s.watch(ctx, look); err != nil {
		return nil, err
	}
	file := filepath.Join(x.dir, "cured.case")
	if after.report, err = ask(ctx, x.whystall, "diagnose", "--pid", strconv.Itoa(s.pid()), "--for",
		x.record.String(), "-o", file); err != nil {
		return nil, err
	}
	after.others = others()
	return after, nil
}

// judged has whystall say from the two recordings whether the remedy worked.
func (x *showing) judged(ctx context.Context) error {
	fmt.Fprintf(x.words, "\n$ whystall compare %s.case cured.case\n\n", x.c.Name)
	_, err := diagnose(ctx, x.whystall, []string{"compare", filepath.Join(x.dir, x.c.Name+".case"),
		filepath.Join(x.dir, "cured.case")}, x.words, x.stderr)
	return err
}

func (c *Case) variant(name string) *Variant {
	for i := range c.Variants {
		if c.Variants[i].Name == name {
			return &c.Variants[i]
		}
	}
	return nil
}

func (c *Case) remedy() string {
	if c.Remedy != "" {
		return c.Remedy
	}
	return c.variant("cured").Doc
}

// diagnose runs whystall with the lab's own output. The end of ctx interrupts it and does not kill
// it, so that it can clean up after itself.
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

// ask runs whystall and reads its report.
func ask(ctx context.Context, whystall string, args ...string) (*report, error) {
	var out bytes.Buffer
	status, err := diagnose(ctx, whystall, append(args, "--format", "json"), &out, io.Discard)
	if err == nil && status > 1 {
		err = fmt.Errorf("whystall %s: exit status %d", args[0], status)
	}
	if err != nil {
		return nil, err
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return nil, fmt.Errorf("read whystall's report: %w", err)
	}
	return &r, nil
}

// wait lets the service run for d. A client which dies is an error.
func wait(ctx context.Context, clients *child, d time.Duration) error {
	line, err := clients.line(ctx, d)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return fmt.Errorf("read clients: a line that was not asked for: %q", line)
	case errors.Is(err, errTimeout):
		return nil
	}
	return fmt.Errorf("read clients: %w", err)
}

// fill replaces {NAME} in arguments by what earlier processes said.
func fill(args []string, says map[string]string) ([]string, error) {
	var out []string
	for _, a := range args {
		for {
			before, rest, open := strings.Cut(a, "{")
			name, after, closed := strings.Cut(rest, "}")
			if !open || !closed {
				break
			}
			value, ok := says[name]
			if !ok {
				return nil, fmt.Errorf("read case: no earlier process says {%s}", name)
			}
			a = before + value + after
		}
		out = append(out, a)
	}
	return out, nil
}

// describe is a process' ready line for people, with the number of the machine's CPUs where that
// matters.
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
