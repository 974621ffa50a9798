package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/whystall/whystall/lab/settings"
)

const usage = `usage: lab list
       lab run CASE [--variant NAME] [--for 10s] [--format text|json|markdown]
       lab experiment CASE [--for 2s]
       lab verify [--only CASE[/VARIANT]]... [--times 3] [--for 6s] [-o FILE] [--keep FOLDER [--all]]
       lab record-cases [--only CASE[/VARIANT]]... [-o FOLDER] [--for 2s] [--tries 4] [--all] [--wrong]
       lab fleet --engine prometheus3|mimir|thanos [--binary FILE]
       lab qemu [--kernel VMLINUZ] [...] CASE[/VARIANT]

run shows a case: it starts the server and its clients, prints what the clients see, and diagnoses the server with
whystall. Then it does the same with the cured variant. With --variant it runs only that variant.
experiment repeats what was published about thread-churn or runqueue-saturation, and prints the tables. run does so too,
at its end.
run fleet starts a Prometheus with node_exporter, a server that its CPU quota stops and a healthy one. It asks
whystall fleet who is ill, and has whystall diagnose that one.
fleet --engine builds an engine from its module, which takes minutes the first time, and compares its answers to whystall
fleet with those of Prometheus. --binary: it is built already.
verify runs every variant, or those of --only, several times. It compares what whystall says with what is known, and
writes a table. --keep keeps the recordings with a wrong verdict, --all those with a right one too.
record-cases keeps a short recording of each variant for the tests, where there is none or where its verdict is no
longer right; with --all, of every variant. It tries until the verdict is right, and else says why it is not. With
--wrong it then keeps the last recording.
verify and record-cases need a machine that does nothing else.
qemu runs a command in a virtual machine, for NUMA nodes and other kernels: lab qemu without arguments says how.
Exit status: 0 done, whatever was found; 1 verify, record-cases: a cause was missed or wrongly named; 2 wrong usage;
3 something went wrong.
`

const (
	exitMissed = 1
	exitUsage  = 2
	exitFailed = 3
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "watchdog" { // started by the lab itself, see package settings
		if err := settings.Watch(os.Stdin, os.Args[2]); err != nil {
			os.Exit(exitFailed)
		}
		return
	}
	if os.Geteuid() != 0 { // a user who may not change settings may still make folders
		settings.Folder = filepath.Join(os.TempDir(), "whystall-lab-journals")
	}
	if err := settings.Heal(); err != nil {
		fmt.Fprintln(os.Stderr, "lab: undo the changes of a run that was killed:", err)
	}
	sweep()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(ctx)
	go endWithParent(ctx, cancel)
	status := lab(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// options are those which all commands share.
type options struct {
	cases    []Case
	prebuilt string // folder of programs which are built already; "": none
	stdout   io.Writer
	stderr   io.Writer
}

func lab(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cases, err := loadCases()
	if err != nil {
		fmt.Fprintln(stderr, "lab:", err)
		return exitFailed
	}
	o := options{cases: cases, stdout: stdout, stderr: stderr}
	if len(args) > 2 && args[0] == "--prebuilt" { // in a virtual machine of lab qemu
		o.prebuilt, args = args[1], args[2:]
	}
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch {
	case command == "qemu":
		return qemuArgs(ctx, cases, args, stdout, stderr)
	case command == "verify":
		return verifyArgs(ctx, o, args)
	case command == "record-cases":
		return recordArgs(ctx, o, args)
	case command == "list" && len(args) == 0:
		for _, c := range cases {
			fmt.Fprintf(stdout, "%s: %s\n", c.Name, c.Title)
			for _, v := range c.Variants {
				fmt.Fprintf(stdout, "  %-23s %s\n", v.Name, v.Doc)
			}
		}
		return 0
	case command == "fleet":
		return engineArgs(ctx, o, args)
	case command == "run" && len(args) > 0 && args[0] == "fleet":
		return fleetArgs(ctx, o, args[1:])
	case command == "run" && len(args) > 0:
		return runArgs(ctx, o, args)
	case command == "experiment" && len(args) > 0:
		return experimentArgs(ctx, o, args)
	case command == "help" || command == "-h" || command == "--help":
		fmt.Fprint(stdout, usage)
		return 0
	}
	fmt.Fprint(stderr, usage)
	return exitUsage
}

// flags makes an empty set of flags for a command.
func (o *options) flags(name string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(o.stderr)
	fs.Usage = func() { fmt.Fprint(o.stderr, usage) }
	return fs
}

// ended prints err, with which a command ended, and gives the exit status.
func (o *options) ended(ctx context.Context, what string, err error) int {
	if ctx.Err() != nil { // err only follows from it
		err = errors.New("stopped; nothing was left running")
	}
	var why skip
	if errors.As(err, &why) {
		fmt.Fprintf(o.stderr, "lab: %s: %v\n", what, why)
		return 0
	}
	if err != nil {
		fmt.Fprintln(o.stderr, "lab:", err)
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

// chosen is one variant of a case.
type chosen struct {
	c *Case
	v *Variant
}

func (x chosen) String() string { return x.c.Name + "/" + x.v.Name }

// choose gives the named variants, CASE or CASE/VARIANT; without names, all of them.
func choose(cases []Case, only []string) (all []chosen, err error) {
	for _, name := range only {
		c, v, hasVariant := strings.Cut(name, "/")
		if found := find(cases, c); found == nil || hasVariant && found.variant(v) == nil {
			return nil, fmt.Errorf("no case or variant %q; lab list shows them", name)
		}
	}
	for i := range cases {
		c := &cases[i]
		for j := range c.Variants {
			x := chosen{c, &c.Variants[j]}
			ok := len(only) == 0
			for _, name := range only {
				ok = ok || name == c.Name || name == x.String()
			}
			if ok {
				all = append(all, x)
			}
		}
	}
	return all, nil
}

// endWithParent stops the run when the parent is gone, as "go run" does not pass a SIGTERM on.
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
