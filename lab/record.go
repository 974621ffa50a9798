package main

import (
	"archive/zip"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// lab record-cases makes a recording of each variant which is small enough for the repository: a
// test of the detectors that needs neither privilege nor time. Where the trouble comes only now and
// then, it is luck what a short window holds. So windows are tried until one is right.

// maxRecording is how large a recording may be, in bytes, as the repository holds one of each
// variant.
const maxRecording = 1 << 20

// recordings is the folder in which the tests look for them.
const recordings = "../internal/cli/testdata/lab"

type recordOptions struct {
	options
	folder string
	window time.Duration
	tries  int
	all    bool // record anew where there is a right one too
	wrong  bool // keep the last one where none is right
}

func recordArgs(ctx context.Context, shared options, args []string) int {
	o := recordOptions{options: shared}
	fs := o.flags("record-cases")
	fs.StringVar(&o.folder, "o", recordings, "")
	fs.DurationVar(&o.window, "for", 2*time.Second, "")
	fs.IntVar(&o.tries, "tries", 4, "")
	fs.BoolVar(&o.all, "all", false, "")
	fs.BoolVar(&o.wrong, "wrong", false, "")
	variants, ok := o.variants(fs, args)
	if !ok {
		return exitUsage
	}
	if o.tries < 1 || o.window < time.Second {
		fmt.Fprintf(o.stderr, "lab: want --tries of at least 1 and --for of at least 1s\n%s", usage)
		return exitUsage
	}
	right, err := recordAll(ctx, o, variants)
	if status := o.ended(ctx, "record-cases", err); status != 0 || err != nil {
		return status
	}
	if !right {
		return exitMissed
	}
	return 0
}

// recordAll records the variants which need it, and prints the result of each. right reports
// whether each one has a right recording or cannot run here.
func recordAll(ctx context.Context, o recordOptions, variants []chosen) (right bool, err error) {
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
	for _, x := range variants {
		if _, err := os.Stat(o.file(x)); err == nil && !o.all {
			got, err := judgeRecording(ctx, whystall, o.file(x), x.v)
			if err != nil {
				return false, err
			}
			if got.ok {
				say(x, "stays: %s", got.words())
				continue
			}
			say(x, "no longer right: %s", got.words())
		}
		wanted = append(wanted, x)
	}
	if _, err := b.all(ctx, wanted); err != nil {
		return false, err
	}
	started := time.Now()
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
		say(x, "%s%s", words, left(started, i+1, len(wanted)))
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

// record tries windows until one is right and small enough.
//
//  1. Each run of the variant gets two windows; then it is started anew.
//  2. Where a window is too large, the next one is half as long, down to a second.
//  3. Where one second is too large, the next run has fewer clients.
func (o *recordOptions) record(ctx context.Context, b *builder, whystall string, x chosen,
	dir string) (words string, ok bool, err error) {
	var s *stage
	last := ""
	defer func() {
		if s != nil {
			err = errors.Join(err, s.end())
		}
		os.Remove(last)
	}()
	seconds, clients, windows := int(o.window.Seconds()), 64, 0
	for try := 0; try < o.tries; {
		if s == nil {
			run := chosen{x.c, x.v}
			if clients < 64 {
				run.v = x.v.fewer(clients)
			}
			if s, err = set(ctx, b, run.c, run.v); err == nil {
				err = s.warmUp(ctx)
			}
			if err != nil {
				return "", false, err
			}
		}
		file := caseName(dir, x)
		got, size, err := o.try(ctx, whystall, s, x.v, seconds, file)
		if err != nil {
			return "", false, err
		}
		fmt.Fprintf(o.stderr, "%s: %d s, at most %d clients: %d KB: %s\n", x, seconds, clients, size>>10, got.words())
		if size > maxRecording {
			os.Remove(file)
			words = fmt.Sprintf("%d KB of %d s are too large", size>>10, seconds)
			switch {
			case seconds > 1:
				seconds /= 2
				continue
			case clients <= 4:
				return "NOT KEPT: " + words, false, nil
			}
			clients = min(clients-1, int(int64(clients)*maxRecording*9/10/size))
		} else {
			os.Remove(last)
			last = file
			try++
			words = fmt.Sprintf("%d KB of %d s: %s", size>>10, seconds, got.words())
			if clients < 64 {
				words = fmt.Sprintf("%d clients, %s", clients, words)
			}
			if got.others > busyShare {
				words += fmt.Sprintf("; others used %.0f %% of the CPUs", 100*got.others)
			}
			if got.ok {
				return fmt.Sprintf("kept, try %d: %s", try, words), true, keep(file, o.file(x))
			}
			if windows++; windows%2 != 0 {
				continue
			}
		}
		done := s
		s = nil
		if err := done.end(); err != nil {
			return "", false, err
		}
	}
	if !o.wrong {
		return fmt.Sprintf("NOT KEPT after %d tries: %s", o.tries, words), false, nil
	}
	return fmt.Sprintf("KEPT WRONG after %d tries: %s", o.tries, words), false, keep(last, o.file(x))
}

// try records a window of a run into file. It gives what whystall says about it, and its size.
func (o *recordOptions) try(ctx context.Context, whystall string, s *stage, v *Variant, seconds int,
	file string) (got verdict, size int64, err error) {
	others := s.others()
	status, err := diagnose(ctx, whystall, []string{"record", "--pid", strconv.Itoa(s.pid()),
		"--for", fmt.Sprintf("%ds", seconds), "-o", file}, io.Discard, io.Discard)
	used := others()
	if err == nil && status != 0 {
		err = fmt.Errorf("whystall record: exit status %d", status)
	}
	if err == nil {
		err = s.dead()
	}
	if err != nil {
		return got, 0, err
	}
	if err := repack(file); err != nil {
		return got, 0, fmt.Errorf("pack %s: %w", filepath.Base(file), err)
	}
	st, err := os.Stat(file)
	if err != nil {
		return got, 0, err
	}
	if st.Size() > maxRecording {
		return verdict{err: "too large"}, st.Size(), nil
	}
	got, err = judgeRecording(ctx, whystall, file, v)
	got.others = used
	return got, st.Size(), err
}

// repack compresses a case's members as well as possible. A recorder has no time for that.
func repack(file string) error {
	from, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer from.Close()
	out, err := os.Create(file + ".new")
	if err != nil {
		return err
	}
	defer out.Close()
	to := zip.NewWriter(out)
	to.RegisterCompressor(zip.Deflate,
		func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, m := range from.File {
		h := zip.FileHeader{Name: m.Name, Method: zip.Deflate, Modified: m.Modified}
		w, err := to.CreateHeader(&h)
		if err != nil {
			return err
		}
		r, err := m.Open()
		if err != nil {
			return err
		}
		_, err = io.Copy(w, r)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	if err := errors.Join(to.Close(), out.Close()); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// judgeRecording has whystall explain a recording, and judges what it says. Tests explain it
// anywhere and at any time, so other users of the machine are no excuse.
func judgeRecording(ctx context.Context, whystall, file string, v *Variant) (got verdict, err error) {
	r, err := ask(ctx, whystall, "explain", file)
	if err != nil {
		return got, fmt.Errorf("explain %s: %w", filepath.Base(file), err)
	}
	got.read(r, v)
	return got, nil
}
