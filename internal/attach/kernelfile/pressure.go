package kernelfile

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// Facts of pressure stall information: the share of the last minute, 0..1, of a resource: cpu,
// memory, io, irq, or "" where the paste does not say which.
const (
	FactPressureSome attach.FactName = "/psi/some/avg60:share"
	FactPressureFull attach.FactName = "/psi/full/avg60:share"
)

var pressure = &attach.Kind{
	Name: "PSI", Hints: []string{"avg10=", ":", "/proc/pressure/", ".pressure"},
	Claim: starting("a-z/=A-Z[$#0-9-", 200, repeated(func(lines []paste.Line) int {
		sure := false
		n := run(lines, func(text string) bool {
			text = androidText(text)
			_, _, ok := pressureLine(text)
			sure = sure || ok
			return ok || resourceTitle(text) != ""
		})
		for n > 0 && resourceTitle(androidText(lines[n-1].Text)) != "" {
			n-- // the title of what is not here
		}
		return attach.ClaimIf(sure, n)
	})),
	Read: readPressure,
}

// stall is one line of a file of pressure.
type stall struct {
	resource string // "" where nothing says which
	place    string // the path or the heading that it stands under; "": none
	kind     string // some or full
	avg      [3]float64
	total    float64 // us
	hasTotal bool
}

// pressureLine reads "some avg10=0.00 avg60=0.00 avg300=0.00 total=123", also with a path in front
// as grep writes it. A total that was cut off is no matter.
func pressureLine(line string) (at string, s stall, ok bool) {
	f := strings.Fields(line)
	if len(f) < 3 {
		return "", s, false
	}
	if len(f) > 3 && strings.HasSuffix(f[0], ":") { // "io: some avg10=..."
		at, f = strings.TrimSuffix(f[0], ":"), f[1:]
	}
	s.kind = f[0]
	if i := strings.LastIndexByte(f[0], ':'); i >= 0 {
		at, s.kind = f[0][:i], f[0][i+1:]
	}
	if s.kind != "some" && s.kind != "full" {
		return "", s, false
	}
	for i, key := range []string{"avg10=", "avg60=", "avg300="} {
		if i+1 >= len(f) {
			return at, s, i > 0
		}
		text, is := strings.CutPrefix(f[i+1], key)
		v, err := strconv.ParseFloat(text, 64)
		if !is || err != nil || !(v >= 0) || v > 1e6 {
			return "", s, false
		}
		s.avg[i] = v / 100
	}
	if len(f) > 4 {
		text, is := strings.CutPrefix(f[4], "total=")
		v, err := strconv.ParseUint(text, 10, 62)
		s.total, s.hasTotal = float64(v), is && err == nil
	}
	return at, s, true
}

// impossible reports whether a share is more than all of the time.
func (s stall) impossible() bool { return max(s.avg[0], s.avg[1], s.avg[2]) > 1.005 }

// resourceOf says by a path or a title which resource it names.
func resourceOf(text string) string {
	text = strings.TrimSuffix(strings.ToLower(path.Base(strings.Trim(text, " \t:=<>#[]()`*-"))), ".pressure")
	switch text {
	case "cpu", "memory", "io", "irq":
		return text
	case "mem":
		return "memory"
	}
	return ""
}

// resourceTitle reads a line that names a resource and nothing else: "cpu:", "/proc/pressure/io",
// "==> memory.pressure <==".
//
// A heading may have words around the path: "----- Output from /proc/pressure/io -----".
func resourceTitle(text string) string {
	if len(text) > 160 {
		return ""
	}
	words := strings.Fields(strings.Trim(text, " =<>"))
	if len(words) == 1 {
		return resourceOf(text)
	}
	found := ""
	for _, w := range words[:min(len(words), 8)] {
		if strings.Contains(w, "/proc/pressure/") || strings.HasSuffix(strings.TrimRight(w, ":"), ".pressure") {
			if r := resourceOf(w); r != "" && found == "" {
				found = r
			} else {
				return ""
			}
		}
	}
	return found
}

