package kernelfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// Facts of a process.
const (
	FactThreads   attach.FactName = "/process/threads:threads"
	FactGaveUp    attach.FactName = "/process/switches/voluntary:switches"   // of one thread, since its start
	FactLostCPU   attach.FactName = "/process/switches/involuntary:switches" // the same
	FactWaitShare attach.FactName = "/process/sched/wait:share"              // of the time in which it wanted a CPU, since its start
)

// statLine is /proc/PID/stat: the name in brackets may hold anything, brackets and blanks included.
var statLine = pattern.New(`^(\d{1,9}) \((.{0,64})\) ([RSDTtZXIKWP]) ((?:-?\d+ ){30,55}-?\d+)$`)

var procPIDStat = &attach.Kind{
	Name: "/proc/PID/stat", Hints: []string{"("},
	Claim: func(lines []paste.Line) int {
		if text := lines[0].Text; text == "" || text[0] > '9' || strings.IndexByte(text, '(') > 12 {
			return 0
		}
		return run(lines, statLine.MatchString)
	},
	Read: func(p *attach.Part) attach.Reading {
		m := statLine.FindStringSubmatch(strings.TrimSpace(p.Lines[0].Text))
		f := []float64{0, 0, 0, 0} // the fields by their number in proc(5)
		for _, w := range strings.Fields(m[4]) {
			n := float(w)
			f = append(f, n)
		}
		pid, _ := strconv.Atoi(m[1])
		r := attach.Reading{
			Title: fmt.Sprintf("stat of %s (pid %d)", printed(m[2]), pid), State: attach.Healthy,
			Boot: true, Glance: true,
			Who: attach.Who{PID: pid, Name: printed(m[2]), ParentPID: int(f[4])},
			Figures: []string{
				fmt.Sprintf("%s user and %s system time since its start, at 100 ticks a second",
					dur(f[14]*1e7), dur(f[15]*1e7)),
				fmt.Sprintf("%s, %s resident at pages of 4 KiB",
					plural(int(f[20]), "thread", "threads"), mem(f[24]*pageSize)),
				fmt.Sprintf("%s major and %s minor faults since its start", number(f[12]), number(f[10])),
			},
			Facts: []attach.Fact{{Name: FactThreads, Value: f[20]}, {Name: FactRSS, Value: f[24] * pageSize}},
			Means: "Counters of the process' whole life: they show no rate and no lost time.",
			Not:   "how long it has been in state " + m[3] + ": that is one moment",
		}
		if len(p.Lines) > 1 {
			r.Title += fmt.Sprintf(", the first of %d lines", len(p.Lines))
		}
		if len(f) > 42 && f[42] > 0 {
			r.Figures = append(r.Figures, fmt.Sprintf("%s asleep for block devices since its start", dur(f[42]*1e7)))
		}
		return r
	},
}

// schedHead is the first line of /proc/PID/sched.
var schedHead = pattern.New(`^(.{1,64}) \((\d+), #threads: (\d+)\)$`)

var schedSure = oneOf("se.exec_start se.vruntime se.sum_exec_runtime se.statistics.wait_sum se.statistics.wait_max se.statistics.wait_count nr_voluntary_switches nr_involuntary_switches se.statistics.iowait_sum sum_exec_runtime wait_sum wait_max")

var schedKnown = hasPrefix("se. nr_ policy prio clock-delta mm-> numa_ total_numa sum_ wait_ sleep_ block_ iowait_ exec_max slice_max avg_ dl. ext. current_node uclamp effective_uclamp core_forceidle rt. node")

var procSched = &attach.Kind{
	Name: "/proc/PID/sched", Hints: []string{"#threads:", ":"},
	Claim: func(lines []paste.Line) int {
		sure := strings.Contains(lines[0].Text, "#threads:") && schedHead.MatchString(strings.TrimSpace(lines[0].Text))
		if !sure && !schedSure(firstName(lines[0].Text)) {
			return 0
		}
		return run(lines, func(t string) bool {
			name, _, ok := pair(t)
			if cut, rest, _ := strings.Cut(t, ":"); strings.TrimSpace(rest) == "" &&
				schedKnown(strings.TrimSpace(cut)) {
				return true // the paste ends before the value
			}
			return ok && schedKnown(name) && strings.Contains(t, ":") || schedHead.MatchString(t) ||
				strings.Trim(t, "-") == "" || strings.HasPrefix(t, "numa_faults ") ||
				strings.HasPrefix(t, "current_node")
		})
	},
	Read: readSched,
}

