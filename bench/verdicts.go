package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

const verdictsUsage = `usage: bench verdicts [--whystall FILE] FOLDER

Measures how often whystall compare is right. FOLDER holds recordings of the lab's cases, several of each variant:

  go run -C lab . verify --times 4 --for 8s --keep FOLDER --all --only CASE/ill --only CASE/cured ...

Each pair of recordings of one ill variant is unchanged, across a restart. Each pair of an ill one and its cured one
is a right cure. A recording that is named CASE.placebo-N.case is of the ill variant with a remedy that cannot help,
for example with GOGC=400 in the environment: it must never be confirmed.
It counts the verdicts on the case's own cause: the one that is named as the case. A case is confirmed within three
attempts where one of its first three pairs of an ill recording and the cured one of the same number is.

Exit status: 0 done, 1 a goal is missed, 2 wrong usage, or it could not be measured.
`

// pairKind is what is true of a pair.
type pairKind string

const (
	unchangedPair pairKind = "unchanged"
	curedPair     pairKind = "cured"
	placeboPair   pairKind = "placebo"
)

// judged is what compare says of one pair.
type judged struct {
	kind         pairKind
	service      string
	outcome      string
	gates        []string
	load, others float64 // after by before; after less before
	behind       float64 // how much longer requests wait behind others, as a part of their time before; NaN: not known
	found        bool    // the cause was found before
	attempt      int     // of a cured pair of the same number: 1 for the first; else 0
}

func verdicts(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("verdicts", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, verdictsUsage) }
	whystall := flags.String("whystall", "", "a program instead of the present tree's")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("want one folder; see bench verdicts --help")
	}
	if *whystall == "" {
		dir, err := os.MkdirTemp("", "verdicts")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if *whystall, err = buildWhystall(ctx, dir); err != nil {
			return err
		}
	}
	pairs, err := pairsOf(flags.Arg(0))
	if err != nil {
		return err
	}
	var all []judged
	for _, p := range pairs {
		j, err := p.judge(ctx, *whystall)
		if err != nil {
			return err
		}
		if !j.found {
			continue // nothing was found before, so nothing can be confirmed
		}
		fmt.Fprintf(stderr, "%s %s -> %s: %s %s, load x %.2f, others %+.2f CPUs, behind them %+.2f of a request\n", j.kind, filepath.Base(p.before), filepath.Base(p.after), j.outcome, strings.Join(j.gates, ", "), j.load, j.others, j.behind)
		all = append(all, j)
	}
	return tellVerdicts(stdout, all)
}

type casePair struct {
	kind          pairKind
	service       string
	before, after string
	attempt       int // as in judged
}

// pairsOf pairs a folder's recordings by their names: CASE.VARIANT-NUMBER.case.
func pairsOf(folder string) (pairs []casePair, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.case"))
	if err != nil || len(files) < 2 {
		return nil, fmt.Errorf("%s: fewer than two recordings: %w", folder, err)
	}
	slices.Sort(files)
	by := map[string]map[string][]string{}
	for _, f := range files {
		service, rest, _ := strings.Cut(filepath.Base(f), ".")
		variant, _, _ := strings.Cut(rest, "-")
		if by[service] == nil {
			by[service] = map[string][]string{}
		}
		by[service][variant] = append(by[service][variant], f)
	}
	var services []string
	for s := range by {
		services = append(services, s)
	}
	slices.Sort(services)
	for _, s := range services {
		for i, b := range by[s]["ill"] {
			for _, a := range by[s]["ill"][i+1:] {
				pairs = append(pairs, casePair{kind: unchangedPair, service: s, before: b, after: a})
			}
			for k, a := range by[s]["cured"] {
				p := casePair{kind: curedPair, service: s, before: b, after: a}
				if k == i {
					p.attempt = i + 1
				}
				pairs = append(pairs, p)
			}
			for _, a := range by[s]["placebo"] {
				pairs = append(pairs, casePair{kind: placeboPair, service: s, before: b, after: a})
			}
		}
	}
	return pairs, nil
}

