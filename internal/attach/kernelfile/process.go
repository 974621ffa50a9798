package kernelfile

import (
	"fmt"
	"math/bits"
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

var statusKnown = oneOf("Name Umask State Tgid Ngid Pid PPid TracerPid Uid Gid FDSize Groups NStgid NSpid NSpgid NSsid Kthread VmPeak VmSize VmLck VmPin VmHWM VmRSS RssAnon RssFile RssShmem VmData VmStk " +
	"VmExe VmLib VmPTE VmPMD VmSwap HugetlbPages CoreDumping THP_enabled untag_mask Threads SigQ SigPnd ShdPnd SigBlk SigIgn SigCgt CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp " +
	"Seccomp_filters Speculation_Store_Bypass SpeculationIndirectBranch Cpus_allowed Cpus_allowed_list Mems_allowed Mems_allowed_list voluntary_ctxt_switches nonvoluntary_ctxt_switches x86_Thread_features x86_Thread_features_locked")

var statusSure = oneOf("Tgid TracerPid FDSize VmPeak VmSize VmHWM VmRSS RssAnon VmData VmSwap voluntary_ctxt_switches nonvoluntary_ctxt_switches Cpus_allowed_list Cpus_allowed SigQ VmPTE VmLck")

var status = &attach.Kind{
	Name: "/proc/PID/status", Hints: []string{":"},
	Claim: starting("A-Zx", 9000, repeated(func(lines []paste.Line) int {
		sure := false
		n := run(lines, func(t string) bool {
			name, _, ok := strings.Cut(t, ":")
			sure = sure || ok && statusSure(name)
			return ok && statusKnown(name)
		})
		return attach.ClaimIf(sure, n)
	})),
	Read: readStatus,
}

func readStatus(p *attach.Part) attach.Reading {
	v := map[string]string{}
	for _, l := range p.Lines {
		name, value, ok := strings.Cut(strings.TrimSpace(l.Text), ":")
		if _, seen := v[name]; ok && (!seen || name != "Name") {
			v[name] = strings.TrimSpace(value)
		}
	}
	size := func(name string) float64 { _, b, _ := pair(name + ": " + v[name]); return b }
	r := attach.Reading{Title: "status of a process", State: attach.Healthy, Boot: true, Glance: true}
	r.Who.PID, _ = strconv.Atoi(v["Tgid"])
	if r.Who.PID == 0 {
		r.Who.PID = p.PID
	}
	if name := printed(v["Name"]); name != "" {
		r.Title = "status of " + name
		r.Who.Name = name
	}
	if r.Who.PID > 0 {
		r.Title += fmt.Sprintf(" (pid %d)", r.Who.PID)
	}
	if _, _, ok := pair("VmRSS: " + v["VmRSS"]); ok { // a person may have written about how much it was
		text := mem(size("VmRSS")) + " resident"
		if v["VmSwap"] != "" {
			text += ", " + mem(size("VmSwap")) + " swapped out"
		}
		if peak := size("VmHWM"); peak > size("VmRSS") {
			text += ", " + mem(peak) + " at its peak"
		}
		if shared := size("RssShmem"); shared > size("VmRSS")/2 {
			text += "; " + mem(shared) + " of what is resident is shared memory"
		}
		r.Figures = append(r.Figures, text)
		r.Facts = append(r.Facts, attach.Fact{Name: FactRSS, Value: size("VmRSS")},
			attach.Fact{Name: FactSwap, Value: size("VmSwap")})
	}
	if n, err := strconv.ParseFloat(v["Threads"], 64); err == nil {
		text := plural(int(n), "thread", "threads")
		if list := v["Cpus_allowed_list"]; list != "" {
			text += ", allowed on CPUs " + printed(list)
		}
		r.Figures = append(r.Figures, text)
		r.Facts = append(r.Facts, attach.Fact{Name: FactThreads, Value: n})
	}
	r.Figures = slices.Insert(r.Figures, min(1, len(r.Figures)), statusNotes(v)...)
	if vol, err := strconv.ParseFloat(v["voluntary_ctxt_switches"], 64); err == nil {
		non := float(v["nonvoluntary_ctxt_switches"])
		r.Facts = append(r.Facts, attach.Fact{Name: FactGaveUp, Value: vol}, attach.Fact{Name: FactLostCPU, Value: non})
		r.Figures = append(r.Figures,
			fmt.Sprintf("%s voluntary and %s involuntary switches of its first thread since its start (%s involuntary)", number(vol), number(non), percent(ratio(non, vol+non))))
	}
	if len(r.Figures) == 0 {
		r.Figures = []string{plural(len(v), "field", "fields") + ", none of memory, threads or switches"}
	}
	r.Means = "It shows what the process has and may use; nothing in it is lost time."
	r.Not = "how often it switches now, nor that it lacked a CPU: an involuntary switch only says that another thread ran next"
	state, _, _ := strings.Cut(v["State"], " ")
	switch {
	case state == "T" || state == "t":
		r.State = attach.CannotTell
		r.Means = "The process is stopped, by a signal or a debugger: it does nothing until it is continued."
		r.Signs = []attach.Sign{{Grade: attach.Outside,
			Where: "a signal or a debugger that stopped the process", Proof: []string{"State: " + printed(v["State"])}}}
		r.Next = []attach.Next{{Command: "grep -E 'State|TracerPid' /proc/PID/status",
			Why: "whether it is still stopped, and by whom"}}
	case state == "D":
		r.State = attach.CannotTell
		r.Means = "Its first thread was asleep in the kernel and could not be interrupted (D): one glance does not say for how long, nor what it waits for."
		if t := v["TracerPid"]; t != "" && t != "0" {
			r.Means = "Its first thread was asleep in the kernel and could not be interrupted (D), and pid " + printed(t) + " traces it: one glance does not say for how long, nor what it waits for."
		}
		r.Not = "that it waits for a disk: what the file calls disk sleep is any sleep that no signal ends"
		r.Next = []attach.Next{{Command: "cat /proc/PID/stack", Why: "what it sleeps in"}}
	case state == "Z":
		r.State = attach.CannotTell
		r.Means = "The process has ended, and its parent has not yet asked how (zombie): it does nothing."
	case size("VmSwap") >= hugeWorth && size("VmSwap") >= hugePart*size("VmRSS"):
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s of the process is swapped out: touching it takes major faults.", mem(size("VmSwap")))
		r.Signs = []attach.Sign{{Cause: "page-fault", Grade: attach.Risk, Proof: r.Figures[:1]}}
	}
	return r
}

// statusNotes says what else stops a process: who traces it, and signals that it has not taken.
func statusNotes(v map[string]string) (out []string) {
	if t := v["TracerPid"]; t != "" && t != "0" {
		out = append(out, "pid "+printed(t)+" traces it: a debugger or strace, which stops it at will")
	}
	if names := pendingSignals(v["SigPnd"], v["ShdPnd"]); len(names) > 0 {
		out = append(out, plural(len(names), "signal waits", "signals wait")+" for it to take up: "+
			strings.Join(names[:min(4, len(names))], ", "))
	}
	return out
}

// pendingSignals names the signals of masks, of which each bit is one.
func pendingSignals(masks ...string) (out []string) {
	var all uint64
	for _, hex := range masks {
		v, _ := strconv.ParseUint(hex, 16, 64)
		all |= v
	}
	for ; all != 0; all &= all - 1 {
		n := bits.TrailingZeros64(all) + 1
		text := strconv.Itoa(n)
		if name := signalNames[n]; name != "" {
			text += " (" + name + ")"
		}
		out = append(out, text)
	}
	return out
}

// signalNames are those of signals that stop, continue or end a process, on all but MIPS and SPARC.
var signalNames = map[int]string{1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 6: "SIGABRT", 9: "SIGKILL",
	14: "SIGALRM", 15: "SIGTERM", 17: "SIGCHLD", 18: "SIGCONT", 19: "SIGSTOP", 20: "SIGTSTP"}

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

func readSched(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "scheduler's figures of a thread", State: attach.Healthy, Boot: true}
	var lines []string
	for _, l := range p.Lines {
		t := strings.TrimSpace(l.Text)
		if m := schedHead.FindStringSubmatch(t); m != nil && r.Who.Name == "" {
			pid, _ := strconv.Atoi(m[2])
			r.Who.Name, r.Who.PID = printed(m[1]), pid
			r.Title = fmt.Sprintf("scheduler's figures of %s (pid %s)", printed(m[1]), m[2])
			continue
		}
		if _, _, ok := pair(t); ok {
			lines = append(lines, t)
		}
	}
	m := parsePairs(lines)
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
	readRunDelay(&r, ran, waited, m.get("se.statistics.wait_count", "wait_count"))
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

// What counts as a wait for CPUs over a life.
const (
	waitPart  = finding.QueuedForCPU
	waitLeast = 1e9 // ns
)

// readRunDelay says what run queue latency over a life means. Threads that are out of quota wait as
// well, by this count.
func readRunDelay(r *attach.Reading, ran, waited, times float64) {
	share := ratio(waited, ran+waited)
	figure := fmt.Sprintf("waited %s for a CPU, %s of the time in which it wanted one", dur(waited), percent(share))
	if times > 0 {
		figure += fmt.Sprintf(" (%s a time over %s)", dur(waited/times), plural(int(times), "time", "times"))
	}
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
