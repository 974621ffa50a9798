package systool

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// nmon is the file that nmon -f writes: a section's name, a sample's number and figures in a line.
var nmon = &attach.Kind{
	Name:  "nmon",
	Hints: []string{"AAA,", "ZZZZ,T", "CPU_ALL,", "CPU001,", "BBBP,", "PROC,"},
	Claim: claimNmon,
	Read:  readNmon,
}

var (
	nmonLine = pattern.New(`^(AAA|BBB[A-Z]?|ZZZZ|UARG|[A-Z][A-Z0-9_]{1,20}),`)
	nmonSure = pattern.New(`^(AAA,progname,|ZZZZ,T\d{4},\d\d:\d\d:\d\d,|(?:CPU_ALL|CPU\d{2,3}|PROC|MEM|VM),T\d{4},)`)
)

func claimNmon(lines []paste.Line) int {
	sure := 0
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		if nmonSure.MatchString(text) {
			sure++
		}
		return nmonLine.MatchString(text)
	})
	return attach.ClaimIf(sure >= 2, n)
}

// nmonSection is the names of a section's columns, and the samples of each.
type nmonSection struct {
	names []string
	rows  [][]string
}

// median of a column; -1: it has none.
func (s *nmonSection) median(names ...string) float64 {
	for i, n := range s.names {
		for _, want := range names {
			if !strings.EqualFold(n, want) {
				continue
			}
			var all []float64
			for _, r := range s.rows {
				if i < len(r) {
					if f, ok := number(r[i]); ok {
						all = append(all, f)
					}
				}
			}
			if len(all) > 0 {
				return attach.Median(all)
			}
		}
	}
	return -1
}

var nmonSample = pattern.New(`^T\d{4,}$`)

func readNmon(p *attach.Part) attach.Reading {
	v := &verdict{}
	all := map[string]*nmonSection{"CPU_ALL": {}, "PROC": {}, "VM": {}, "DISKBUSY": {}}
	said := map[string]string{}
	for _, l := range p.Lines {
		f := strings.Split(strings.TrimSpace(l.Text), ",")
		switch s := all[f[0]]; {
		case f[0] == "AAA" && len(f) > 2:
			said[f[1]] = f[2]
		case s == nil || len(f) < 3:
		case nmonSample.MatchString(f[1]):
			s.rows = append(s.rows, f[2:])
		default:
			s.names = f[2:]
		}
	}
	v.Who.Host = said["host"]
	cpu, procs, vm := all["CPU_ALL"], all["PROC"], all["VM"]
	if len(cpu.names) == 0 { // its head was cut off: nmon for Linux always has these first
		cpu.names = []string{"User%", "Sys%", "Wait%", "Idle%", "Steal%"}
	}
	n := len(cpu.rows)
	v.Title = "nmon, " + samples(n)
	if n == 0 {
		v.unsure = true
		v.means("no sample of the CPUs is in it")
		return v.done()
	}
	c := cpuUse{us: cpu.median("User%"), sy: cpu.median("Sys%"), wa: cpu.median("Wait%"),
		id: cpu.median("Idle%"), st: max(0, cpu.median("Steal%")),
		samples: n, runnable: procs.median("Runnable"), blocked: procs.median("Blocked")}
	c.cpus, _ = whole(cmp.Or(said["cpus"], "0"))
	v.figure("CPUs: %s (medians)", c)
	if c.runnable >= 0 {
		v.figure("%s threads run or want to, %s wait for a disk (medians)", plain(c.runnable), plain(c.blocked))
	}
	if d := all["DISKBUSY"]; len(d.names) > 0 {
		most, name := -1.0, ""
		for _, disk := range d.names {
			if busy := d.median(disk); busy > most {
				most, name = busy, disk
			}
		}
		v.figure("the busiest disk is %s: %s %% (median)", name, plain(most))
	}
	if in, out := vm.median("pswpin"), vm.median("pswpout"); in > 0 || out > 0 { // pages a second
		v.swapping(in*4096, max(0, out)*4096, n,
			fmt.Sprintf("swap in %s/s, out %s/s", bytes(in*4096), bytes(max(0, out)*4096)))
	}
	v.Glance = n < enoughSamples
	c.judge(v)
	v.ease("CPUs and swap are at ease in these samples")
	v.not("a busy disk may be fast, and a machine at ease may hold a service which waits for a lock or for another server")
	return v.done()
}

