package systool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// clusterEvents is a table of events of Kubernetes without its names above it, or what kubectl
// describe prints at its end: who copies it takes the rows.
var clusterEvents = &attach.Kind{
	Name:  "Kubernetes events",
	Hints: []string{"Normal", "Warning", "kubelet", "FirstSeen", "Reason", "Events:", "default-scheduler", "{"},
	Claim: func(lines []paste.Line) int {
		sure := false
		n := attach.ClaimWhile(lines, func(_ int, text string) bool {
			if _, ok := eventRow(text); ok {
				sure = true
				return true
			}
			return eventHead.MatchString(text)
		})
		return attach.ClaimIf(sure, n)
	},
	Read: func(p *attach.Part) attach.Reading {
		var all []clusterEvent
		for _, l := range p.Lines {
			if e, ok := eventRow(l.Text); ok {
				all = append(all, e)
			}
		}
		v := &verdict{}
		v.Title = "Kubernetes events, " + attach.Plural(len(all), "row")
		tellEvents(v, all)
		return v.done()
	},
}

// clusterEvent is a row of them.
type clusterEvent struct {
	reason, message string
	warning         bool
	n               float64   // how often
	at              time.Time // old releases print dates
}

const (
	eventAge  = `(?:(?:\d+[smhdy])+|<unknown>|<invalid>)`
	eventDate = `[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [-+]\d{4}`
)

var (
	eventHead = pattern.New(`^\s*(?:Events:|FirstSeen\s+LastSeen\s|Type\s+Reason\s+Age\s+From\s|LAST ?SEEN\s+(?:FIRST ?SEEN|TYPE)\s|-{4,}(?:\s+-{2,}){3,}\s*$)`)

	// Since 1.8: type, reason, age and how often, who, message.
	eventNew = pattern.New(`^\s*(Normal|Warning)(?:\s{2,}|\t)([A-Z]\w+)(?:\s{2,}|\t)` + eventAge +
		`(?: \(x(\d+) over \S+\))?\s+[\w-]+(?:, ?\S+)?\s+(\S.*)$`)
	// Before: when first, when last, how often, who, of which container, perhaps type, reason,
	// message.
	eventOld = pattern.New(`^\s*(?:` + eventAge + `|(` + eventDate + `))\s+(?:` + eventAge + `|(` +
		eventDate + `))\s+(\d+)\s+(?:\{[\w-]+(?: [^}]*)?\}|[\w-]+(?:, \S+)?)\s+(?:[\w.]+\{[^}]*\}\s+)?(?:(Normal|Warning)\s+)?([A-Za-z]\w+)\s+(\S.*)$`)
	// kubectl get events: when last, type, reason, what, message.
	eventGot = pattern.New(`^\s*(?:[\w-]+\s+)?` + eventAge +
		`(?: \(x(\d+) over \S+\))?\s+(Normal|Warning)\s+([A-Z]\w+)\s+[a-z]+/\S+\s+(\S.*)$`)
)

func eventRow(text string) (e clusterEvent, ok bool) {
	if len(text) > 4000 {
		return e, false
	}
	e.n = 1
	count := func(s string) {
		if n, ok := number(s); ok && n > 0 {
			e.n = n
		}
	}
	if m := eventNew.FindStringSubmatch(text); m != nil {
		count(m[3])
		e.warning, e.reason, e.message = m[1] == "Warning", m[2], m[4]
		return e, true
	}
	if m := eventOld.FindStringSubmatch(text); m != nil {
		count(m[3])
		e.warning, e.reason, e.message = m[4] == "Warning", m[5], m[6]
		e.at, _ = time.Parse(time.RFC1123Z, cmp.Or(m[2], m[1]))
		return e, m[4] != "" || m[1]+m[2] != ""
	}
	if m := eventGot.FindStringSubmatch(text); m != nil {
		count(m[1])
		e.warning, e.reason, e.message = m[2] == "Warning", m[3], m[4]
		return e, true
	}
	return e, false
}

