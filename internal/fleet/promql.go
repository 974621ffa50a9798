package fleet

import (
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"
)

// env is where an expression is asked: over which time, of whom. Expressions are made by its
// methods only, so that each selector is bounded and each metric is asked once for each key:
//
//   - "max by (key)" around each selector makes one of the copies of HA pairs and double jobs.
//   - Denominators are guarded by "> 0": 0 by 0 is NaN in some engines and nothing in others.
//   - Names are written out: a rate over a pattern of names is an error in most engines.
type env struct {
	p      *Profile
	window time.Duration
	offset time.Duration
	match  []string // matchers for every selector: instance=~"..."
	first  bool     // the whole fleet is asked: what ranks members has to be cheap
	start  bool     // the start of a bout is sought, over two scrapes
}

// quoted writes a string for PromQL.
func quoted(s string) string { return strconv.Quote(s) }

// seconds writes a duration for PromQL.
func seconds(d time.Duration) string { return fmt.Sprintf("%ds", max(1, int64(d/time.Second))) }

func (e *env) sel(metric string, matchers []string, window time.Duration) string {
	s := metric
	if m := append(append([]string{}, matchers...), e.match...); len(m) > 0 {
		s += "{" + strings.Join(m, ",") + "}"
	}
	if window > 0 {
		s += "[" + seconds(window) + "]"
	}
	if e.offset > 0 {
		s += " offset " + seconds(e.offset)
	}
	return s
}

func (e *env) by(k Key) string { return "(" + strings.Join(e.p.labels(k), ", ") + ")" }

// max wraps an expression, so that copies count once.
func (e *env) max(k Key, expr string) string { return "max by " + e.by(k) + " (" + expr + ")" }

// rate is the growth a second of a counter.
//
// Over the whole time asked for, and of the whole fleet, it is the increase by the time: a member
// that lived for two samples then counts for what it lost, and not for how fast. Some engines take
// the rate over the samples that are there.
func (e *env) rate(k Key, metric string, matchers ...string) string {
	if e.first {
		return fmt.Sprintf("%s / %d", e.max(k, "increase("+e.sel(metric, matchers, e.window)+")"),
			int64(e.window/time.Second))
	}
	return e.max(k, "rate("+e.sel(metric, matchers, e.window)+")")
}

// gauge is the mean of a gauge over the window.
func (e *env) gauge(k Key, metric string, matchers ...string) string {
	return e.max(k, "avg_over_time("+e.sel(metric, matchers, e.window)+")")
}

// now is a gauge's newest value.
func (e *env) now(k Key, metric string, matchers ...string) string {
	return e.max(k, e.sel(metric, matchers, 0))
}

// rates is the sum of the rates of several counters, of which a target may lack some.
func (e *env) rates(k Key, metrics ...string) string {
	var parts []string
	for i, m := range metrics {
		parts = append(parts, fmt.Sprintf(`label_replace(%s, "part", "%d", "", "")`, e.rate(k, m), i))
	}
	return "sum by " + e.by(k) + " (" + strings.Join(parts, " or ") + ")"
}

// ratio divides two expressions of one key.
func (e *env) ratio(k Key, a, b string) string {
	return fmt.Sprintf("(%s) / on %s (%s > 0)", a, e.by(k), b)
}

// and keeps the members of a that b has too.
func (e *env) and(k Key, a, b string) string {
	return fmt.Sprintf("(%s) and on %s (%s)", a, e.by(k), b)
}

// unless keeps the members of a that b has not.
func (e *env) unless(k Key, a, b string) string {
	return fmt.Sprintf("(%s) unless on %s (%s)", a, e.by(k), b)
}

// above keeps what is larger than a limit.
func above(expr string, limit float64) string {
	return fmt.Sprintf("(%s) > %s", expr, strconv.FormatFloat(limit, 'g', 6, 64))
}

// lasting leaves out members with fewer than four samples in the window: two samples of a
// short-lived container make rates that engines do not agree on.
func (e *env) lasting(k Key, expr, metric string, matchers ...string) string {
	if e.first || e.start {
		return expr // an increase by the time needs none, and the second stage asks again
	}
	return e.and(k, expr, above(e.max(k, "count_over_time("+e.sel(metric, matchers, e.window)+")"), 3.5))
}

// topk keeps the n largest.
func topk(n int, expr string) string { return fmt.Sprintf("topk(%d, %s)", n, expr) }

// among makes matchers for exactly these members.
func among(l []Labels, label string) string {
	var names []string
	seen := map[string]bool{}
	for _, m := range l {
		if v := m[label]; v != "" && !seen[v] {
			seen[v] = true
			names = append(names, literal(v))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return label + "=~" + quoted(strings.Join(names, "|"))
}

// literal escapes what a regular expression of RE2 would act upon.
func literal(s string) string {
	var b strings.Builder
	for _, c := range s {
		if strings.ContainsRune(`\.+*?()|[]{}^$`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// LabelName reports whether s may be the name of a label.
func LabelName(s string) bool {
	for i, c := range s {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// Matchers turns LABEL=VALUE, LABEL=~REGEX and their negations into matchers.
func Matchers(list []string) (out []string, err error) {
	for _, m := range list {
		matcher, why := matcherOf(m)
		if why != "" {
			return nil, fmt.Errorf("%s: %s", m, why)
		}
		out = append(out, matcher)
	}
	return out, nil
}

// matcherOf writes one matcher; else it says why it is none.
func matcherOf(m string) (matcher, why string) {
	const want = "want LABEL=VALUE or LABEL=~REGEX, without braces"
	for _, op := range []string{"=~", "!~", "!=", "="} {
		name, value, ok := strings.Cut(m, op)
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || !LabelName(name) {
			continue
		}
		if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		switch {
		case name == "__name__":
			return "", "want a label: each question has its metric's name"
		case strings.Contains(value, `"`):
			return "", "want one label: repeat --match for the next"
		case op == "=" && strings.HasPrefix(value, "="):
			return "", want
		case op == "=~" || op == "!~":
			if _, err := syntax.Parse(value, syntax.Perl); err != nil {
				return "", "want a regular expression: " + err.Error()
			}
		}
		return name + op + quoted(value), ""
	}
	return "", want
}
