package kernelfile

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
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

// fields are the lines of one status, by name.
type fields map[string]string

// statuses divides a part: a name that comes again is of another process, thread or moment.
func statuses(p *attach.Part) (all []fields) {
	for _, l := range p.Lines {
		name, value, ok := strings.Cut(strings.TrimSpace(l.Text), ":")
		if !ok {
			continue
		}
		if len(all) == 0 || all[len(all)-1].has(name) {
			all = append(all, fields{})
		}
		all[len(all)-1][name] = strings.TrimSpace(value)
	}
	return all
}

func (v fields) has(name string) bool { _, ok := v[name]; return ok }

// size is a field in bytes.
func (v fields) size(name string) float64 {
	_, b, _ := pair(name + ": " + v[name])
	return b
}

// thread reports whether it is of a thread other than the process' first.
func (v fields) thread() bool { return v["Pid"] != "" && v["Tgid"] != "" && v["Pid"] != v["Tgid"] }

// whose is how a sentence calls the thread that a status is of.
func (v fields) whose() string {
	switch {
	case v.thread():
		return "this thread"
	case v["Pid"] == "" || v["Tgid"] == "":
		return "its thread"
	}
	return "its first thread"
}

func readStatus(p *attach.Part) attach.Reading {
	all := statuses(p)
	if len(all) == 0 {
		return attach.Reading{Title: "status of a process", State: attach.CannotTell}
	}
	if len(all) > 1 {
		return readStatuses(all)
	}
	return readOneStatus(p, all[0])
}

// readStatuses reads several: those of a process' threads, of several processes, or of one twice.
func readStatuses(all []fields) attach.Reading {
	r := attach.Reading{State: attach.CannotTell, Boot: true, Glance: true,
		Title: plural(len(all), "status", "statuses") + ", of different processes, threads or moments",
		Means: "It shows what each has and may use; nothing in it is lost time.",
		Not:   "how often they switch now, nor how long each was in its state: that is one moment"}
	same := func(field string) bool {
		return all[0][field] != "" && !slices.ContainsFunc(all, func(v fields) bool { return v[field] != all[0][field] })
	}
	first, last := all[0], all[len(all)-1]
	switch {
	case same("Pid"):
		r.Title = fmt.Sprintf("status of %s (pid %s), %d readings", printed(last["Name"]), printed(last["Pid"]), len(all))
		r.Who.Name = printed(last["Name"])
		r.Who.PID, _ = strconv.Atoi(cmp.Or(last["Tgid"], last["Pid"]))
		for _, f := range []struct{ name, noun string }{{"VmRSS", "resident"}, {"VmSwap", "swapped out"}} {
			if first.has(f.name) && last.has(f.name) {
				r.Figures = append(r.Figures, fmt.Sprintf("%s %s at first, %s at last", mem(first.size(f.name)), f.noun, mem(last.size(f.name))))
			}
		}
		vol := float(last["voluntary_ctxt_switches"]) - float(first["voluntary_ctxt_switches"])
		non := float(last["nonvoluntary_ctxt_switches"]) - float(first["nonvoluntary_ctxt_switches"])
		if last.has("nonvoluntary_ctxt_switches") && vol >= 0 && non >= 0 {
			r.Figures = append(r.Figures, fmt.Sprintf("%s voluntary and %s involuntary switches of %s between them", number(vol), number(non), last.whose()))
		}
		return r
	case same("Tgid"):
		r.Title = fmt.Sprintf("status of %d threads of pid %s", len(all), printed(first["Tgid"]))
		r.Who.PID, _ = strconv.Atoi(first["Tgid"])
	}
	states := map[string]int{}
	for _, v := range all {
		if state := v["State"]; state != "" {
			states[printed(state)]++
		}
	}
	var said []string
	for _, s := range attach.Largest(states) {
		said = append(said, fmt.Sprintf("%d in %s", states[s], s))
	}
	if len(said) > 0 {
		r.Figures = append(r.Figures, strings.Join(said[:min(4, len(said))], ", "))
	}
	if !same("Tgid") { // threads share their memory
		slices.SortStableFunc(all, func(a, b fields) int { return cmp.Compare(b.size("VmRSS"), a.size("VmRSS")) })
		for _, v := range all[:min(2, len(all))] {
			if v.has("VmRSS") {
				r.Figures = append(r.Figures, fmt.Sprintf("%s (pid %s): %s resident", printed(v["Name"]), printed(v["Pid"]), mem(v.size("VmRSS"))))
			}
		}
	}
	if len(r.Figures) == 0 {
		r.Figures = []string{plural(len(first), "field", "fields") + " of each, none of memory or state"}
	}
	return r
}

func readOneStatus(p *attach.Part, v fields) attach.Reading {
	size := v.size
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
			fmt.Sprintf("%s voluntary and %s involuntary switches of %s since its start (%s involuntary)", number(vol), number(non), v.whose(), percent(ratio(non, vol+non))))
	}
	if len(r.Figures) == 0 {
		r.Figures = []string{plural(len(v), "field", "fields") + ", none of memory, threads or switches"}
	}
	r.Means = "It shows what the process has and may use; nothing in it is lost time."
	r.Not = "how often it switches now, nor that it lacked a CPU: an involuntary switch only says that another thread ran next"
	state, _, _ := strings.Cut(v["State"], " ")
	if state == "" {
		r.State = attach.Context
	}
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
		traced := ""
		if t := v["TracerPid"]; t != "" && t != "0" {
			traced = ", and pid " + printed(t) + " traces it"
		}
		who := v.whose()
		r.Means = fmt.Sprintf("%s was asleep in the kernel and could not be interrupted (D)%s: one glance does not say for how long, nor what it waits for.", strings.ToUpper(who[:1])+who[1:], traced)
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
func statusNotes(v fields) (out []string) {
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
