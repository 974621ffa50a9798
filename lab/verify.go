package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whystall/whystall/lab/witness"
)

// verify runs variants, has whystall diagnose each as a stranger's process, and judges what it says. It holds
// what whystall explains against a witness that no detector reads.

type verifyOptions struct {
	times  int
	record time.Duration
	output string
	keep   string // folder for the cases of wrong verdicts
	all    bool   // keep those of right ones too
	right  string // folder for a case of each variant whose verdict was right
	only   []string
}

func verifyArgs(ctx context.Context, cases []Case, args []string, stdout, stderr io.Writer) int {
	o := verifyOptions{}
	fs := flag.NewFlagSet("verify", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() { fmt.Fprint(stderr, usage) }
	fs.IntVar(&o.times, "times", 3, "")
	fs.DurationVar(&o.record, "for", 10*time.Second, "")
	fs.StringVar(&o.output, "o", "", "")
	fs.StringVar(&o.keep, "keep", "", "")
	fs.BoolVar(&o.all, "all", false, "")
	fs.StringVar(&o.right, "right", "", "")
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		o.only, args = append(o.only, args[0]), args[1:]
	}
	if fs.Parse(args) != nil {
		return exitUsage
	}
	o.only = append(o.only, fs.Args()...)
	if o.times < 1 || o.record < time.Second {
		fmt.Fprintf(stderr, "lab: want --times of at least 1 and --for of at least 1s\n%s", usage)
		return exitUsage
	}
	for _, name := range o.only {
		c, v, hasVariant := strings.Cut(name, "/")
		if found := find(cases, c); found == nil || hasVariant && found.variant(v) == nil {
			fmt.Fprintf(stderr, "lab: no %q; lab list shows them\n", name)
			return exitUsage
		}
	}
	rows, err := verify(ctx, cases, o, stderr)
	if ctx.Err() != nil {
		err = errors.New("stopped; nothing was left running")
	}
	// What was measured before it stopped is kept.
	if len(rows) > 0 {
		if werr := writeAccuracy(rows, o, stdout); werr != nil && err == nil {
			err = werr
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "lab:", err)
		return exitFailed
	}
	for _, r := range rows {
		if r.wrong() {
			return exitMissed
		}
	}
	return 0
}

// row is a variant and what was said of it.
type row struct {
	c       *Case
	v       *Variant
	skipped string
	runs    []verdict
}

// busyShare is how much of the CPUs others may use before that counts as a trouble of its own.
const busyShare = 0.1

// verdict is one run.
type verdict struct {
	causes   []string // roots, ranked
	under    []string // mechanisms
	grade    string
	ok       bool
	forbid   []string // named although they must not be
	missed   bool
	explains float64 // ns per slow request that the first root explains
	witness  []witness.Figures
	others   float64       // share of the CPUs that was used by who does not belong to the lab
	after    time.Duration // from the recording's end to the verdict
	err      string
}

func (r *row) wrong() bool {
	return slices.ContainsFunc(r.runs, func(v verdict) bool { return !v.ok })
}