func (p *casePair) judge(ctx context.Context, whystall string) (j judged, err error) {
	cmd := exec.CommandContext(ctx, whystall, "compare", p.before, p.after, "--format", "json")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var c struct {
		Verdicts []struct {
			Cause, Outcome string
			Gates          []string
			Behind         *struct {
				Before float64 `json:"before_ns"`
				After  float64 `json:"after_ns"`
				Wall   float64 `json:"wall_before_ns"`
			} `json:"behind_others"`
		}
		Before, After struct {
			OthersCPUs float64 `json:"others_cpus"`
		}
		Figures []struct {
			Name          string
			Before, After float64
		}
	}
	if jerr := json.Unmarshal(out.Bytes(), &c); jerr != nil {
		return j, fmt.Errorf("compare %s %s: %w: %s", p.before, p.after, errors.Join(err, jerr), errs.String())
	}
	j = judged{kind: p.kind, service: p.service, attempt: p.attempt, load: math.NaN(),
		behind: math.NaN(), others: c.After.OthersCPUs - c.Before.OthersCPUs}
	for _, f := range c.Figures {
		if f.Name == "requests_per_second" && f.Before > 0 {
			j.load = f.After / f.Before
		}
	}
	for _, v := range c.Verdicts {
		if v.Cause == p.service {
			j.outcome, j.gates, j.found = v.Outcome, v.Gates, true
			if b := v.Behind; b != nil && b.Wall > 0 {
				j.behind = (b.After - b.Before) / b.Wall
			}
		}
	}
	return j, nil
}

// behindAlike is the part of a request's time before by which its wait behind others may differ for
// neighbours to be alike: a fall has to be a third of that time.
const behindAlike = 1.0 / 3

// tellVerdicts prints the table and holds it against the goals.
func tellVerdicts(w io.Writer, all []judged) error {
	outcomes := []string{"confirmed", "cannot tell", "not confirmed", "worse"}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "pairs\tservice\tn\t%s\n", strings.Join(outcomes, "\t"))
	count := func(keep func(judged) bool) (n int, by map[string]int) {
		by = map[string]int{}
		for _, j := range all {
			if keep(j) {
				n++
				by[j.outcome]++
			}
		}
		return n, by
	}
	line := func(what, service string, keep func(judged) bool) (int, map[string]int) {
		n, by := count(keep)
		if n == 0 {
			return 0, by
		}
		fmt.Fprintf(t, "%s\t%s\t%d", what, service, n)
		for _, o := range outcomes {
			fmt.Fprintf(t, "\t%d", by[o])
		}
		fmt.Fprintln(t)
		return n, by
	}
	var services []string
	for _, j := range all {
		if !slices.Contains(services, j.service) {
			services = append(services, j.service)
		}
	}
	for _, kind := range []pairKind{unchangedPair, placeboPair, curedPair} {
		for _, s := range services {
			line(string(kind), s, func(j judged) bool { return j.kind == kind && j.service == s })
		}
	}
	un, unBy := line(string(unchangedPair), "all", func(j judged) bool { return j.kind == unchangedPair })
	cn, cBy := line(string(curedPair), "all", func(j judged) bool { return j.kind == curedPair })
	alike := func(j judged) bool {
		return j.kind == curedPair && math.Abs(j.others) <= 0.3 && (math.IsNaN(j.load) || j.load > 0.8)
	}
	line("cured, load alike, others within 0.3 CPUs", "all", alike)
	an, aBy := line("the same, and as long behind them", "all",
		func(j judged) bool { return alike(j) && !(math.Abs(j.behind) > behindAlike) })
	_, pBy := line(string(placeboPair), "all", func(j judged) bool { return j.kind == placeboPair })
	t.Flush()
	within := map[string]bool{}
	for _, j := range all {
		if j.attempt > 0 && j.attempt <= 3 && j.outcome == "confirmed" {
			within[j.service] = true
		}
	}
	fmt.Fprintf(w, "%d of %d cases are confirmed within three attempts\n", len(within), len(services))
	missed := un > 0 && 20*(unBy["confirmed"]+unBy["worse"]) > un || cn > 0 && 10*cBy["confirmed"] < 6*cn ||
		an > 0 && 100*aBy["confirmed"] < 85*an || cBy["worse"]+cBy["not confirmed"] > 0 || pBy["confirmed"] > 0
	if missed {
		fmt.Fprintln(w, "a goal is missed: at most 5 % of unchanged pairs confirmed or worse; 60 % of cures confirmed, 85 % of those that were alike; none not confirmed or worse; no placebo confirmed")
		return errWorse
	}
	return nil
}
