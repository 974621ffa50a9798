package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// mostOfGrep is how many times the time of grep -c a long log may take.
const mostOfGrep = 3

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
	ratio, err := scanLog(ctx, *size, *runs, *dir, *program, stdout)
	if err == nil && ratio > mostOfGrep {
		return errWorse
	}
	return err
}

func scanLog(ctx context.Context, megabytes, runs int, dir, program string, stdout io.Writer) (ratio float64, err error) {
	if program == "" {
		program = filepath.Join(dir, "whystall-log-bench")
		defer os.Remove(program)
		build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/whystall")
		build.Dir = ".."
		if out, err := build.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("build whystall: %w: %s", err, out)
		}
	}
	name := filepath.Join(dir, "whystall-bench.log")
	defer os.Remove(name)
	if err := makeLog(name, int64(megabytes)<<20); err != nil {
		return 0, err
	}
	var grep, explain []float64
	for range max(runs, 1) {
		for _, m := range []struct {
			into *[]float64
			args []string
		}{{&grep, []string{"grep", "-c", "gc [0-9]* @", name}}, {&explain, []string{program, "explain", name}}} {
			started := time.Now()
			// With its output at /dev/null grep stops at the first match.
			_, err := exec.CommandContext(ctx, m.args[0], m.args[1:]...).Output()
			if _, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || ctx.Err() != nil) {
				return 0, fmt.Errorf("run %s: %w", m.args[0], err)
			}
			*m.into = append(*m.into, time.Since(started).Seconds())
		}
	}
	g, e := middle(grep), middle(explain)
	fmt.Fprintf(stdout, "a log of %d MB: grep -c %.2f s, explain %.2f s, %.2f times as long (at most %d)\n", megabytes, g, e, e/g, mostOfGrep)
	return e / g, nil
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
			wrote, err = fmt.Fprintf(w, "gc %d @%.3fs 1%%: 0.034+41+0.004 ms clock, 0.068+0.20/24/49+0.009 ms cpu, 30->30->15 MB, 31 MB goal, 2 P\n", cycle, float64(cycle)/2)
		} else {
			wrote, err = fmt.Fprintf(w, "2026-11-22T20:%02d:%02d.%03dZ INFO request method=GET path=/items/%d status=200 bytes=%d took=%dus\n", line/60000%60, line/1000%60, line%1000, line*7919%100000, line*31%9000, line*17%4000)
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