// eventMeanings says what reasons of events mean, which are constants of Kubernetes. The gravest is
// first.
var eventMeanings = []struct {
	reasons []string
	in      string // a part of the message that tells it from others of the reason; "": any
	means   string
}{
	{[]string{"SystemOOM", "OOMKilling"}, "", "a process was killed for lack of memory: an end and a restart"},
	{[]string{"Evicted", "EvictionThresholdMet", "FreeDiskSpaceFailed", "NodeHasInsufficientMemory",
		"NodeHasDiskPressure"}, "", "the node was short of memory or disk, and the kubelet ends pods for it"},
	{[]string{"NodeNotReady"}, "", "the node did not report in time: what runs on it may stand, or its kubelet"},
	{[]string{"ContainerGCFailed", "ImageGCFailed", "FailedSync", "FailedCreatePodSandBox",
		"FailedKillPod", "Failed", "FailedCreatePodContainer"}, "eadline",
		"the container runtime did not answer the kubelet in time: it hangs, or the disk below it is slow, or the node has no CPU for it"},
	{[]string{"Unhealthy"}, "",
		"a probe failed: the service did not answer it in time, or well; that is a symptom and no cause, and liveness probes restart what fails them"},
	{[]string{"BackOff", "CrashLoopBackOff"}, "",
		"a container ended again and again, and waits for its next start: nobody answers its requests"},
	{[]string{"FailedScheduling"}, "", "a pod waits for a node that has room for what it asks for: it does not run"},
	{[]string{"FailedMount", "FailedAttachVolume"}, "", "a pod waits for a volume: it does not run"},
}

// tellEvents says which events came how often, and what the gravest means.
func tellEvents(v *verdict, all []clusterEvent) {
	n, warnings, text := map[string]float64{}, map[string]float64{}, map[string]string{}
	for _, e := range all {
		n[e.reason] += e.n
		text[e.reason] = e.message
		if e.warning {
			warnings[e.reason] += e.n
		}
	}
	v.unsure = true
	v.not("when and how long a request waited: a restart or a failed probe is a consequence as often as a cause")
	shown := 0
	for _, m := range eventMeanings {
		for _, r := range m.reasons {
			if n[r] == 0 || m.in != "" && !strings.Contains(text[r], m.in) {
				continue
			}
			v.means("%s", m.means)
			if shown++; shown <= 3 {
				v.figure("%s %s: %s", r, times(plain(n[r])), shortened(text[r]))
			}
			delete(warnings, r)
		}
	}
	if kills := slices.DeleteFunc(slices.Clone(all),
		func(e clusterEvent) bool { return !strings.EqualFold(e.reason, "Killing") }); len(kills) > 0 {
		v.figure("the kubelet ended a container %s%s", times(plain(sumEvents(kills))), eventsApart(kills))
		v.means("the kubelet ended a container%s; why is not in these events: a failed probe, a change of the pod, or an eviction", again(all))
		v.next("kubectl describe pod POD", "Unhealthy among its events: a probe that failed")
	}
	for _, r := range attach.Largest(warnings)[:min(2, len(warnings))] {
		v.figure("%s %s: %s", r, times(plain(warnings[r])), shortened(text[r]))
	}
	if len(v.Figures) == 0 {
		v.figure("%s, none of them a warning", attach.Plural(len(all), "event"))
		v.unsure = false
	}
	if n["OOMKilling"]+n["Evicted"]+n["SystemOOM"] > 0 {
		v.next("kubectl describe pod POD", "limits, and why its containers ended")
	}
	v.means("it says what the cluster did, and nothing of a request's time")
}

// again says that a container was started, too.
func again(all []clusterEvent) string {
	if slices.ContainsFunc(all, func(e clusterEvent) bool { return strings.EqualFold(e.reason, "Started") }) {
		return " and started it again: nobody answers in between"
	}
	return ""
}

func sumEvents(all []clusterEvent) (n float64) {
	for _, e := range all {
		n += e.n
	}
	return n
}

// eventsApart is the time from one event to the next, where each has its date.
func eventsApart(all []clusterEvent) string {
	if len(all) < 2 || all[0].at.IsZero() || all[len(all)-1].at.IsZero() {
		return ""
	}
	d := all[len(all)-1].at.Sub(all[0].at) / time.Duration(len(all)-1)
	if d <= 0 {
		return ""
	}
	return fmt.Sprintf(", %s apart", d)
}

// shortened keeps the start of what a message says.
func shortened(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 200 {
		return string(r[:197]) + "..."
	}
	return text
}

