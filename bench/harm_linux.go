package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

const harmUsage = `usage: bench harm [--pairs 20] [--seconds 2] [--settle 1s] [--only REGEX] [--list] [--format json] [--rate 100] [--whystall FILE]

Measures what the users of a service under stress feel while it is recorded.

  1. Each target is started in a session of its own, as whystall is, within a cgroup where it is to lack a quota or
     memory. Clients outside ask it in an open loop: a request is due at its time, and its latency counts from then.
  2. The rate is raised until the CPUs, or the quota, are 80 to 95 % busy.
  3. For each part of the recorder pairs of windows are measured by turns, one undisturbed and one recorded:
     p50, p99 and answers a second. The one that is first changes from pair to pair.
  4. The table has the medians of the ratios of the pairs, and their 95 % intervals. A row misses when that of
     p99 is above 1.10, or that of the throughput below 0.97.

--seconds is the length of a window, --settle how long a part is at work before its window. A recording lasts as
long as both and a second; what whystall spares a target by shortening the trace shows with --seconds 20 as it does
by default.
--rate is where the search for the load starts, in requests a second.
--whystall is a program to measure instead of the present tree's.
--only measures the rows whose "target part" matches; --list prints these names.
As root all is measured. Others cannot make cgroups, and their clients do not run before other processes.

Exit status: 0 done; 1 a row misses; 2 wrong usage, or it could not be measured.
`

type harmOptions struct {
	pairs          int
	window, settle time.Duration
	only           *regexp.Regexp
	list           bool
	format         string
	whystall       string
	rate           float64
}

func readHarmOptions(args []string) (o harmOptions, err error) {
	fs := flag.NewFlagSet("harm", flag.ContinueOnError)
	fs.Usage = func() { fmt.Fprint(fs.Output(), harmUsage) }
	fs.IntVar(&o.pairs, "pairs", 20, "")
	seconds := fs.Float64("seconds", 2, "")
	fs.DurationVar(&o.settle, "settle", time.Second, "")
	only := fs.String("only", "", "")
	fs.BoolVar(&o.list, "list", false, "")
	fs.StringVar(&o.format, "format", "text", "")
	fs.Float64Var(&o.rate, "rate", 100, "")
	fs.StringVar(&o.whystall, "whystall", "", "")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	o.window = time.Duration(*seconds * float64(time.Second))
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("%q is no flag: see bench harm --help", fs.Arg(0))
	case o.pairs < 1 || o.pairs > maxPairs:
		return o, fmt.Errorf("read --pairs: want 1 to %d, got %d", maxPairs, o.pairs)
	case o.window < 500*time.Millisecond || o.window > 20*time.Second:
		return o, fmt.Errorf("read --seconds: want 0.5 to 20, got %v", *seconds)
	case o.settle < 0 || o.settle > time.Minute:
		return o, fmt.Errorf("read --settle: want 0 to 1m, got %v", o.settle)
	case !(o.rate >= 1 && o.rate <= 1e6):
		return o, fmt.Errorf("read --rate: want 1 to 1000000, got %v", o.rate)
	case o.format != "text" && o.format != "json":
		return o, fmt.Errorf("read --format: want text or json, got %q", o.format)
	}
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("read --only: %w", err)
	}
	return o, nil
}

// chosen are the parts of a target that are measured.
func (o harmOptions) chosen(t stressed) (l []part) {
	for _, p := range harmParts() {
		if p.fits(t) && o.only.MatchString(t.key+" "+p.key) {
			l = append(l, p)
		}
	}
	return l
}