func verify(ctx context.Context, cases []Case, o verifyOptions, say io.Writer) (rows []row, err error) {
	dir, remove, err := tempDir()
	if err != nil {
		return nil, err
	}
	defer remove()
	b := &builder{dir: dir, say: say, done: map[string]string{}, prebuilt: prebuilt}
	whystall, err := b.whystall(ctx)
	if err != nil {
		return nil, err
	}
	for i := range cases {
		c := &cases[i]
		for j := range c.Variants {
			v := &c.Variants[j]
			if len(o.only) > 0 && !slices.Contains(o.only, c.Name) && !slices.Contains(o.only, c.Name+"/"+v.Name) {
				continue
			}
			r := row{c: c, v: v}
			for n := range o.times {
				got, err := judge(ctx, b, whystall, c, v, o, dir)
				if ctx.Err() != nil {
					return rows, ctx.Err()
				}
				var why skip
				if errors.As(err, &why) {
					r.skipped = string(why)
					fmt.Fprintf(say, "%s/%s: %v\n", c.Name, v.Name, why)
					break
				}
				if err != nil {
					got = verdict{err: err.Error()}
				}
				r.runs = append(r.runs, got)
				fmt.Fprintf(say, "%s/%s %d of %d: %s\n", c.Name, v.Name, n+1, o.times, got.words())
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// report is what is read of whystall's.
type report struct {
	Kernel *struct {
		BeginNS  int64 `json:"begin_ns"`
		EndNS    int64 `json:"end_ns"`
		Barriers []struct {
			StoppedNS int64 `json:"stopped_ns"`
			DelayedNS int64 `json:"delayed_ns"`
		}
	}
	Requests struct {
		Count int64
		Slow  int64
	}
	Findings []struct {
		Cause      string
		BecauseOf  string `json:"because_of"`
		Confidence string
		Explains   struct{ NS, CPUNS, Bytes float64 }
	}
}

func judge(ctx context.Context, b *builder, whystall string, c *Case, v *Variant, o verifyOptions, dir string) (got verdict, err error) {
	s, err := set(ctx, b, c, v)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := wait(ctx, s.clients(), v.warmUp()); err != nil {
		return got, err
	}
	if _, err := s.clients().mark(ctx); err != nil {
		return got, err
	}
	caseFile := filepath.Join(dir, fmt.Sprintf("%s-%s-%d.case", c.Name, v.Name, time.Now().UnixNano()))
	var out, errs bytes.Buffer
	begun, busyBefore, ownBefore := time.Now(), busy(), s.own()
	status, err := diagnose(ctx, whystall, []string{"diagnose", "--pid", strconv.Itoa(s.pid()), "--for", o.record.String(), "--format", "json", "-o", caseFile}, &out, &errs)
	got.after = time.Since(begun) - o.record
	others := (busy() - busyBefore) - (s.own() - ownBefore)
	got.others = max(0, float64(others)/float64(time.Since(begun))/float64(runtime.NumCPU()))
	defer os.Remove(caseFile)
	if err == nil && status > 1 {
		err = fmt.Errorf("whystall's exit status is %d: %s", status, strings.TrimSpace(errs.String()))
	}
	if err != nil {
		return got, err
	}
	if got.witness, err = s.clients().mark(ctx); err != nil {
		return got, err
	}
	if err := s.dead(); err != nil {
		return got, err
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return got, fmt.Errorf("read whystall's report: %w", err)
	}
	got.read(&r, v)
	// Tests explain it anywhere and at any time: it must hold without allowance for a busy machine.
	var strict verdict
	if strict.read(&r, v); o.right != "" && strict.ok {
		b, err := os.ReadFile(caseFile)
		if err == nil {
			err = os.WriteFile(filepath.Join(o.right, c.Name+"."+v.Name+".case"), b, 0o644)
		}
		if err != nil {
			return got, err
		}
	}
	if (!got.ok || o.all) && o.keep != "" {
		name := filepath.Join(o.keep, filepath.Base(caseFile))
		if err := errors.Join(os.MkdirAll(o.keep, 0o755), os.Rename(caseFile, name)); err != nil {
			return got, err
		}
	}
	return got, nil
}

// read judges a report: the root must be first, and nothing may be named, as a root or below one, that is forbidden.
func (got *verdict) read(r *report, v *Variant) {
	forbidden := func(cause, root string) bool {
		// On a machine that others use, waiting for them is no false alarm; nor is what comes of it.
		if got.others > busyShare && (cause == "cpu-contention" || root == "cpu-contention") {
			return false
		}
		if cause == v.Root || slices.Contains(v.May, cause) {
			return false
		}
		return slices.Contains(v.Never, "*") || slices.Contains(v.Never, cause)
	}
	for _, f := range r.Findings {
		if f.BecauseOf == "" {
			if len(got.causes) == 0 {
				got.grade = f.Confidence
				if r.Requests.Slow > 0 {
					got.explains = f.Explains.NS / float64(r.Requests.Slow)
				}
			}
			got.causes = append(got.causes, f.Cause)
		} else {
			got.under = append(got.under, f.Cause)
		}
		if forbidden(f.Cause, f.BecauseOf) && !slices.Contains(got.forbid, f.Cause) {
			got.forbid = append(got.forbid, f.Cause)
		}
	}
	roots := slices.DeleteFunc(slices.Clone(got.causes), func(c string) bool { return got.others > busyShare && c == "cpu-contention" && v.Root != c })
	got.missed = v.Root != "" && (len(roots) == 0 || roots[0] != v.Root)
	got.ok = !got.missed && len(got.forbid) == 0
}

// words says a verdict in a line.
func (got *verdict) words() string {
	if got.err != "" {
		return "failed: " + got.err
	}
	s := "nothing found"
	if len(got.causes) > 0 {
		s = strings.Join(got.causes, ", ")
		if got.grade != "" {
			s += " (" + got.grade + ")"
		}
		if len(got.under) > 0 {
			s += "; under it " + strings.Join(got.under, ", ")
		}
	}
	if got.others > busyShare {
		s += fmt.Sprintf("; others used %.0f %% of the CPUs", 100*got.others)
	}
	if got.missed {
		s += "; MISSED"
	}
	if len(got.forbid) > 0 {
		s += "; FALSE ALARM: " + strings.Join(got.forbid, ", ")
	}
	return s
}