// pmstat is PCP's vmstat. Its CPUs have neither iowait nor steal.
var pmstat = grid{name: "pmstat", heads: []string{"loadavg memory swap io system cpu",
	"1 min swpd free buff cache pi po bi bo in cs us sy id"}, notes: pattern.New(`^@ \w{3} \w{3} +\d+ `),
	row: func(f []string) bool {
		if len(f) != 14 || !numeric(f[:1]) {
			return false
		}
		for _, c := range f {
			if _, ok := size(c, 1); !ok && c != "?" {
				return false
			}
		}
		return true
	}, read: readPmstat}

func readPmstat(v *verdict, rows [][]string) {
	column := func(i int) float64 {
		var all []float64
		for _, f := range rows {
			if s, ok := size(f[i], 1); ok {
				all = append(all, s)
			}
		}
		return attach.Median(all)
	}
	load := column(0)
	v.figure("CPUs: %s %% user, %s %% system, %s %% idle (medians)", plain(column(11)),
		plain(column(12)), plain(column(13)))
	v.figure("load %s", fixed(load))
	in, out := column(5), column(6)
	if in+out > 0 {
		v.swapping(in*4096, out*4096, len(rows), fmt.Sprintf("%s pages/s from swap, %s to it", plain(in), plain(out)))
	}
	if column(13) >= 30 && !v.has() && len(rows) >= enoughSamples {
		v.unsure = false
		v.means("the CPUs had room, and nothing was swapped")
	}
	v.means("how busy the CPUs were: who waited for them is not in it")
	v.not("neither iowait nor steal is in it")
	v.next("vmstat 1 10", "r, wa and st: whether threads wait for CPUs or disks")
}

// pmval is PCP's values of one metric.
var pmval = &attach.Kind{
	Name:  "pmval",
	Hints: []string{"metric: "},
	Claim: func(lines []paste.Line) int {
		heads := 0
		n := attach.ClaimWhile(lines, func(i int, text string) bool {
			t := strings.TrimSpace(text)
			if pmvalHead.MatchString(t) {
				heads++
				return true
			}
			return heads >= 3 && len(t) < 240
		})
		if heads < 3 {
			return 0
		}
		for i, l := range lines[:n] { // prose below it is not its own
			if t := strings.TrimSpace(l.Text); t != "" && !pmvalHead.MatchString(t) &&
				!pmvalRow(fields(t)) && i > heads+3 {
				return i
			}
		}
		return n
	},
	Read: func(p *attach.Part) attach.Reading {
		v := &verdict{}
		v.unsure = true
		said := map[string]string{}
		rows := 0
		for _, l := range p.Lines {
			t := strings.TrimSpace(l.Text)
			if m := pmvalHead.FindStringSubmatch(t); m != nil {
				said[m[1]] = m[2]
			} else if pmvalRow(fields(t)) {
				rows++
			}
		}
		v.Who.Host = said["host"]
		v.Title = "pmval " + said["metric"] + ", " + samples(rows)
		v.figure("metric %s, %s", said["metric"], cmp.Or(said["semantics"], "of unknown semantics"))
		v.figure("unit: %s", cmp.Or(said["units"], "not said"))
		v.means("it prints one metric of PCP: what it means the metric's name says, and nothing here judges it")
		v.not("a counter's value is a rate here, and an instantaneous one is a glance")
		v.next("pmstat -t 1 -s 10", "what the whole machine does")
		r := v.done()
		r.State = attach.Context
		return r
	},
}

var pmvalHead = pattern.New(`^(metric|archive|host|start|end|semantics|units|samples|interval): +(.*)$`)

// pmvalRow is a row of values, with a time before it where they are of an archive.
func pmvalRow(f []string) bool {
	figures := 0
	for _, c := range f {
		if _, ok := number(c); ok || c == "?" {
			figures++
		}
	}
	return figures > 0 && len(f)-figures <= 1
}