// kubelet is what the kubelet logs of things that took it long.
var kubelet = &attach.Kind{
	Name: "kubelet log", Scattered: true, Single: true,
	Hints: []string{"du and find on following dirs took", "PLEG is not healthy",
		"ousekeeping took longer", "eviction manager: ", "ExecSync "},
	Marks: []string{"du and find on following dirs took", "PLEG is not healthy",
		"ousekeeping took longer", "eviction manager: ", "ExecSync "},
	Claim: func(lines []paste.Line) int {
		return logRun(lines, func(l paste.Line) bool { return kubeletLine.MatchString(l.Text) })
	},
	Read: readKubelet,
}

var kubeletLine = pattern.New(`du and find on following dirs took ([\dhmsµu.]+)|PLEG is not healthy: pleg was last seen active ([\dhmsµu.]+) ago|[Hh]ousekeeping took longer than (?:expected.*actual="?)?([\dhmsµu.]+)` +
	`|eviction manager: (attempting to reclaim [\w-]+|must evict pod\(s\) to reclaim [\w-]+|pod \S+ evicted|thresholds met)` +
	`|ExecSync (for \\?"[0-9a-f]{12,64}\\?" failed|cmd from runtime service failed" err=)`)

// late is how the runtime says that a command did not end in its time.
var late = pattern.New(`DeadlineExceeded|deadline exceeded|timeout \S+ exceeded`)

func readKubelet(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title, v.unsure = "kubelet log, "+attach.Plural(len(p.Lines), "line"), true
	var walks, pleg, house []float64
	evicts, execs, slow := "", 0, 0
	for _, l := range p.Lines {
		m := kubeletLine.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		for i, to := range []*[]float64{&walks, &pleg, &house} {
			if d, err := time.ParseDuration(m[i+1]); err == nil {
				*to = append(*to, d.Seconds())
			}
		}
		evicts = cmp.Or(m[4], evicts)
		if m[5] != "" {
			execs++
			if late.MatchString(l.Text) {
				slow++
			}
		}
	}
	for _, o := range []struct {
		of    []float64
		what  string
		means string
	}{
		{pleg, "the container runtime had not been listed for %.3g s at most (PLEG, %s)",
			"the container runtime does not answer the kubelet in time: it hangs, the disk below it is slow, or the node lacks CPUs; the node may be taken for not ready"},
		{walks, "to walk the files of a container took %.3g s at most (du and find, %s)",
			"to walk the files of containers takes seconds: there are very many files, or the disk below the container runtime is slow or busy"},
		{house, "housekeeping took %.3g s at most (%s)",
			"the kubelet's housekeeping takes longer than it should: many containers, a slow disk, or no CPU for it"},
	} {
		if len(o.of) > 0 {
			v.figure(o.what, slices.Max(o.of), attach.Plural(len(o.of), "line"))
			v.means("%s", o.means)
		}
	}
	if len(walks)+len(pleg)+len(house) > 0 {
		v.candidate("disk-wait", 0, v.Figures[0])
		v.candidate("cpu-contention", 0, v.Figures[0])
		v.next("iostat -x 1 5; cat /proc/pressure/io /proc/pressure/cpu",
			"whether the disk below the container runtime is busy")
	}
	if evicts != "" {
		v.figure("eviction manager: %s", evicts)
		v.means("the kubelet is short of something and ends pods for it")
	}
	v.execs(execs, slow)
	v.not("that the kubelet's own walk is the cause: it only feels the same disk")
	v.means("the kubelet's log says nothing of a request's time")
	return v.done()
}

// execs tells commands that could not be run in containers: probes, as a rule.
func (v *verdict) execs(n, slow int) {
	switch {
	case n == 0:
		return
	case slow > 0:
		v.figure("%s in a container failed (ExecSync), %d of them for not ending in time",
			attach.Plural(n, "command"), slow)
		v.means("a command in a container, a probe as a rule, did not end in its time: a symptom of what the container waits for, and no cause")
	default:
		v.figure("%s in a container could not be run (ExecSync)", attach.Plural(n, "command"))
		v.means("a command, a probe as a rule, could not be run in a container: as a rule the container was ending, so it may follow from that end and need not be its cause")
	}
	v.not("why the container ended, nor that anything was slow")
}
