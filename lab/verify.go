package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// lab verify runs variants, has whystall diagnose each one like any other process, and judges what
// whystall says. It compares what whystall explains with a witness which no detector reads.

type verifyOptions struct {
	options
	times  int
	record time.Duration
	output string
	keep   string // folder for the recordings of wrong verdicts
	all    bool   // keep those of right verdicts too
}

func verifyArgs(ctx context.Context, shared options, args []string) int {
	o := verifyOptions{options: shared}
	fs := o.flags("verify")
	fs.IntVar(&o.times, "times", 3, "")
	fs.DurationVar(&o.record, "for", 6*time.Second, "")
	fs.StringVar(&o.output, "o", "", "")
	fs.StringVar(&o.keep, "keep", "", "")
	fs.BoolVar(&o.all, "all", false, "")
	variants, ok := o.variants(fs, args)
	if !ok {
		return exitUsage
	}
	if o.times < 1 || o.record < time.Second {
		fmt.Fprintf(o.stderr, "lab: want --times of at least 1 and --for of at least 1s\n%s", usage)
		return exitUsage
	}
	rows, err := verify(ctx, o, variants)
	// An interrupted run still prints what it has measured.
	if len(rows) > 0 {
		if werr := writeAccuracy(rows, o, o.stdout); werr != nil && err == nil {
			err = werr
		}
	}
	if status := o.ended(ctx, "verify", err); status != 0 || err != nil {
		return status
	}
	if slices.ContainsFunc(rows, row.wrong) {
		return exitMissed
	}
	return 0
}

// row is a variant and the verdicts on it.
type row struct {
	chosen
	skipped string
	runs    []verdict
}

func (r row) wrong() bool {
	return slices.ContainsFunc(r.runs, func(v verdict) bool { return !v.ok })
}

// verify runs all variants once, then all of them again. So what changes with time is in the runs
// of every variant, and an interrupted run has the whole table.
func verify(ctx context.Context, o verifyOptions, variants []chosen) (rows []row, err error) {
	dir, remove, err := tempDir()
	if err != nil {
		return nil, err
	}
	defer remove()
	b := newBuilder(dir, o.stderr, o.prebuilt)
	whystall, err := b.all(ctx, variants)
	if err != nil {
		return nil, err
	}
	rows = make([]row, len(variants))
	for i, x := range variants {
		rows[i].chosen = x
	}
	started, done, all := time.Now(), 0, o.times*len(variants)
	for n := range o.times {
		for i := range rows {
			r := &rows[i]
			if done++; r.skipped != "" {
				continue
			}
			err := o.once(ctx, b, whystall, r, dir)
			if ctx.Err() != nil {
				return slices.DeleteFunc(rows, func(r row) bool { return len(r.runs) == 0 && r.skipped == "" }), ctx.Err()
			}
			words := ""
			var why skip
			if errors.As(err, &why) {
				r.skipped = string(why)
				words = why.Error()
			} else {
				if err != nil {
					r.runs = append(r.runs, verdict{err: err.Error()})
				}
				v := &r.runs[len(r.runs)-1]
				words = v.words() + v.beside(r)
			}
			fmt.Fprintf(o.stderr, "%d/%d %s, %d of %d: %s%s\n", done, all, r, n+1, o.times, words, left(started, done, all))
		}
	}
	return rows, nil
}

// once runs a variant once.
func (o *verifyOptions) once(ctx context.Context, b *builder, whystall string, r *row, dir string) error {
	file := caseName(dir, r.chosen)
	defer os.Remove(file)
	got, err := judge(ctx, b, whystall, r.chosen, o.record, file)
	if err != nil {
		return err
	}
	r.runs = append(r.runs, got)
	if (!got.ok || o.all) && o.keep != "" {
		return keep(file, filepath.Join(o.keep, filepath.Base(file)))
	}
	return nil
}

// beside is what a person wants to know about a run while the next ones go on.
func (v *verdict) beside(r *row) (s string) {
	if v.others > busyShare {
		s = fmt.Sprintf("; others used %.0f %% of the CPUs", 100*v.others)
	}
	if mean, ok := slowMean(v.witnessed, v.share, 1); ok && r.v.Root != "" {
		s += fmt.Sprintf("; it explains %.1f ms of its slow requests' %.1f ms; the witness saw them take %.1f ms", v.explains/1e6, v.slow/1e6, mean/1e6)
	}
	return s
}

// left says how long the rest will take, once there is enough to estimate it.
func left(started time.Time, done, all int) string {
	if done == all || done < 3 {
		return ""
	}
	d := time.Since(started) / time.Duration(done) * time.Duration(all-done)
	return fmt.Sprintf(" [%v left]", d.Round(10*time.Second))
}

// variants reads the arguments of a command about variants: its flags, and the variants which are
// named with or without --only.
func (o *options) variants(fs *flag.FlagSet, args []string) ([]chosen, bool) {
	var only []string
	fs.Func("only", "", func(s string) error {
		only = append(only, strings.Split(s, ",")...)
		return nil
	})
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		only, args = append(only, args[0]), args[1:]
	}
	if fs.Parse(args) != nil {
		return nil, false
	}
	variants, err := choose(o.cases, append(only, fs.Args()...))
	if err != nil {
		fmt.Fprintln(o.stderr, "lab:", err)
		return nil, false
	}
	return variants, true
}