func firstName(text string) string {
	name, _, _ := pair(strings.TrimSpace(text))
	return name
}

// schedOf is the file of one thread: whose it is, and its figures.
type schedOf struct {
	name  string
	pid   string
	lines []string
}

// schedFiles divides a part: a first line starts the file of another thread, or a second reading.
func schedFiles(p *attach.Part) (all []schedOf) {
	for _, l := range p.Lines {
		t := strings.TrimSpace(l.Text)
		m := schedHead.FindStringSubmatch(t)
		if m != nil || len(all) == 0 {
			all = append(all, schedOf{})
		}
		last := &all[len(all)-1]
		if m != nil {
			last.name, last.pid = printed(m[1]), m[2]
		} else if _, _, ok := pair(t); ok {
			last.lines = append(last.lines, t)
		}
	}
	return slices.DeleteFunc(all, func(s schedOf) bool { return len(s.lines) == 0 })
}

// readSched reads one file, or of several that of the thread which waited most.
func readSched(p *attach.Part) attach.Reading {
	all := schedFiles(p)
	if len(all) == 0 {
		return attach.Reading{Title: "scheduler's figures of a thread", State: attach.CannotTell}
	}
	var worst attach.Reading
	most := -1.0
	for _, s := range all {
		r := s.read()
		share := 0.0
		for _, f := range r.Facts {
			if f.Name == FactWaitShare {
				share = f.Value
			}
		}
		if share > most {
			most, worst = share, r
		}
	}
	if len(all) > 1 {
		worst.Title = fmt.Sprintf("%s; of %d such files the one with the longest waits for a CPU, by share", worst.Title, len(all))
	}
	return worst
}

func (s schedOf) read() attach.Reading {
	r := attach.Reading{Title: "scheduler's figures of a thread", State: attach.Healthy, Boot: true}
	if s.name != "" {
		r.Who.Name = s.name
		r.Who.PID, _ = strconv.Atoi(s.pid)
		r.Title = fmt.Sprintf("scheduler's figures of %s (pid %s)", s.name, s.pid)
	}
	m := parsePairs(s.lines)
	ran, waited := m.get("se.sum_exec_runtime", "sum_exec_runtime")*1e6, m.get("se.statistics.wait_sum", "wait_sum")*1e6
	if ran > 0 {
		text := dur(ran) + " on a CPU since its start"
		// The CPU's clock starts with the machine, so the thread is no older than that.
		if clock := m.get("se.exec_start", "exec_start") * 1e6; clock > ran {
			text += ", by a clock that stands at " + age(clock)
		}
		r.Figures = append(r.Figures, text)
	}
	vol, non := m.get("nr_voluntary_switches"), m.get("nr_involuntary_switches")
	if vol+non > 0 {
		r.Facts = append(r.Facts, attach.Fact{Name: FactGaveUp, Value: vol}, attach.Fact{Name: FactLostCPU, Value: non})
		r.Figures = append(r.Figures,
			fmt.Sprintf("%s voluntary and %s involuntary switches since its start (%s involuntary)",
				number(vol), number(non), percent(ratio(non, vol+non))))
	}
	if io := m.get("se.statistics.iowait_sum", "iowait_sum") * 1e6; io > 0 {
		r.Figures = append(r.Figures, dur(io)+" asleep for disks since its start")
	}
	longest := schedLongest(m)
	if !m.has("se.statistics.wait_sum") && !m.has("wait_sum") && len(longest) > 0 {
		r.State = attach.CannotTell
		r.Figures = append(longest, r.Figures...)
		r.Means = "It has its longest waits since it started; how long it waited for a CPU in all is not in the paste."
		r.Not = "when these were, nor that they come again; sleep_max is only how long it had nothing to do"
		r.Next = []attach.Next{{Command: "cat /proc/PID/schedstat; sleep 10; cat /proc/PID/schedstat", Why: "its time on a CPU and its run queue latency of now"}}
		return r
	}
	if !m.has("se.statistics.wait_sum") && !m.has("wait_sum") {
		r.State = attach.CannotTell
		r.Means = "How long it waited for a CPU is not counted here (kernel.sched_schedstats is off)."
		r.Next = []attach.Next{{Command: "cat /proc/PID/schedstat; sleep 10; cat /proc/PID/schedstat", Why: "its time on a CPU and its run queue latency; they are always counted"}}
		return r
	}
	times := m.get("se.statistics.wait_count", "wait_count")
	if !m.has("se.sum_exec_runtime") && !m.has("sum_exec_runtime") {
		r.State = attach.CannotTell
		r.Figures = slices.Concat([]string{fmt.Sprintf("waited %s for a CPU since its start%s", dur(waited), aTime(waited, times))}, longest, r.Figures)
		r.Means = "How long it ran meanwhile is not in the paste (sum_exec_runtime): so no share follows, and whether it waited for much of its time cannot be told."
		r.Next = []attach.Next{{Command: "cat /proc/PID/schedstat; sleep 10; cat /proc/PID/schedstat", Why: "its time on a CPU and its run queue latency of now"}}
		return r
	}
	readRunDelay(&r, ran, waited, times)
	r.Figures = slices.Insert(r.Figures, 1, longest...)
	return r
}

