package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/whystall/whystall/lab/witness"
)

// amount compares what whystall explains by the expected root with what the witness saw. Both are
// means over the runs in which the root was found.
type amount struct {
	kind      string // of the witness: latency, lost, rss; "": there is none
	explained float64
	seen      float64
	low, high float64 // what the witness saw in single runs
	why       string  // why the amount is not known, although there is a witness
}

// amountOf compares a variant's runs with those of the variant without its trouble.
func amountOf(rows []row, r *row) (a amount) {
	a.kind = cmp.Or(r.v.Amount, r.c.Amount)
	if r.v.Root == "" || a.kind == "none" {
		a.kind = ""
	}
	if a.kind == "" || r.skipped != "" {
		return a
	}
	base := slices.IndexFunc(rows, func(b row) bool { return b.c == r.c && b.v.Name == r.v.cured() })
	var seen []float64
	for i := range r.runs {
		v := &r.runs[i]
		if v.missed || v.err != "" {
			continue
		}
		s, why := v.seen(a.kind, rows, base)
		if why != "" {
			a.why = why
			return a
		}
		seen = append(seen, s)
		if a.kind == "rss" {
			a.explained += v.bytes
		} else {
			a.explained += v.explains
		}
	}
	if len(seen) == 0 {
		a.why = "not found"
		return a
	}
	n := float64(len(seen))
	a.explained /= n
	for _, s := range seen {
		a.seen += s / n
	}
	a.low, a.high = slices.Min(seen), slices.Max(seen)
	return a
}

// seen is what was lost in one run as the witness saw it: ns per slow request or, for memory,
// bytes.
func (v *verdict) seen(kind string, rows []row, base int) (float64, string) {
	if kind == "lost" {
		lost, ok := slowMean(v.witnessed, v.share, 2)
		if v.usual {
			lost, ok = usualLost(v.witnessed)
		}
		if !ok {
			return 0, "the witness saw no request"
		}
		return lost, ""
	}
	if base < 0 {
		return 0, "no cured run"
	}
	ill, ok := float64(v.resident), true
	if kind == "latency" {
		ill, ok = slowMean(v.witnessed, v.share, 1)
	}
	var sum, n float64
	for i := range rows[base].runs {
		c := &rows[base].runs[i]
		if c.err != "" {
			continue
		}
		cured, got := float64(c.resident), true
		if kind == "latency" {
			cured, got = slowMean(c.witnessed, v.share, 1)
		}
		if got {
			sum += cured
			n++
		}
	}
	if !ok || n == 0 {
		return 0, "the witness saw no request"
	}
	return ill - sum/n, ""
}

// slowMean is a mean over the slowest share of requests, which are sorted. column is 1 for what
// they took, 2 for what they lost.
func slowMean(all []witness.Request, share float64, column int) (float64, bool) {
	n := min(len(all), max(1, int(share*float64(len(all))+0.5)))
	if n == 0 {
		return 0, false
	}
	sum := 0.0
	for _, q := range all[:n] {
		sum += float64(q[column])
	}
	return sum / float64(n), true
}

// usualLost is the mean loss of the usual requests: those from the 40th to the 60th percentile of
// what they took, as whystall has them too. The requests are sorted.
func usualLost(all []witness.Request) (float64, bool) {
	return slowMean(all[len(all)*2/5:], 0.2*5/3, 2)
}

// error is how wrong the amount is, as a part of what the witness saw. ok reports whether that is
// known.
func (a *amount) error() (part float64, ok bool) {
	if a.kind == "" || a.why != "" || a.seen <= 0 || a.explained <= 0 {
		return 0, false
	}
	return (a.explained - a.seen) / a.seen, true
}

func (a *amount) unit(x float64) string {
	if a.kind == "rss" {
		return fmt.Sprintf("%.0f MiB", x/(1<<20))
	}
	return fmt.Sprintf("%.1f ms", x/1e6)
}

// words are the columns explained, witness and error of the table.
func (a *amount) words(r *row) (explained, seen, wrong string) {
	switch {
	case r.v.Root == "":
		return "-", "-", "-"
	case a.kind == "":
		return "-", "amount unknown", "-"
	case r.skipped != "":
		return "-", "-", "-"
	case a.why != "":
		return "-", a.kind + ": " + a.why, "-"
	}
	seen = a.kind + " " + a.unit(a.seen)
	if a.unit(a.low) != a.unit(a.high) {
		seen += fmt.Sprintf(" (%s to %s)", a.unit(a.low), a.unit(a.high))
	}
	explained, wrong = a.unit(a.explained), "-"
	if a.explained <= 0 {
		explained = "no time"
	}
	if part, ok := a.error(); ok {
		wrong = fmt.Sprintf("%+.0f %%", 100*part)
	}
	return explained, seen, wrong
}
