package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// What explaining a long log may take.
const (
	mostOfGrep    = 3        // times the CPU time and the time of grep -c
	mostLogMemory = 64 << 20 // resident, with the pages of the program itself
)

// logScan compares explain on a long log that has gctrace lines with grep -c on the same log.
func logScan(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("log", flag.ContinueOnError)
	f.SetOutput(stderr)
	size := f.Int("size", 1000, "of the log in MB")
	runs := f.Int("runs", 5, "the median counts")
	dir := f.String("dir", os.TempDir(), "where the log is made")
	program := f.String("whystall", "", "the program; it is built where none is given")
	if err := f.Parse(args); err != nil {
		return err
	}
	ok, err := scanLog(ctx, *size, *runs, *dir, *program, stdout)
	if err == nil && !ok {
		return errWorse
	}
	return err
}

// scanLog prints CPU time, time and peak memory of both, and reports whether all are within what is
// promised.
func scanLog(ctx context.Context, megabytes, runs int, dir, program string, stdout io.Writer) (ok bool, err error) {
	if program == "" {
		built, err := os.MkdirTemp("", "log")
		if err != nil {
			return false, err
		}
		defer os.RemoveAll(built)
		if program, err = buildWhystall(ctx, built); err != nil {
			return false, err
		}
	}
	name := filepath.Join(dir, "whystall-bench.log")
	defer os.Remove(name)
	if err := makeLog(name, int64(megabytes)<<20); err != nil {
		return false, err
	}
	var grep, explain scans
	for range max(runs, 1) {
		if err := grep.run(ctx, "grep", "-c", "gc [0-9]* @", name); err != nil {
			return false, err
		}
		if err := explain.run(ctx, program, "explain", name); err != nil {
			return false, err
		}
	}
	cpu, wall := middle(explain.cpu)/middle(grep.cpu), middle(explain.wall)/middle(grep.wall)
	fmt.Fprintf(stdout, "a log of %d MiB, median of %d; at most %d times grep's time and %d MiB\n",
		megabytes, runs, mostOfGrep, mostLogMemory>>20)
	fmt.Fprintf(stdout, "%-18s %9s %9s %9s\n", "", "CPU s", "wall s", "RSS MiB")
	fmt.Fprintf(stdout, "%-18s %9.2f %9.2f %9.1f\n", "grep -c", middle(grep.cpu), middle(grep.wall),
		slices.Max(grep.rss)/(1<<20))
	fmt.Fprintf(stdout, "%-18s %9.2f %9.2f %9.1f\n", "whystall explain", middle(explain.cpu),
		middle(explain.wall), slices.Max(explain.rss)/(1<<20))
	fmt.Fprintf(stdout, "%-18s %8.2fx %8.2fx\n", "", cpu, wall)
	return cpu <= mostOfGrep && wall <= mostOfGrep && slices.Max(explain.rss) <= mostLogMemory, nil
}

// scans are what the runs of one program took.
type scans struct{ cpu, wall, rss []float64 }

func (s *scans) run(ctx context.Context, args ...string) error {
	started := time.Now()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout = new(bytes.Buffer) // with its output at /dev/null grep stops at the first match
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || ctx.Err() != nil) {
		return fmt.Errorf("run %s: %w", args[0], err)
	}
	c := costOf(cmd.ProcessState, time.Since(started))
	s.cpu, s.wall, s.rss = append(s.cpu, c.cpu.Seconds()), append(s.wall, c.wall.Seconds()),
		append(s.rss, float64(c.rss))
	return nil
}

// makeLog writes lines of a web server, with two GC cycles a second.
func makeLog(name string, size int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	cycle := 0
	for n, line := int64(0), 0; n < size; line++ {
		var wrote int
		if line%500 == 0 {
			cycle++
			wrote, err = fmt.Fprintf(w,
				"gc %d @%.3fs 1%%: 0.034+41+0.004 ms clock, 0.068+0.20/24/49+0.009 ms cpu, 30->30->15 MB, 31 MB goal, 2 P\n", cycle, float64(cycle)/2)
		} else {
			wrote, err = fmt.Fprintf(w,
				"2026-11-22T20:%02d:%02d.%03dZ INFO request method=GET path=/items/%d status=200 bytes=%d took=%dus\n", line/60000%60, line/1000%60, line%1000, line*7919%100000, line*31%9000, line*17%4000)
		}
		if err != nil {
			break
		}
		n += int64(wrote)
	}
	if ferr := w.Flush(); err == nil {
		err = ferr
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
