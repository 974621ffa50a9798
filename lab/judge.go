package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whystall/whystall/lab/witness"
)

// report is the part of whystall's report which the lab reads.
type report struct {
	Recording struct {
		BeginUTC *time.Time `json:"begin_utc"`
		EndUTC   *time.Time `json:"end_utc"`
	}
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
	Ledger struct {
		Slow struct {
			Requests int64
			WallNS   int64 `json:"wall_ns"`
		}
		Median struct{ Requests int64 }
	}
	Findings []found
}

type found struct {
	Cause      string
	Scope      string // "usual": what every request pays
	BecauseOf  string `json:"because_of"`
	Confidence string
	Explains   struct {
		NS    float64
		CPUNS float64 `json:"cpu_ns"`
		Bytes float64
	}
}

// busyShare is which share of the CPUs others may use before that counts as a trouble of its own.
const busyShare = 0.1

// verdict is what whystall said about one run, and what the lab knows about it.
type verdict struct {
	causes []string // roots, ranked
	under  []string // mechanisms
	grade  string   // of the first root
	forbid []string // named, although they must not be
	missed bool
	ok     bool
	err    string

	explains  float64           // of the expected root, ns per slow request, or per usual one
	usual     bool              // explains is of usual requests
	bytes     float64           // of the expected root
	share     float64           // of the requests: those which whystall calls slow
	slow      float64           // their mean, in ns
	witnessed []witness.Request // which started and ended while whystall recorded, the slowest first
	resident  int64             // the server's memory when it was recorded, in bytes

	others float64       // share of the CPUs that processes outside the lab used
	after  time.Duration // from the end of the recording to the verdict
}

// judge runs a variant and has whystall diagnose its server as a stranger's process. The recording
// is left in caseFile.
func judge(ctx context.Context, b *builder, whystall string, x chosen, record time.Duration,
	caseFile string) (got verdict, err error) {
	s, err := set(ctx, b, x.c, x.v)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := s.warmUp(ctx); err != nil {
		return got, err
	}
	if _, err := s.clients().mark(ctx, false); err != nil {
		return got, err
	}
	var out, errs bytes.Buffer
	others := s.others()
	started := time.Now()
	status, err := diagnose(ctx, whystall, []string{"diagnose", "--pid", strconv.Itoa(s.pid()),
		"--for", record.String(), "--format", "json", "-o", caseFile}, &out, &errs)
	got.after, got.others = time.Since(started)-record, others()
	got.resident = resident(s.pid())
	if err == nil && status > 1 {
		err = fmt.Errorf("whystall's exit status is %d: %s", status, strings.TrimSpace(errs.String()))
	}
	if err != nil {
		return got, err
	}
	figures, err := s.clients().mark(ctx, true)
	if err == nil {
		err = s.dead()
	}
	if err != nil {
		return got, err
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return got, fmt.Errorf("read whystall's report: %w", err)
	}
	got.read(&r, x.v)
	got.see(&r, figures)
	return got, nil
}

// others starts to watch processes which are neither the variant's nor whystall. The function which
// it gives returns their share of the CPUs since then.
func (s *stage) others() func() float64 {
	started, all, lab := time.Now(), busyCPU()-kernelCPU(), s.labCPU()
	return func() float64 {
		used := (busyCPU() - kernelCPU() - all) - (s.labCPU() - lab)
		return max(0, float64(used)/float64(time.Since(started))/float64(runtime.NumCPU()))
	}
}

// read judges a report. The root must be first, and no forbidden cause may be named, be it as a
// root or below one.
func (got *verdict) read(r *report, v *Variant) {
	// On a machine which others use it is no false alarm that threads wait for them; nor is what
	// follows from that.
	forgiven := func(f *found) bool {
		return got.others > busyShare && (f.Cause == "cpu-contention" || f.BecauseOf == "cpu-contention")
	}
	first := "" // the first root that is not forgiven
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.BecauseOf != "" {
			got.under = append(got.under, f.Cause)
		} else {
			if got.causes = append(got.causes, f.Cause); len(got.causes) == 1 {
				got.grade = f.Confidence
			}
			if first == "" && (f.Cause == v.Root || !forgiven(f)) {
				first = f.Cause
			}
		}
		if f.Cause == v.Root && f.BecauseOf == "" {
			got.bytes = f.Explains.Bytes
			n := r.Ledger.Slow.Requests
			if got.usual = f.Scope == "usual"; got.usual {
				n = r.Ledger.Median.Requests
			}
			if n > 0 {
				got.explains = f.Explains.NS / float64(n)
			}
		}
		allowed := f.Cause == v.Root || slices.Contains(v.May, f.Cause) || forgiven(f)
		if !allowed && (slices.Contains(v.Never, "*") || slices.Contains(v.Never, f.Cause)) &&
			!slices.Contains(got.forbid, f.Cause) {
			got.forbid = append(got.forbid, f.Cause)
		}
	}
	got.missed = v.Root != "" && first != v.Root
	got.ok = !got.missed && len(got.forbid) == 0
}

// see takes from the witness what whystall could see as well.
func (got *verdict) see(r *report, figures []witness.Figures) {
	if r.Requests.Count > 0 {
		got.share = float64(r.Requests.Slow) / float64(r.Requests.Count)
	}
	if n := r.Ledger.Slow.Requests; n > 0 {
		got.slow = float64(r.Ledger.Slow.WallNS) / float64(n)
	}
	if len(figures) == 0 || r.Recording.BeginUTC == nil || r.Recording.EndUTC == nil {
		return
	}
	begin, end := r.Recording.BeginUTC.UnixNano(), r.Recording.EndUTC.UnixNano()
	for _, q := range figures[0].All {
		if q[0] >= begin && q[0]+q[1] <= end {
			got.witnessed = append(got.witnessed, q)
		}
	}
	slices.SortFunc(got.witnessed, func(a, b witness.Request) int { return int(b[1] - a[1]) })
}

// words prints a verdict in one line.
func (got *verdict) words() string {
	if got.err != "" {
		return "failed: " + got.err
	}
	s := "nothing found"
	if len(got.causes) > 0 {
		s = fmt.Sprintf("%s (%s)", strings.Join(got.causes, ", "), got.grade)
		if len(got.under) > 0 {
			s += "; under it " + strings.Join(got.under, ", ")
		}
	}
	return s + got.wrong()
}

// wrong says what is wrong about a verdict; "": nothing.
func (got *verdict) wrong() (s string) {
	if got.missed {
		s = "; MISSED"
	}
	if len(got.forbid) > 0 {
		s += "; FALSE ALARM: " + strings.Join(got.forbid, ", ")
	}
	return s
}

// caseName names a file for a recording, in one of the lab's own folders.
func caseName(dir string, x chosen) string {
	return filepath.Join(dir, fmt.Sprintf("%s.%s-%d.case", x.c.Name, x.v.Name, time.Now().UnixNano()))
}

// keep copies a recording out of the lab's folder, which may be on another disk.
func keep(from, to string) error {
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, b, 0o644)
	}
	if err != nil {
		return fmt.Errorf("keep a recording: %w", err)
	}
	return nil
}