// harm measures what recording does to the users of stressed services.
func harm(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := readHarmOptions(args)
	if err != nil {
		return err
	}
	if o.list {
		for _, t := range stressedTargets() {
			for _, p := range o.chosen(t) {
				fmt.Fprintf(out, "%s %s\n", t.key, p.key)
			}
		}
		return nil
	}
	dir, err := os.MkdirTemp("", "whystall-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	whystall, err := filepath.Abs(o.whystall)
	if o.whystall == "" && err == nil {
		whystall, err = buildWhystall(ctx, dir)
	}
	if err != nil {
		return err
	}
	r := harmReport{Date: time.Now().UTC().Format("2006-01-02 15:04"), Go: runtime.Version(),
		Kernel: kernelRelease(), CPUs: runtime.NumCPU(), CPU: cpuModel(), Window: o.window.Seconds(), Notes: []string{}}
	if os.Geteuid() != 0 {
		r.Notes = append(r.Notes,
			"Not root: the kernel is recorded by perf_event as far as it is permitted, and targets in a cgroup are left out.")
	}
	for _, t := range stressedTargets() {
		if parts := o.chosen(t); len(parts) > 0 {
			r.Targets = append(r.Targets, harmOf(ctx, t, parts, o, whystall, dir, progress))
		}
		if ctx.Err() != nil {
			break // what was measured is printed
		}
	}
	switch err := r.write(out, o.format); {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case len(r.Targets) == 0:
		return errors.New("read --only: it matches no row: see bench harm --list")
	case r.missed():
		return errWorse
	}
	return nil
}

// harmOf measures one target. What goes wrong is in its table: the others are still measured.
func harmOf(ctx context.Context, t stressed, parts []part, o harmOptions, whystall, dir string,
	progress io.Writer) (table harmTarget) {
	table = harmTarget{Target: t.key, Title: t.title, Notes: []string{}}
	err := func() (err error) {
		program, note, err := buildTarget(ctx, t, dir)
		if err != nil {
			return err
		}
		table.note(note)
		target, end, err := startTarget(ctx, t, program, dir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
		clients, err := startHelper(ctx, "clients", target.says["addr"])
		if err != nil {
			return err
		}
		defer clients.end()
		if clients.says["urgent"] != "true" {
			table.note("the clients could not run before other processes, so what they wait for a CPU counts too")
		}
		s := &stand{t: t, o: o, whystall: whystall, dir: dir, target: target, clients: clients}
		return s.pairs(ctx, parts, &table, progress)
	}()
	if ctx.Err() != nil {
		table.NotMeasured = "interrupted"
	} else if err != nil {
		table.NotMeasured = err.Error()
	}
	var keys []string
	for _, p := range parts {
		keys = append(keys, p.key+"-early", p.key, p.key+"-all")
	}
	table.sum(keys)
	return table
}

func (t *harmTarget) note(line string) {
	if line != "" && !slices.Contains(t.Notes, line) {
		t.Notes = append(t.Notes, line)
	}
}

// pairs measures the pairs of all parts, in turning order.
func (s *stand) pairs(ctx context.Context, parts []part, table *harmTarget, progress io.Writer) error {
	if err := s.findRate(ctx, progress); err != nil {
		return err
	}
	again, dropped := 0, 0
	for i := range s.o.pairs {
		order := slices.Clone(parts)
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, p := range order {
			row := table.row(p.key, p.title)
			if row.NotMeasured != "" {
				continue
			}
			without, with, anew, err := s.steadyPair(ctx, p, recordedFirst(i), progress)
			again += min(anew, anewLimit)
			if ctx.Err() != nil || err != nil && gone(s.target.pid) {
				return cmp.Or(ctx.Err(), err)
			}
			if err != nil {
				row.NotMeasured = err.Error()
				continue
			}
			if anew > anewLimit {
				dropped++
				continue
			}
			row.add(with.window, without.window, with.own)
			table.bare = append(table.bare, without.window)
			if p.whole {
				if with.early.Due > 0 {
					table.row(p.key+"-early", p.title+", before its trace starts").add(with.early,
						without.early, with.earlyOwn)
				}
				table.row(p.key+"-all", p.title+", from its start to its end").add(with.all, without.all, with.allOwn)
			}
		}
	}
	table.Rate = s.rate
	table.note(s.note)
	if again > 0 {
		table.note(fmt.Sprintf("%d pairs were taken anew, and %d left out in the end: without recording the target was busier or idler than it was to be, or others took CPU time", again, dropped))
	}
	for _, p := range parts {
		if row := table.row(p.key, p.title); row.Pairs == 0 && row.NotMeasured == "" {
			row.NotMeasured = "no pair was undisturbed by others"
		}
	}
	return nil
}

// anewLimit is how often a pair is taken anew.
const anewLimit = 3

// foreignLimit is how many CPUs other processes, interrupts and the hypervisor may take in a pair.
// Alone on a machine of 2 CPUs it is 0.01 to 0.03.
const foreignLimit = 0.08

// steadyPair takes a pair whose undisturbed window is as busy as it was to be: the machine changes,
// and the target is to be as stressed in the last pair as in the first. Of what the recorded window
// felt like nothing is asked. A pair into which others came is taken anew as well. If anew is above
// anewLimit, the last one was no better.
func (s *stand) steadyPair(ctx context.Context, p part, recorded bool, progress io.Writer) (without,
	with felts, anew int, err error) {
	for ; ; anew++ {
		without, with, err = s.pair(ctx, p, recorded)
		if err != nil {
			return without, with, anew, err
		}
		bare, w := without.window, with.window
		fmt.Fprintf(progress, "%s %s: p50 %.2f -> %.2f ms, p99 %.1f -> %.1f ms, %.0f -> %.0f/s, busy %.2f -> %.2f, others %.2f -> %.2f, stolen %.2f -> %.2f, recorder %.3f; %s\n", s.t.key, p.key,
			bare.P50, w.P50, bare.P99, w.P99, bare.PerS, w.PerS, bare.Busy, w.Busy, bare.Foreign,
			w.Foreign, without.stolen, with.stolen, with.own, with.slices)
		idle, busy := bare.Busy < busyLow-0.03 && s.note == "", bare.Busy > busyHigh || bare.PerS < keptUp*s.rate
		foreign := max(bare.Foreign, w.Foreign, without.stolen, with.stolen) > foreignLimit
		if !idle && !busy && !foreign {
			if s.note == "" {
				err = s.setRate(nudged(s.rate, bare.Busy))
			}
			return without, with, anew, err
		} else if anew == anewLimit {
			return without, with, anew + 1, nil
		}
		if foreign {
			err = pause(ctx, time.Second)
		} else {
			err = s.findRate(ctx, progress)
		}
		if err != nil {
			return without, with, anew, err
		}
	}
}

// pair measures a window with the part and one without, and of a whole recording what it felt like
// at other times of it beside times without it that are as long.
func (s *stand) pair(ctx context.Context, p part, recorded bool) (without, with felts, err error) {
	for _, withPart := range []bool{recorded, !recorded} {
		if withPart {
			with, err = s.attached(ctx, p)
		} else {
			without, err = s.undisturbed(ctx, p)
		}
		if err == nil {
			err = s.drain(ctx)
		}
		if err != nil {
			return without, with, err
		}
	}
	if early := with.earlyTime; early.to > early.from {
		from := without.time.from
		without.early, err = s.felt(from, from+early.to-early.from)
	}
	return without, with, err
}

// undisturbed measures a window without recording. Beside a whole recording it lasts as long as the
// last one did: the longer a time is, the more of the rare bursts its p99 has.
func (s *stand) undisturbed(ctx context.Context, p part) (f felts, err error) {
	f.time.from = monotonicNS()
	atFirst := readStat()
	if f.window, err = s.measure(ctx, nil); err != nil || !p.whole {
		return f, err
	}
	f.time.to = f.time.from + int64(cmp.Or(s.lasts, s.o.settle+s.o.window+4*time.Second))
	if err = pause(ctx, time.Duration(f.time.to-monotonicNS())); err != nil {
		return f, err
	}
	f.stolen = atFirst.stolenSince()
	f.all, err = s.felt(f.time.from, f.time.to)
	return f, err
}

func kernelRelease() string {
	b, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(b))
}