// stalls reads all lines of a part, and finds out by titles, paths and the command whose they are.
func pressureStalls(p *attach.Part) (out []stall, cgroup bool) {
	var named []string
	for _, word := range strings.Fields(cmp.Or(p.Path, p.Command)) {
		word = strings.Trim(word, `;&"'`)
		if strings.HasSuffix(word, ".pressure") || strings.Contains(word, "/proc/pressure/") {
			named = append(named, word)
		}
	}
	// In /proc/pressure itself the name alone is enough: "cat io".
	if f := strings.Fields(p.Command); len(named) == 0 && len(f) == 2 && f[0] == "cat" && resourceOf(f[1]) != "" {
		named = f[1:]
	}
	cgroup = slices.ContainsFunc(named, func(w string) bool { return strings.HasSuffix(w, ".pressure") })
	if len(named) == 1 && strings.ContainsAny(named[0], "*?{") {
		named = nil
	}
	title := ""
	if f := strings.Fields(p.Title); len(named) == 0 && len(f) > 0 && len(f) <= 8 {
		for _, w := range f {
			cgroup = cgroup || strings.HasSuffix(strings.TrimRight(w, ":`"), ".pressure") &&
				!strings.Contains(w, "/proc/")
			if r := resourceOf(w); r != "" && title == "" {
				title = r
			}
		}
	}
	block, heading := -1, ""
	for _, l := range p.Lines {
		text := androidText(l.Text)
		if r := resourceTitle(text); r != "" {
			title, heading, block = r, text, -2
			cgroup = cgroup || strings.Contains(text, ".pressure")
			continue
		}
		at, s, ok := pressureLine(text)
		if !ok {
			continue
		}
		if block != -2 && (s.kind == "some" || block < 0) {
			block++
			if block > 0 && len(named) == 0 {
				title, heading = "", ""
			}
		}
		s.resource, s.place = title, heading
		if block >= 0 && len(named) > 0 { // one that ran again prints the same files again
			s.place = named[block%len(named)]
			s.resource = resourceOf(s.place)
		}
		if at != "" {
			s.resource, s.place = resourceOf(at), at
			cgroup = cgroup || strings.HasSuffix(at, ".pressure")
		}
		out = append(out, s)
	}
	guessResource(out)
	return out, cgroup
}

// guessResource names resources that only the content tells. For the host, kernels from 5.13 on
// print a "full" of cpu that is always 0, and earlier ones none, while other files have both. irq
// has "full" alone: that is told behind a whole file, since the first line of a paste may be cut
// off. Three files in a row are in the order of the names: cpu, io, memory.
func guessResource(all []stall) {
	var starts []int
	for i := range all {
		if all[i].resource != "" {
			return
		}
		if all[i].kind == "some" || i == 0 || all[i-1].kind == "full" {
			starts = append(starts, i)
		}
	}
	end := func(k int) int {
		if k+1 < len(starts) {
			return starts[k+1]
		}
		return len(all)
	}
	whole := false // some file has both lines, so nobody chose one kind of them
	for k, from := range starts {
		whole = whole || end(k)-from == 2
	}
	for k, from := range starts {
		block, r := all[from:end(k)], ""
		switch {
		case block[0].kind == "full":
			if whole && k > 0 {
				r = "irq"
			}
		case whole && len(starts) > 1 && len(block) == 1,
			len(block) == 2 && block[0].total > 1e6 && block[1].hasTotal && block[1].total == 0:
			r = "cpu"
		}
		for i := range block {
			block[i].resource = r
		}
	}
	if n := len(starts); (n == 3 || n == 4) && all[0].resource == "cpu" {
		for k, r := range []string{"cpu", "io", "irq", "memory"} {
			if n == 3 {
				r = []string{"cpu", "io", "memory", ""}[k]
			}
			for i := 0; k < n && i < end(k)-starts[k]; i++ {
				all[starts[k]+i].resource = r
			}
		}
	}
}

