// Lab makes services ill in ways that are known, for whystall to find out: a folder a case. It starts a
// server and, outside it, its clients, shows what they see, and points whystall at the server as at any
// stranger's process. What the lab knows of a case whystall does not: nothing here is imported by it.
//
//	go run -C lab . list
//	go run -C lab . run sched-latency
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `usage: lab list
       lab run CASE [--variant NAME] [--for 10s] [--format text|json|markdown]

run starts the case's server and its clients, diagnoses the server with whystall and stops everything.
Exit status: 0 whystall looked, and found something or nothing; 2 wrong usage; 3 something went wrong.
`

const (
	exitUsage  = 2
	exitFailed = 3
)

func main() {
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
	cases, err := loadCases()
	if err != nil {
		fmt.Fprintln(stderr, "lab:", err)
		return exitFailed
	}
	switch {
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
	variant := fs.String("variant", "ill", "")
	fs.DurationVar(&o.record, "for", 10*time.Second, "")
	fs.StringVar(&o.format, "format", "text", "")
	if fs.Parse(args[1:]) != nil {
		return exitUsage
	}
	if fs.NArg() > 0 || o.record < time.Second {
		fmt.Fprintf(stderr, "lab: want one CASE, and --for of at least 1s\n%s", usage)
		return exitUsage
	}
	for _, c := range cases {
		if c.Name != name {
			continue
		}
		for _, v := range c.Variants {
			if v.Name != *variant {
				continue
			}
			status, err := run(ctx, c, v, o, stdout, stderr)
			if ctx.Err() != nil { // whatever it broke
				err = errors.New("stopped; nothing was left running")
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
		fmt.Fprintf(stderr, "lab: %s has no variant %q; lab list shows them\n", name, *variant)
		return exitUsage
	}
	fmt.Fprintf(stderr, "lab: no case %q; lab list shows them\n", name)
	return exitUsage
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
