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
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: bench [--runs 5] [--sizes 50,500] [--dir DIR] [--go-tool-trace=false]
       bench --against COMMIT [--pairs 15] [--only REGEX] [--sizes 50,500] [--dir DIR] [--format json]
       bench overhead [--help]      what recording costs
       bench harm [--help]          what the users of a service under stress feel of it
       bench verdicts [--help]      how often whystall compare is right
       bench fleet [--help]         what asking a fleet's engine costs
       bench profile [--help]       makes the profile by which the compiler knows the hot paths
       bench log [--help]           explains a log of 1 GB beside grep -c

Makes traces of these sizes in MB, and one of a format before 1.22, and reads them with whystall and with its
peers. With --dir the traces are kept there and used again. go tool trace reads the smallest only, once, and
only if the machine has the memory for it.

--against compares the program of COMMIT with that of the present tree, changes included.
  1. Both are built with the same flags, each with its own default.pgo.
  2. Both explain every recording of the repository. Their reports must be the same but for the wording of
     sentences; internal/report/schema.json marks what is a sentence (x-prose).
  3. Both read the traces and explain traces and recorded cases, by turns, in --pairs pairs a row. A row fails when
     the median of the ratios of CPU time (user and system) is above 1.03, or when the 95 % interval of that median is
     wholly above 1.00. With equal programs up to 1 row in 40 does the latter by chance: measure such a row again,
     with --only and more pairs.
--only measures the rows whose name matches. --pairs 0 compares the reports and measures nothing.

Exit status: 0 done, and nothing is worse than in COMMIT; 1 a row fails or a report differs; 2 wrong usage, or it
could not be measured.
`

// Exit statuses.
const (
	statusWorse  = 1
	statusFailed = 2
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == "child" {
		if err := child(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(statusFailed)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	run, args := bench, os.Args[1:]
	if len(args) > 0 {
		switch args[0] {
		case "overhead":
			run, args = overhead, args[1:]
		case "harm":
			run, args = harm, args[1:]
		case "verdicts":
			run, args = verdicts, args[1:]
		case "fleet":
			run, args = fleetScale, args[1:]
		case "profile":
			run, args = makeProfile, args[1:]
		case "log":
			run, args = logScan, args[1:]
		}
	}
	err := run(ctx, args, os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errWorse):
		os.Exit(statusWorse)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(statusFailed)
	}
}

// options are the flags of bench.
type options struct {
	runs    int
	mbs     []int // sizes of traces, in MB
	dir     string
	page    bool
	against string // a commit; "": whystall's peers
	pairs   int
	only    string
	format  string

	recordings []string // patterns; those whose reports are compared
}

func readOptions(args []string, progress io.Writer) (o options, err error) {
	o.recordings = recordings()
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(progress)
	fs.Usage = func() { fmt.Fprint(fs.Output(), usage) }
	fs.IntVar(&o.runs, "runs", 5, "")
	sizes := fs.String("sizes", "50,500", "")
	fs.StringVar(&o.dir, "dir", "", "")
	fs.BoolVar(&o.page, "go-tool-trace", true, "")
	fs.StringVar(&o.against, "against", "", "")
	fs.IntVar(&o.pairs, "pairs", 15, "")
	fs.StringVar(&o.only, "only", "", "")
	fs.StringVar(&o.format, "format", "text", "")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, name := range []string{"pairs", "only", "format"} {
		if given[name] && !given["against"] {
			return o, fmt.Errorf("read --%s: needs --against COMMIT", name)
		}
	}
	switch {
	case given["against"] && o.against == "":
		return o, errors.New("read --against: want a commit")
	case fs.NArg() > 0:
		return o, fmt.Errorf("%q is no flag: see bench --help", fs.Arg(0))
	case o.runs < 1:
		return o, fmt.Errorf("read --runs: want 1 or more, got %d", o.runs)
	case o.pairs < 0 || o.pairs > maxPairs:
		return o, fmt.Errorf("read --pairs: want 0 to %d, got %d", maxPairs, o.pairs)
	case o.format != "text" && o.format != "json":
		return o, fmt.Errorf("read --format: want text or json, got %q", o.format)
	}
	for s := range strings.SplitSeq(*sizes, ",") {
		mb, err := strconv.Atoi(s)
		if err != nil || mb < 1 {
			return o, fmt.Errorf("read --sizes: want sizes in MB, got %q", s)
		}
		o.mbs = append(o.mbs, mb)
	}
	return o, nil
}

// bench runs the benchmark: whystall beside its peers, or a commit beside the present tree.
func bench(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := readOptions(args, progress)
	if err != nil {
		return err
	}
	if o.against != "" {
		return against(ctx, o, out, progress)
	}

	// 1. The traces, and the program under test as its users have it.
	tmp, err := os.MkdirTemp("", "whystall-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if o.dir == "" {
		o.dir = tmp
	}
	whystall, err := buildWhystall(ctx, tmp)
	if err != nil {
		return err
	}
	traces, err := makeTraces(ctx, o.dir, o.mbs, progress)
	if err != nil {
		return err
	}

	// 2. Runs, in turn.
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s, %s, %d CPUs, %s\n", time.Now().UTC().Format("2006-01-02"),
		runtime.Version(), runtime.NumCPU(), cpuModel())
	for i, tr := range traces {
		programs := []program{
			{name: "x/exp/trace, empty loop", args: []string{self, "child", "xexp", tr.name}},
			{name: "whystall reader, every event", args: []string{self, "child", "events", tr.name}},
			{name: "whystall reader, all states", args: []string{self, "child", "totals", tr.name}, goal: 8},
			{name: "whystall explain, to the ledger", args: []string{whystall, "explain", tr.name},
				goal: 4, found: true},
		}
		if i == 0 && o.page {
			programs = append(programs, program{name: "go tool trace, to its first page", page: tr.name})
		}
		if err := compare(ctx, out, tr, programs, o.runs); err != nil {
			return err
		}
	}
	return nil
}

// buildWhystall builds the present tree's program into dir.
func buildWhystall(ctx context.Context, dir string) (string, error) {
	whystall, err := filepath.Abs(filepath.Join(dir, "whystall"))
	if err != nil {
		return "", err
	}
	return whystall, build(ctx, "..", "./cmd/whystall", whystall)
}
