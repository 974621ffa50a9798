// Lab makes services ill in ways that are known, for whystall to find out: a folder a case. It starts a
// server and, outside it, its clients, shows what they see, and points whystall at the server as at any
// stranger's process. What the lab knows of a case whystall does not: nothing here is imported by it.
//
//	go run -C lab . list
//	go run -C lab . run sched-latency
//	go run -C lab . verify
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/whystall/whystall/lab/settings"
)

const usage = `usage: lab list
       lab run CASE [--variant NAME] [--for 10s] [--format text|json|markdown]
       lab experiment CASE [--for 2s]
       lab qemu --kernel VMLINUZ [...] -- run|verify CASE ...
       lab verify [CASE[/VARIANT]...] [--times 3] [--for 10s] [-o FILE] [--keep FOLDER [--all]] [--right FOLDER]

run tells a case's story: it starts the server and its clients, shows what these see, diagnoses the server with
whystall, and does the same once cured; with --variant it runs that one only. verify runs every variant, or those
named, several times, holds what whystall says against what is known, and writes a table of it; --keep keeps what it recorded
where the verdict was wrong, with --all always; --right a recording of each variant whose verdict was right, for tests.
experiment runs what was published of thread-churn or runqueue-saturation and prints the tables, as run does at its end.
qemu does either in a virtual machine, for NUMA nodes and other kernels: lab qemu alone tells more.
Exit status: 0 done, whatever was found; 1 verify: something was missed or wrongly named; 2 wrong usage;
3 something went wrong.
`

const (
	exitMissed = 1
	exitUsage  = 2
	exitFailed = 3
)

// prebuilt is the folder of programs that are built already.
var prebuilt string

func main() {
	if len(os.Args) == 3 && os.Args[1] == "watchdog" { // started by ourselves, see package settings
		if err := settings.Watch(os.Stdin, os.Args[2]); err != nil {
			os.Exit(exitFailed)
		}
		return
	}
	if os.Geteuid() != 0 { // who may not change settings may still make folders
		settings.Folder = filepath.Join(os.TempDir(), "whystall-lab-journals")
	}
	if err := settings.Heal(); err != nil {
		fmt.Fprintln(os.Stderr, "lab: put back what a killed run left:", err)
	}
	sweep()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(ctx)
	go endWithParent(ctx, cancel)
	status := lab(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

func lab(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	if len(args) > 2 && args[0] == "--prebuilt" { // in a virtual machine of lab qemu
		prebuilt, args = args[1], args[2:]
	}
	cases, err := loadCases()
	if err != nil {
		fmt.Fprintln(stderr, "lab:", err)
		return exitFailed
	}
	switch {
	case args[0] == "qemu":
		return qemuArgs(ctx, cases, args[1:], stdout, stderr)
	case args[0] == "verify":
		return verifyArgs(ctx, cases, args[1:], stdout, stderr)
	case args[0] == "list" && len(args) == 1:
		for _, c := range cases {
			fmt.Fprintf(stdout, "%s: %s\n", c.Name, c.Title)
			for _, v := range c.Variants {
				fmt.Fprintf(stdout, "  %-16s %s\n", v.Name, v.Doc)
			}
		}
		return 0
	case args[0] == "run" && len(args) > 1:
		return runArgs(ctx, cases, args[1:], stdout, stderr)
	case args[0] == "experiment" && len(args) > 1:
		return experimentArgs(ctx, cases, args[1:], stdout, stderr)
	case args[0] == "help" || args[0] == "-h" || args[0] == "--help":
		fmt.Fprint(stdout, usage)
		return 0
	}
	fmt.Fprint(stderr, usage)
	return exitUsage
}

func runArgs(ctx context.Context, cases []Case, args []string, stdout, stderr io.Writer) int {
	name, o := args[0], options{}
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() { fmt.Fprint(stderr, usage) }
	variant := fs.String("variant", "", "")
	fs.DurationVar(&o.record, "for", 10*time.Second, "")
	fs.StringVar(&o.format, "format", "text", "")
	if fs.Parse(args[1:]) != nil {
		return exitUsage
	}
	if fs.NArg() > 0 || o.record < time.Second {
		fmt.Fprintf(stderr, "lab: want one CASE, and --for of at least 1s\n%s", usage)
		return exitUsage
	}
	o.only = *variant != ""
	c := find(cases, name)
	if c == nil {
		fmt.Fprintf(stderr, "lab: no case %q; lab list shows them\n", name)
		return exitUsage
	}
	v := c.variant(cmp.Or(*variant, "ill"))
	if v == nil {
		fmt.Fprintf(stderr, "lab: %s has no variant %q; lab list shows them\n", name, *variant)
		return exitUsage
	}
	status, err := run(ctx, c, v, o, stdout, stderr)
	if ctx.Err() != nil { // whatever it broke
		err = errors.New("stopped; nothing was left running")
	}
	var why skip
	if errors.As(err, &why) {
		fmt.Fprintf(stderr, "lab: %s, %s: %v\n", c.Name, v.Name, why)
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "lab:", err)
		return exitFailed
	}
	if status > 1 {
		fmt.Fprintf(stderr, "lab: whystall's exit status is %d\n", status)
		return exitFailed
	}
	return 0
}

func experimentArgs(ctx context.Context, cases []Case, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("experiment", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() { fmt.Fprint(stderr, usage) }
	d := fs.Duration("for", 2*time.Second, "")
	c := find(cases, args[0])
	if fs.Parse(args[1:]) != nil {
		return exitUsage
	}
	if c == nil || len(experiments[c.Name].rows) == 0 || fs.NArg() > 0 || *d < 100*time.Millisecond {
		fmt.Fprintf(stderr, "lab: want thread-churn or runqueue-saturation, and --for of at least 100ms\n%s", usage)
		return exitUsage
	}
	err := tryAll(ctx, c, experiments[c.Name], *d, stdout)
	if ctx.Err() != nil {
		err = errors.New("stopped; nothing was left running")
	}
	var why skip
	if errors.As(err, &why) {
		fmt.Fprintf(stderr, "lab: %s: %v\n", c.Name, why)
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "lab:", err)
		return exitFailed
	}
	return 0
}

func find(cases []Case, name string) *Case {
	for i := range cases {
		if cases[i].Name == name {
			return &cases[i]
		}
	}
	return nil
}

// endWithParent stops the run when the parent is gone: "go run" does not pass a SIGTERM on.
func endWithParent(ctx context.Context, cancel func()) {
	parent := os.Getppid()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if os.Getppid() != parent {
				cancel()
			}
		}
	}
}