// What counts, as the share of the time in which somebody waited. Threads that are ready and wait
// for a CPU are no loss as long as the waits are short, so for CPUs more counts.
var pressureLeast = map[string][2]float64{ // some, full
	"cpu": {0.25, 0.10}, "memory": {0.05, 0.02}, "io": {0.10, 0.05}, "irq": {1, 0.05}, "": {0.05, 0.02},
}

// mostTotal is more than any machine has run: 20 years, in us.
const mostTotal = 20 * 365 * 86400 * 1e6

// pressureCauses are the causes that pressure on a resource fits.
var pressureCauses = map[string][]string{
	"cpu": {"cpu-contention", "runqueue-saturation"}, "memory": {"direct-reclaim", "page-fault"},
	"io": {"disk-wait"}, "irq": {"softirq"},
}

func readPressure(p *attach.Part) attach.Reading {
	all, cgroup := pressureStalls(p)
	r := attach.Reading{Title: "pressure stall information (PSI) of the host", State: attach.Healthy}
	switch {
	case cgroup:
		r.Title = "pressure stall information (PSI) of a cgroup"
	case !hostPressure(p):
		r.Title = "pressure stall information (PSI); of the host or of a cgroup it does not say"
	}
	var high []string
	worst := -1.0
	readings := readingsOf(all)
	for _, s := range readings {
		name := s.name(readings)
		text := s.text(name, p)
		fact := FactPressureSome
		if s.kind == "full" {
			fact = FactPressureFull
		}
		if !s.impossible() {
			r.Facts = append(r.Facts, attach.Fact{Name: fact, Value: s.avg[1], Of: s.resource})
		}
		least := pressureLeast[s.resource][0]
		if s.kind == "full" {
			least = pressureLeast[s.resource][1]
		}
		top := max(s.avg[0], s.avg[1], s.avg[2], s.most)
		if weight := top / least; weight > worst {
			worst = weight
			r.Figures = append([]string{text}, r.Figures...)
		} else {
			r.Figures = append(r.Figures, text)
		}
		if s.impossible() {
			r.Flaws = append(r.Flaws, fmt.Sprintf("%s, %s: a share above 100 %% is not possible", name, s.kind))
			r.State = attach.CannotTell
			continue
		}
		if top < least || s.resource == "cpu" && s.kind == "full" && !cgroup {
			continue
		}
		r.State = attach.CannotTell
		level := fmt.Sprintf("%s, %s%s)", s.kind, percent(top), overNow(s.stall))
		if n := len(high) - 1; n >= 0 && strings.HasPrefix(high[n], name+" (") {
			high[n] = strings.TrimSuffix(high[n], ")") + "; " + level
		} else {
			high = append(high, name+" ("+level)
		}
		for _, cause := range causesOf(s.stall, cgroup) {
			if !slices.ContainsFunc(r.Signs, func(x attach.Sign) bool { return x.Cause == cause }) {
				r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate,
					Share: top, Proof: []string{text}})
			}
		}
	}
	if i := slices.IndexFunc(all, func(s stall) bool { return s.total > mostTotal }); i >= 0 {
		r.Figures = append([]string{fmt.Sprintf("the total of %s %s is %s years, which no machine has run: that counter is broken", all[i].resource, all[i].kind, number(math.Round(all[i].total/1e6/86400/365)))}, r.Figures...)
	}
	r.Not = pressureNot(all, cgroup)
	if len(high) == 0 && slices.ContainsFunc(all, stall.impossible) {
		r.Means = "Shares above 100 % are of no kernel: nothing follows from them."
		return r
	}
	if len(high) == 0 {
		r.Means = "Tasks waited for little of the time: no resource named here is short."
		r.Signs = ruledOut(all, cgroup)
		return r
	}
	r.Means = "Tasks wait for " + strings.Join(high, ", ") +
		"; whose, and whether requests wait with them, it does not say."
	r.Next = []attach.Next{{Command: "whystall diagnose --pid PID", Why: "what the service's own threads wait for"}}
	return r
}
