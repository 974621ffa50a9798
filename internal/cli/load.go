package cli

import (
	"cmp"
	"fmt"
	"path"
	"runtime/debug"
	"strings"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format"
	"github.com/whystall/whystall/internal/report"
	"github.com/whystall/whystall/internal/sched"
)

// loaded is what all files held.
type loaded struct {
	trace     *exectrace.Trace
	traceName string
	manifest  *evidence.Manifest // of the case with the trace or the kernel's records; nil without one
	kern      *kernel.Reader
	kernName  string
	threads   *sched.Timeline // what kern holds, once account has read it
	set       *evidence.Set
	env       map[string]string // of the target, from its case
	inputs    []report.Input
	target    report.Target
	gaps      []report.Gap // what a case lacks
	recorder  []string
	tiers     []report.Tier
	stories   bool // the slowest requests are wanted in full
	cost      *evidence.Cost
	toll      *evidence.Toll

	items    []loadedItem
	attached attachments
	cases    []*evidence.Case // open until the kernel's records have been read
}

// loadedItem is a small file, or a member of a case, to be gathered with the others.
type loadedItem struct {
	format.Item
	input int  // index in inputs
	whole bool // it is all of its input, not a member of a case or an archive
	known bool // some part of it is of a kind that people attach
}

func (in *loaded) close() {
	if in.trace != nil {
		in.trace.Close()
	}
	for _, c := range in.cases {
		c.Close()
	}
}

// nothing reports whether no input could be read, not even as a text that nothing knows.
func (in *loaded) nothing() bool {
	if len(in.attached.unknown) > 0 {
		return false
	}
	for _, i := range in.inputs {
		if i.Error == "" {
			return false
		}
	}
	return true
}

// load reads the files. A file that fails does not take the others with it: its error stands beside
// it.
func (con *console) load(files []string) *loaded {
	in := &loaded{attached: attachments{inputs: map[int]bool{}}}
	left := int64(maxItems)
	if con.getenv("GOMEMLIMIT") == "" { // texts are read in windows, which leave much behind
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(memoryLimit))
	}
	for _, name := range files {
		i, err := openInput(name, con.stdin, &left)
		if err == nil {
			err = in.add(i)
		}
		r := report.Input{Name: name}
		if i != nil {
			r.Name, r.Kind = i.name, string(i.kind)
			if i.known && i.members == 0 && weak(i.kind) && !same(i.parts, i.kind) {
				r.Kind = kindAttached
			}
		}
		if err != nil {
			r.Kind, r.Error = "", err.Error()
		}
		in.inputs = append(in.inputs, r)
	}
	in.gather()
	if v, ok := in.set.Fact("/go/version:text"); ok && in.target.GoVersion == "" {
		in.target.GoVersion = v.Text
	}
	return in
}

// add takes what one input holds.
func (in *loaded) add(i *input) error {
	for _, item := range i.items {
		in.items = append(in.items, loadedItem{item, len(in.inputs), i.c == nil && i.members == 0, i.known})
	}
	in.attached.parts = append(in.attached.parts, i.parts...)
	in.attached.unknown = append(in.attached.unknown, i.unknown...)
	in.attached.remarks = append(in.attached.remarks, i.remarks...)
	if len(i.parts) > 0 {
		in.attached.inputs[len(in.inputs)] = true
	}
	for _, note := range i.notes {
		if i.c == nil {
			in.attached.notes = append(in.attached.notes, note)
		}
		in.gaps = append(in.gaps, report.Gap{Source: i.name, Reason: note})
	}
	if i.c != nil {
		in.cases = append(in.cases, i.c)
		in.addCase(i.name, i.c)
	}
	if i.kern != nil && in.kern == nil {
		in.kern, in.kernName = i.kern, i.name
		if in.trace == nil {
			in.manifest = i.c.Manifest
		}
	}
	if i.trace == nil {
		return nil
	}
	if in.trace != nil {
		i.trace.Close()
		return fmt.Errorf("read %s: a second execution trace, and one is explained at a time: give it without %s", i.name, in.traceName)
	}
	in.trace, in.traceName = i.trace, i.name
	if i.c != nil {
		in.manifest = i.c.Manifest
	}
	return nil
}

