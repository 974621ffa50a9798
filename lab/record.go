package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// A recording of every variant, short enough to lie in the repository, is a test of the detectors that takes neither privilege nor
// time. What a short window holds is luck where the trouble comes now and then, so windows are tried until one is right.

// maxRecording is how large a recording may be, in bytes.
const maxRecording = 1 << 20

type recordOptions struct {
	options
	folder string
	tries  int
	all    bool // anew, whatever is there
	wrong  bool // keep the last one where none was right
}

func recordArgs(ctx context.Context, shared options, args []string) int {
	o := recordOptions{options: shared}
	fs := o.flags("record-cases")
	fs.StringVar(&o.folder, "o", "../internal/cli/testdata/lab", "")
	fs.IntVar(&o.tries, "tries", 4, "")
	fs.BoolVar(&o.all, "all", false, "")
	fs.BoolVar(&o.wrong, "wrong", false, "")
	which, ok := o.which(fs, args)
	if !ok {
		return exitUsage
	}
	if o.tries < 1 {
		fmt.Fprintf(o.stderr, "lab: want --tries of at least 1\n%s", usage)
		return exitUsage
	}
	right, err := recordAll(ctx, o, which)
	if status := o.ended(ctx, "record-cases", err); status != 0 || err != nil {
		return status
	}
	if !right {
		return exitMissed
	}
	return 0
}

// recordAll records the variants that want it, and tells of each what became of it. right: each has a right recording, or cannot run here.
func recordAll(ctx context.Context, o recordOptions, which []chosen) (right bool, err error) {
	dir, remove, err := tempDir()
	if err != nil {
		return false, err
	}
	defer remove()
	b := newBuilder(dir, o.stderr, o.prebuilt)
	whystall, err := b.whystall(ctx)
	if err != nil {
		return false, err
	}
	say := func(x chosen, format string, args ...any) {
		fmt.Fprintf(o.stdout, "%-40s %s\n", x, fmt.Sprintf(format, args...))
	}
	right = true
	var wanted []chosen
	for _, x := range which {
		if _, err := os.Stat(o.file(x)); err == nil && !o.all {
			got, err := said(ctx, whystall, o.file(x), x.v)
			if err != nil {
				return false, err
			}
			if got.ok {
				say(x, "stays: %s", got.words())
				continue
			}
			say(x, "not right by now: %s", got.words())
		}
		wanted = append(wanted, x)
	}
	if _, err := b.all(ctx, wanted); err != nil {
		return false, err
	}
	begun := time.Now()
	for i, x := range wanted {
		words, ok, err := o.record(ctx, b, whystall, x, dir)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		var why skip
		switch {
		case errors.As(err, &why):
			ok, words = true, why.Error()
		case err != nil:
			words = "failed: " + err.Error()
		}
		right = right && ok
		say(x, "%s%s", words, left(begun, i+1, len(wanted)))
	}
	var sum int64
	files, _ := filepath.Glob(filepath.Join(o.folder, "*.case"))
	for _, f := range files {
		if st, err := os.Stat(f); err == nil {
			sum += st.Size()
		}
	}
	fmt.Fprintf(o.stdout, "%d recordings, %.1f MB\n", len(files), float64(sum)/1e6)
	return right, nil
}

func (o *recordOptions) file(x chosen) string {
	return filepath.Join(o.folder, x.c.Name+"."+x.v.Name+".case")
}

// record tries windows of one run of a variant, and of another run where those are used up, until one is right and small.
func (o *recordOptions) record(ctx context.Context, b *builder, whystall string, x chosen, dir string) (words string, ok bool, err error) {
	last := ""     // the last recording that is small enough
	seconds := 2   // shorter where it is too large
	var s *stage   // the run whose windows are tried
	const each = 2 // windows a run
	defer func() {
		if s != nil {
			err = errors.Join(err, s.end())
		}
		os.Remove(last)
	}()
	for try := range o.tries {
		if try%each == 0 {
			if s != nil {
				if err := s.end(); err != nil {
					return "", false, err
				}
			}
			if s, err = set(ctx, b, x.c, x.v); err != nil {
				return "", false, err
			}
			if err := wait(ctx, s.clients(), x.v.warmUp()); err != nil {
				return "", false, err
			}
		}
		file := caseName(dir, x)
		others := s.others()
		status, err := diagnose(ctx, whystall, []string{"record", "--pid", strconv.Itoa(s.pid()), "--for", fmt.Sprintf("%ds", seconds), "-o", file}, io.Discard, io.Discard)
		busy := others()
		if err == nil && status != 0 {
			err = fmt.Errorf("whystall record: exit status %d", status)
		}
		if err == nil {
			err = s.dead()
		}
		if err != nil {
			return "", false, err
		}
		st, err := os.Stat(file)
		if err != nil {
			return "", false, err
		}
		if st.Size() > maxRecording {
			os.Remove(file)
			words = fmt.Sprintf("%d KB of %d s are too large", st.Size()>>10, seconds)
			seconds = max(1, seconds-1)
			continue
		}
		os.Remove(last)
		last = file
		got, err := said(ctx, whystall, file, x.v)
		if err != nil {
			return "", false, err
		}
		words = fmt.Sprintf("%d KB of %d s: %s", st.Size()>>10, seconds, got.words())
		if busy > busyShare {
			words += fmt.Sprintf("; others used %.0f %% of the CPUs", 100*busy)
		}
		if got.ok {
			return fmt.Sprintf("kept at the %d. try, %s", try+1, words), true, keep(file, o.file(x))
		}
	}
	if last == "" || !o.wrong {
		return fmt.Sprintf("NOT KEPT after %d tries, %s", o.tries, words), false, nil
	}
	return fmt.Sprintf("KEPT WRONG after %d tries, %s", o.tries, words), false, keep(last, o.file(x))
}

// said is what whystall says of a recording. Tests explain it anywhere and at any time: no allowance is made for a machine that others used.
func said(ctx context.Context, whystall, file string, v *Variant) (got verdict, err error) {
	r, err := ask(ctx, whystall, "explain", file)
	if err != nil {
		return got, fmt.Errorf("explain %s: %w", filepath.Base(file), err)
	}
	got.read(r, v)
	return got, nil
}
