package fleet

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/finding"
)

// Files of RuleFiles.
const (
	RulesFile = "whystall.rules.yml"
	TestsFile = "whystall.test.yml"
)

// ruleWindow is over what recording rules average, and alertAfter how long an alert waits.
const (
	ruleWindow = 5 * time.Minute
	alertAfter = "5m"
)

// RuleFiles makes recording rules and alerts of the table, and their unit tests for promtool. The
// profile is the labels that tell clusters apart, none: "cluster", and whether containers have
// Kubernetes' names. A label that is missing is harmless.
func RuleFiles(p Profile) map[string][]byte { return ruleFiles(&p, rules) }

func ruleFiles(p *Profile, rules []*Rule) map[string][]byte {
	if len(p.Cluster) == 0 {
		p.Cluster = []string{"cluster"}
	}
	if p.Standalone {
		rules = slices.DeleteFunc(slices.Clone(rules), func(r *Rule) bool { return r.Pods })
	}
	e := &env{p: p, window: ruleWindow}
	var b bytes.Buffer
	b.WriteString(generated + "groups:\n")
	for _, r := range rules {
		fmt.Fprintf(&b, "  - name: %s\n    interval: 1m\n    rules:\n", yaml("whystall-"+r.Name))
		fmt.Fprintf(&b, "      - record: %s\n        expr: %s\n", recorded(r), yaml(r.Loss(e)))
		expr := recorded(r) + " >= " + strconv.FormatFloat(r.Least, 'f', -1, 64)
		if r.And != nil {
			expr = "(" + expr + ") and on " + e.by(r.Key) + " (" + r.And(e) + ")"
		}
		fmt.Fprintf(&b, "      - alert: %s\n        expr: %s\n        for: %s\n", alertName(r), yaml(expr), alertAfter)
		severity := "warning"
		if r.Risk || r.Sure == finding.Possible {
			severity = "info"
		}
		fmt.Fprintf(&b, "        labels: {severity: %s, cause: %s, confidence: %s, tool: whystall}\n", severity, r.Cause, r.Sure)
		fmt.Fprintf(&b, "        annotations:\n          summary: %s\n          description: %s\n          capture: %s\n",
			yaml(r.Title), yaml(fmt.Sprintf("{{ $value | humanize }} %s. %s: %s. The manual: whystall causes %s.", r.Unit, r.Sure, r.Why, r.Cause)), yaml(captureTemplate(p, r)))
	}
	return map[string][]byte{RulesFile: b.Bytes(), TestsFile: ruleTests(p, rules)}
}

const generated = "# Made by: whystall fleet rules. Change what is asked by --cluster-label, and make it again.\n"

// yaml writes a string for YAML: JSON's form is one of YAML's.
func yaml(s string) string { return strconv.Quote(s) }

// recorded is the name of a rule's figure.
func recorded(r *Rule) string {
	return "whystall:" + strings.ReplaceAll(r.Name, "-", "_") + ":loss_rate5m"
}

func alertName(r *Rule) string {
	name := "Whystall"
	for w := range strings.SplitSeq(r.Name, "-") {
		name += strings.ToUpper(w[:1]) + w[1:]
	}
	return name
}

// captureTemplate is the command for a deep capture, with the alert's labels. Who runs it reads it
// first: labels are foreign input, and a template cannot quote for a shell.
func captureTemplate(p *Profile, r *Rule) string {
	switch r.Key {
	case ByHost:
		return "on the host {{ $labels.instance }}: whystall diagnose --pid PID --for 60s"
	case ByService:
		return "whystall diagnose --pprof 'http://{{ $labels.instance }}' --for 20s"
	}
	if p.Standalone {
		return "on the host {{ $labels.instance }}: whystall diagnose 'container:{{ $labels.name }}' --for 60s"
	}
	return "kubectl debug -n '{{ $labels.namespace }}' -it '{{ $labels.pod }}' --image=IMAGE --profile=sysadmin -- whystall diagnose --pid 1 --for 60s"
}

// testMinutes is how long the made series are, and testAt when alerts are looked at.
const (
	testMinutes = 20
	testAt      = "18m"
)

// ruleTests makes unit tests for promtool: of each rule one that is ill, one that looks alike, one
// that is healthy, one without a cluster's label, copies of HA pairs, the same name in two
// clusters, one that lived for two samples, and a counter that was reset.
func ruleTests(p *Profile, rules []*Rule) []byte {
	var b bytes.Buffer
	b.WriteString(generated + "rule_files: [" + RulesFile + "]\nevaluation_interval: 1m\ntests:\n")
	for _, r := range rules {
		m, ok := made[r.Name]
		if !ok {
			continue
		}
		healthy := make([]Made, len(m.Ill))
		for i, s := range m.Ill {
			if healthy[i] = s; s.Grow > 0 {
				healthy[i].Grow = s.Grow / 1e4
			}
			if r.Levels {
				healthy = m.Alike
				break
			}
		}
		one := func(name string, want int, ls ...madeMember) {
			fmt.Fprintf(&b, "  - name: %s\n    interval: 1m\n    input_series:\n", yaml(r.Name+": "+name))
			for _, l := range ls {
				for i := range l.series {
					series, values := l.series[i].series(l.labels, l.shape, testMinutes)
					fmt.Fprintf(&b, "      - {series: %s, values: %s}\n", yaml(series), yaml(values))
				}
			}
			// How many alerts there are is asked, since their texts may be reworded.
			fmt.Fprintf(&b, "    promql_expr_test:\n      - expr: %s\n        eval_time: %s\n        exp_samples: [{labels: '{}', value: %d}]\n",
				yaml(fmt.Sprintf("count(ALERTS{alertname=%q,alertstate=\"firing\"}) or vector(0)",
					alertName(r))), testAt, want)
		}
		a, other := p.member(r.Key, "a", "m1"), p.member(r.Key, "a", "m2")
		one("ill", 1, madeMember{a, "", m.Ill})
		one("looks alike", 0, madeMember{other, "", m.Alike})
		one("healthy", 0, madeMember{a, "", healthy})
		one("without a label for clusters", 1, madeMember{p.member(r.Key, "", "m1"), "", m.Ill})
		one("two copies of one target", 1, madeMember{a, "", m.Ill}, madeMember{a, "copy", m.Ill})
		one("the same name in another cluster, healthy", 1, madeMember{a, "", m.Ill},
			madeMember{p.member(r.Key, "b", "m1"), "", m.Alike})
		if !r.Levels {
			one("lived for two samples", 0, madeMember{a, "short", m.Ill})
			one("counters were reset", 1, madeMember{a, "reset", m.Ill})
		}
	}
	return b.Bytes()
}

type madeMember struct {
	labels, shape string
	series        []Made
}