// nameOf is what a person calls the process. The kernel cuts its name after 15 bytes, so the name
// of the program's file serves where it goes on.
func nameOf(t *evidence.Target) string {
	if base := path.Base(t.Exe); len(t.Comm) == 15 && strings.HasPrefix(base, t.Comm) {
		return base
	}
	return t.Comm
}

// addCase takes from a manifest what it says of the target and of what was not recorded.
func (in *loaded) addCase(name string, c *evidence.Case) {
	m := c.Manifest
	t := &m.Target
	url := cmp.Or(in.target.URL, t.URL)
	if in.target.PID == 0 && t.PID != 0 {
		in.target = report.Target{Service: t.Service, Name: nameOf(t), CPUs: m.Host.CPUs}
		in.env = t.Env
	}
	in.target.URL = url
	if c.Partial && m.Ended.UTC.IsZero() {
		in.gaps = append(in.gaps,
			report.Gap{Source: name,
				Reason: "the recording is still running or was killed: this explains what had been written by then"})
	}
	for _, s := range m.Doubts {
		in.gaps = append(in.gaps, report.Gap{Source: name, Reason: s})
	}
	said := map[string]bool{} // a collector's requests may all have one reason
	for _, l := range m.Collectors {
		if t.PID != 0 {
			in.tiers = append(in.tiers, report.Tier{Name: l.Name, State: l.State, Why: l.Why, Cost: l.Cost})
		}
		if l.State != evidence.Ready && l.Why != "" {
			said[l.Why] = true
			if l.State == evidence.Unavailable && t.PID != 0 {
				continue // the tiers show it
			}
			in.gaps = append(in.gaps, report.Gap{Source: "recording of " + l.Name, Reason: l.Why})
		}
	}
	for _, q := range m.Requests {
		if q.Lost != "" && !said[q.Lost] {
			in.gaps = append(in.gaps, report.Gap{Source: name, Reason: q.Member + ": " + q.Lost})
		}
	}
	in.cost, in.toll = cmp.Or(in.cost, m.Recorder), cmp.Or(in.toll, m.Toll)
	if len(m.Requests) == 0 {
		return
	}
	var bytes int64
	for _, q := range m.Requests {
		bytes += q.Bytes
	}
	cost := fmt.Sprintf("recording sent the target %d requests and fetched %s", len(m.Requests), finding.Bytes(bytes))
	if !m.Ended.UTC.IsZero() && !m.Begun.UTC.IsZero() {
		cost += fmt.Sprintf(" in %.1f s", m.Ended.UTC.Sub(m.Begun.UTC).Seconds())
	}
	in.recorder = append(in.recorder, cost)
}

// gather parses the small files together. Two readings of one profile are subtracted, whichever
// files they came in.
func (in *loaded) gather() {
	items := make([]format.Item, len(in.items))
	for i := range in.items {
		items[i] = in.items[i].Item
	}
	set, kinds, problems := format.Gather(items)
	in.set = set
	for _, r := range format.Env(in.env) {
		set.Add(r)
	}
	for _, g := range set.Gaps() {
		in.gaps = append(in.gaps, report.Gap{Source: g.Stream, Reason: g.Text})
	}
	for i, err := range problems {
		item := &in.items[i]
		switch input := &in.inputs[item.input]; {
		case item.known && err != nil:
			// Its parts are read all the same.
		case !item.whole && err != nil:
			in.gaps = append(in.gaps, report.Gap{Source: input.Name, Reason: err.Error()})
		case err != nil:
			input.Error = err.Error() + hint(kinds[i])
		case item.whole:
			input.Kind = string(kinds[i])
		}
	}
}

// hint is what to do about a file that whystall cannot use.
func hint(kind format.Kind) string {
	if kind == format.KindUnknown {
		return "; whystall explain --help says which are"
	}
	return ""
}

// kindAttached is what a file is called whose parts the attachments' kinds know.
const kindAttached = "attached text"
