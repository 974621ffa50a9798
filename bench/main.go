// Bench measures whystall beside its peers, in one run: each program a process of its own, alternating, so that
// a noisy machine is noisy for all. It prints CPU time (user and system), wall time and memory, and the ratios
// that the project holds itself to.
//
//	go run -C bench .
//	sudo go run -C bench . overhead
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const usage = `usage: bench [--runs 5] [--sizes 50,500] [--dir DIR] [--go-tool-trace=false]
       bench overhead [--help]      what recording costs

Makes traces of these sizes in MB, and one of a format before 1.22, and reads them with whystall and with its peers.
With --dir the traces are kept there and used again. go tool trace reads the smallest only, once, and only
if the machine has the memory for it.
`

func main() {
	if len(os.Args) == 4 && os.Args[1] == "child" {
		if err := child(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	run, args := bench, os.Args[1:]
	if len(args) > 0 && args[0] == "overhead" {
		run, args = overhead, args[1:]
	}
	err := run(ctx, args, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.Usage = func() { fmt.Fprint(fs.Output(), usage) }
	runs := fs.Int("runs", 5, "")
	sizes := fs.String("sizes", "50,500", "")
	dir := fs.String("dir", "", "")
	page := fs.Bool("go-tool-trace", true, "")
	if err := fs.Parse(args); err != nil || fs.NArg() > 0 || *runs < 1 {
		return fmt.Errorf("wrong usage")
	}
	var mbs []int
	for s := range strings.SplitSeq(*sizes, ",") {
		mb, err := strconv.Atoi(s)
		if err != nil || mb < 1 {
			return fmt.Errorf("read --sizes: %q is no size in MB", s)
		}
		mbs = append(mbs, mb)
	}

	// 1. The traces, and the program under test as its users have it.
	tmp, err := os.MkdirTemp("", "whystall-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if *dir == "" {
		*dir = tmp
	}
	whystall, err := buildWhystall(ctx, tmp)
	if err != nil {
		return err
	}
	traces, err := makeTraces(ctx, *dir, mbs, out)
	if err != nil {
		return err
	}

	// 2. Runs, in turn.
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s, %s, %d CPUs, %s\n", time.Now().UTC().Format("2006-01-02"), runtime.Version(), runtime.NumCPU(), cpuModel())
	for i, tr := range traces {
		programs := []program{
			{name: "x/exp/trace, empty loop", args: []string{self, "child", "xexp", tr.name}},
			{name: "whystall reader, every event", args: []string{self, "child", "events", tr.name}},
			{name: "whystall reader, all states", args: []string{self, "child", "totals", tr.name}, goal: 8},
			{name: "whystall explain, to the ledger", args: []string{whystall, "explain", tr.name}, goal: 4, found: true},
		}
		if i == 0 && *page {
			programs = append(programs, program{name: "go tool trace, to its first page", page: tr.name})
		}
		if err := compare(ctx, out, tr, programs, *runs); err != nil {
			return err
		}
	}
	return nil
}

func buildWhystall(ctx context.Context, dir string) (string, error) {
	whystall := filepath.Join(dir, "whystall")
	build := exec.CommandContext(ctx, "go", "build", "-C", "..", "-o", whystall, "./cmd/whystall")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build whystall: %w\n%s", err, b)
	}
	return whystall, nil
}