// schedLongest are the longest waits of a thread since it started, which schedstats keep.
func schedLongest(m pairs) (out []string) {
	if top := m.get("se.statistics.wait_max", "wait_max") * 1e6; top > 0 {
		out = append(out, dur(top)+" was its longest wait for a CPU")
	}
	if top := m.get("se.statistics.block_max", "block_max") * 1e6; top > 0 {
		out = append(out, dur(top)+" was its longest sleep that nothing could interrupt (D)")
	}
	return out
}

// aTime is the mean of waits that were counted; "": they were not.
func aTime(waited, times float64) string {
	if times <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%s a time over %s)", dur(waited/times), plural(int(times), "time", "times"))
}

// What counts as a wait for CPUs over a life.
const (
	waitPart  = finding.QueuedForCPU
	waitLeast = 1e9 // ns
)

// readRunDelay says what run queue latency over a life means. Threads that are out of quota wait as
// well, by this count.
func readRunDelay(r *attach.Reading, ran, waited, times float64) {
	share := ratio(waited, ran+waited)
	figure := fmt.Sprintf("waited %s for a CPU, %s of the time in which it wanted one%s", dur(waited), percent(share), aTime(waited, times))
	r.Figures = append([]string{figure}, r.Figures...)
	r.Facts = append(r.Facts, attach.Fact{Name: FactWaitShare, Value: share})
	when := "Between the samples"
	r.Not = "who had the CPU meanwhile"
	if r.Boot {
		when = "Over its life"
		r.Not = "what happens now, and who had the CPU meanwhile: it is an average since the thread started"
	}
	r.Next = []attach.Next{{Command: "cat /proc/PID/schedstat; sleep 10; cat /proc/PID/schedstat",
		Why: "the share of now"}}
	if share < waitPart || waited < waitLeast {
		r.State, r.Next = attach.Healthy, nil
		r.Means = when + " it hardly waited for a CPU."
		if share >= waitPart {
			r.Means = fmt.Sprintf("%s it waited for a CPU for %s in all, which is little.", when, dur(waited))
		}
		return
	}
	r.State = attach.CannotTell
	r.Means = fmt.Sprintf("%s it waited for a CPU in %s of the time in which it wanted one: others had it, or its group was out of quota.", when, percent(share))
	for _, cause := range []string{"cpu-contention", "cpu-throttled"} {
		r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate, Share: share,
			Proof: []string{figure}})
	}
}

// readSchedstat reads files of a process' schedstat: run time, run queue latency, turns. Two of the
// same path are two samples.
func readSchedstat(files []file) (r attach.Reading) {
	first, last := schedstatOf(files[0]), schedstatOf(files[len(files)-1])
	r = attach.Reading{Title: "schedstat of a thread", Boot: true}
	if len(files) > 1 && files[0].path == files[len(files)-1].path && last[0] >= first[0] &&
		last[1] >= first[1] && last[2] >= first[2] {
		for i := range last {
			last[i] -= first[i]
		}
		r.Title, r.Boot = fmt.Sprintf("schedstat of a thread, %d samples", len(files)), false
	}
	readRunDelay(&r, last[0], last[1], last[2])
	r.Figures = append(r.Figures, dur(last[0])+" on a CPU")
	return r
}

func schedstatOf(f file) (v [3]float64) {
	for i, w := range strings.Fields(f.text()) {
		if i < 3 {
			v[i], _ = value(w)
		}
	}
	return v
}
