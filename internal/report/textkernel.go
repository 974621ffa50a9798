package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
)

// What the kernel's records add to the text: below the proofs, since it is the same time once more, from the side of CPUs,
// memory and threads.

const (
	maxThreads  = 6
	maxBarriers = 3
	maxHops     = 8
)

// bar is a share as a strip of characters; what is there at all has at least one.
func (p *page) bar(part, whole int64) string {
	barWidth := 32 - max(0, min(26, Columns-p.columns))
	n := 0
	if whole > 0 && part > 0 {
		n = min(barWidth, max(1, int(float64(part)/float64(whole)*float64(barWidth)+0.5)))
	}
	return strings.Repeat("#", n) + strings.Repeat(".", barWidth-n)
}

func (p *page) cpus(r *Report) {
	c := r.Ledger.CPUs
	if c == nil {
		return
	}
	p.heading("CPUS", fmt.Sprintf("%s that it may use x %s", plural(int64(c.Allowed), "CPU", "CPUs"), finding.Duration(c.WallNS)))
	ns := make([]int64, len(c.Accounts))
	for i := range c.Accounts {
		ns[i] = c.Accounts[i].NS
	}
	if ns[len(ns)-1] == c.TotalNS {
		p.par("  ", "Who used them was not seen: that takes the switches of all tasks.")
		ns = nil
	}
	for i, n := range apportion(ns, 1000) {
		if ns[i] > 0 || i < 3 {
			p.line("  %7s  %s  %9s  %s", tenths(n)+" %", p.bar(ns[i], c.TotalNS), finding.Duration(ns[i]), c.Accounts[i].Cause)
		}
	}
	if s := c.beside(); s != "" {
		p.note("", s)
	}
	if s := whoList(c.Unused, c.Accounts[3].NS, 4); s != "" && c.Accounts[3].NS*100 >= c.TotalNS {
		p.note("its work waited on: ", s)
	}
}

// beside tells of quota and steal, which are no part of the sum.
func (c *CPUs) beside() string {
	var parts []string
	if c.Quota > 0 {
		s := fmt.Sprintf("quota %.3g %s", c.Quota, map[bool]string{true: "CPU", false: "CPUs"}[c.Quota <= 1])
		if c.QuotaAt != "" {
			s += " at " + c.QuotaAt
		}
		if c.QuotaNS > 0 && c.UsedNS > 0 {
			s += fmt.Sprintf(": %s of %s used, %s", finding.Duration(c.UsedNS), finding.Duration(c.QuotaNS), percent(share(c.UsedNS, c.QuotaNS)))
		}
		parts = append(parts, s)
	} else {
		parts = append(parts, "no CPU quota")
	}
	if c.StealNS > 0 {
		parts = append(parts, "taken from the host's CPUs by its hypervisor: "+finding.Duration(c.StealNS))
	}
	return strings.Join(parts, "; ")
}

// whoList names the largest of a list with their shares of whole.
func whoList(l []account.Instead, whole int64, n int) string {
	l = slices.Clone(l)
	slices.SortStableFunc(l, func(a, b account.Instead) int { return int(min(1, max(-1, b.NS-a.NS))) })
	var parts []string
	var rest int64
	for i, w := range l {
		if i < n && w.NS*100 >= whole {
			parts = append(parts, middle(Printable(shortFunc(w.Who)), 40)+" "+share2(w.NS, whole))
		} else {
			rest += w.NS
		}
	}
	if rest*100 >= whole && rest > 0 {
		parts = append(parts, "others "+share2(rest, whole))
	}
	return strings.Join(parts, ", ")
}

func (p *page) memory(r *Report) {
	m := r.Ledger.Memory
	if m == nil {
		return
	}
	p.heading("MEMORY", finding.Bytes(m.RSS)+" resident")
	for _, a := range m.rows() {
		p.line("  %7s  %s  %9s  %s", a.share, p.bar(a.Bytes, m.RSS), finding.Bytes(a.Bytes), a.Account)
	}
	if s := m.beside(); s != "" {
		p.note("", s)
	}
}

// beside is what is no part of the sum.
func (m *Memory) beside() string {
	var parts []string
	if m.Begin > 0 && m.End > 0 && m.Begin != m.End {
		parts = append(parts, fmt.Sprintf("%s at the begin, %s at the end", finding.Bytes(m.Begin), finding.Bytes(m.End)))
	}
	if m.Limit > 0 {
		parts = append(parts, "its limit is "+finding.Bytes(m.Limit))
	}
	if m.AnonHuge > 0 {
		parts = append(parts, finding.Bytes(m.AnonHuge)+" of it lie in huge pages")
	}
	return strings.Join(parts, "; ")
}

type memoryRow struct {
	MemoryRow
	share string
}

// rows are those that hold something, with shares that add up.
func (m *Memory) rows() (rows []memoryRow) {
	b := make([]int64, len(m.Accounts))
	for i := range m.Accounts {
		b[i] = m.Accounts[i].Bytes
	}
	for i, n := range apportion(b, 1000) {
		if b[i] != 0 {
			rows = append(rows, memoryRow{m.Accounts[i], tenths(n) + " %"})
		}
	}
	return rows
}

func (p *page) threads(r *Report) {
	k := r.Kernel
	if k == nil {
		return
	}
	p.heading("THREADS", plural(k.ThreadsSeen, "thread", "threads")+" seen")
	p.line("  %9s %9s %9s %9s  %7s  %s", "on CPU", "queued", "throttled", "blocked", "tid", "name")
	p.line("  %9s %9s %9s %9s  %7s  %s", finding.Duration(k.OnNS), finding.Duration(k.QueuedNS), finding.Duration(k.ThrottledNS), finding.Duration(k.BlockedNS), "", "all")
	for i := range k.Threads {
		t := &k.Threads[i]
		if i == maxThreads && len(k.Threads) > maxThreads+1 {
			p.line("  %41s  %d more (json)", "", k.ThreadsSeen-int64(i))
			break
		}
		p.line("  %9s %9s %9s %9s  %7d  %s", finding.Duration(t.OnNS), finding.Duration(t.QueuedNS), finding.Duration(t.ThrottledNS), finding.Duration(t.BlockedNS), t.TID, middle(Printable(t.Comm), p.columns-52))
	}
	p.note("", k.running())
	if s := k.who(); s != "" {
		p.note("while they were queued, on their CPU: ", s)
	}
	if s := k.ran(); s != "" {
		p.note("what they ran: ", s)
	}
	if s := k.standstills(); s != "" {
		p.note("", s)
	}
	for i := range k.Stretches {
		p.note("", k.Stretches[i].words())
	}
	if s := k.rest(); s != "" {
		p.note("", s)
	}
}

// standstills tells when the whole process wanted to run and did not.
func (k *Kernel) standstills() string {
	if len(k.Standstills) == 0 {
		return ""
	}
	more := ""
	if len(k.Standstills) == account.MostStandstills {
		more = " or more"
	}
	s := &k.Standstills[0]
	t := fmt.Sprintf("no thread ran for 10 ms or more, though one was queued or throttled, %s%s; at most %s", plural(int64(len(k.Standstills)), "time", "times"), more, finding.Duration(s.End-s.Begin))
	if s.UTC != nil {
		t += " at " + timeOfDay(*s.UTC)
	}
	return t + ", throttled " + share2(s.ThrottledNS, s.End-s.Begin)
}

// timeOfDay is the part of an RFC 3339 time that tells instants of a recording apart.
func timeOfDay(utc string) string {
	const day = len("2006-01-02 ")
	t := clock(utc, len("2006-01-02T15:04:05.000"))
	return t[min(day, len(t)):] + " UTC"
}

// running tells of the run queue.
func (k *Kernel) running() string {
	s := fmt.Sprintf("on a CPU or queued at once: %.1f on average, %d at most", k.RunnableAvg, k.RunnableMax)
	if k.GlanceAvg > 0 {
		s += fmt.Sprintf(" (a glance like top's would have seen %.1f running)", k.GlanceAvg)
	}
	s += fmt.Sprintf("; %s switches, %s of them involuntary", count(k.Switches), count(k.Involuntary))
	if k.StoodNS > 0 {
		s += "; for " + finding.Duration(k.StoodNS) + " none ran and one was throttled"
	}
	return s
}

// who names what ran instead of queued threads.
func (k *Kernel) who() string {
	var whole int64
	var l []account.Instead
	for _, n := range k.Neighbours {
		whole += n.NS
		who := fmt.Sprintf("%s (pid %d)", n.Comm, n.PID)
		if n.Own {
			who = "own threads"
		} else if n.PID == 0 {
			who = n.Comm
		}
		if i := slices.IndexFunc(l, func(w account.Instead) bool { return w.Who == who }); i >= 0 {
			l[i].NS += n.NS
			continue
		}
		l = append(l, account.Instead{Who: who, NS: n.NS})
	}
	if whole == 0 {
		return ""
	}
	return whoList(l, whole, 5)
}

// ran names what had the CPUs, where only samples tell.
func (k *Kernel) ran() string {
	var whole int64
	for _, w := range k.Ran {
		whole += w.NS
	}
	if whole == 0 {
		return ""
	}
	return whoList(k.Ran, whole, 5) + " (by " + plural(k.RanN, "sample", "samples") + ")"
}

func (s *Stretches) words() string {
	t := fmt.Sprintf("%s: %s", s.Kind, plural(s.N, "time", "times"))
	if s.NS > 0 {
		t += fmt.Sprintf(", %s in all", finding.Duration(s.NS))
	}
	if s.Max > 0 { // what is known by samples has none
		t += fmt.Sprintf(", %s at most", finding.Duration(s.Max))
	}
	if s.Order > 0 {
		t += fmt.Sprintf(", order %d", s.Order)
	}
	if len(s.Sites) > 0 && s.Sites[0].Func != "" {
		t += ", most in " + middle(Printable(shortFunc(s.Sites[0].Func)), 40)
	}
	return t
}

// rest tells of threads made, lateness and locks, where there is something to tell.
func (k *Kernel) rest() string {
	var parts []string
	if c := &k.Churn; c.Created > 0 {
		s := plural(c.Created, "thread", "threads") + " made"
		if c.FirstMax > 0 {
			s += fmt.Sprintf(" (to its first run p50 %s, at most %s)", finding.Duration(c.FirstP50), finding.Duration(c.FirstMax))
		}
		parts = append(parts, s+fmt.Sprintf(", %s ended", count(c.Exited)))
	}
	for _, l := range []struct {
		what string
		l    *account.LateSum
	}{{"from data at a socket to its goroutine runnable", &k.SocketsLate}, {"from a timer's due time to its goroutine runnable", &k.TimersLate}} {
		if l.l.N > 0 {
			parts = append(parts, fmt.Sprintf("%s: p50 %s, p99 %s, max %s", l.what, finding.Duration(l.l.P50), finding.Duration(l.l.P99), finding.Duration(l.l.Max)))
		}
	}
	return strings.Join(parts, "; ")
}

// pauses shows the long stop-the-worlds and barriers that cost slow requests most.
func (p *page) pauses(r *Report) {
	bs, of := r.longest()
	if len(bs) == 0 {
		return
	}
	p.heading("PAUSES", of)
	for i := range bs {
		b := &bs[i]
		p.par("  ", b.words())
		if s := whoList(b.Leaves, b.End-b.Begin, 4); s != "" {
			p.par("    spent on: ", s)
		}
		for j, h := range b.Hops {
			if j == maxHops && len(b.Hops) > maxHops+1 {
				p.line("      %d more steps (json)", len(b.Hops)-j)
				break
			}
			p.par("      ", h)
		}
	}
	if s := fairWords(&r.Kernel.Fair); s != "" {
		p.note("", s)
	}
}

// longest gives the pauses that are printed, and in words which of how many they are: those that cost slow requests
// most, or, where none is known to, the longest for a measure.
func (r *Report) longest() (bs []Barrier, of string) {
	if r.Kernel == nil || len(r.Kernel.Barriers) == 0 {
		return nil, ""
	}
	bs = slices.Clone(r.Kernel.Barriers)
	slices.SortStableFunc(bs, func(a, b Barrier) int {
		if a.SlowNS != b.SlowNS {
			return int(min(1, max(-1, b.SlowNS-a.SlowNS)))
		}
		return int(min(1, max(-1, (b.End-b.Begin)-(a.End-a.Begin))))
	})
	of = plural(int64(len(bs)), "long stop-the-world or barrier", "long stop-the-worlds and barriers")
	switch {
	case bs[0].SlowNS == 0 && len(bs) == 1:
		return bs, of + ", which held no slow request up"
	case bs[0].SlowNS == 0:
		return bs[:1], "the longest of " + of + ", none of which held a slow request up"
	case len(bs) > maxBarriers:
		return bs[:maxBarriers], fmt.Sprintf("the %d of %s that cost slow requests most", maxBarriers, of)
	}
	return bs, of
}

func (b *Barrier) words() string {
	at := ""
	if b.UTC != nil {
		at = " at " + timeOfDay(*b.UTC)
	}
	s := fmt.Sprintf("%s%s: %s", finding.Duration(b.End-b.Begin), at, b.Kind)
	if b.Kind != account.SafePoint {
		s += fmt.Sprintf(", world stopped %s, then only its initiator delayed %s", finding.Duration(b.StoppedNS), finding.Duration(b.DelayedNS))
	} else {
		s = fmt.Sprintf("%s%s: ragged barrier, no world stopped", finding.Duration(b.End-b.Begin), at)
	}
	switch {
	case b.Awaited != 0 && b.ByNote:
		s += fmt.Sprintf("; awaited: thread %d, which woke the initiator", b.Awaited)
	case b.Awaited != 0:
		s += fmt.Sprintf("; awaited: thread %d, by the last P that stopped", b.Awaited)
	}
	if b.SlowNS > 0 {
		s += "; slow requests lost " + finding.Duration(b.SlowNS) + " in all"
	}
	if b.Grade != "" {
		s += "; " + string(b.Grade)
	}
	return s
}

// fairWords tells how much a covering alone would prove.
func fairWords(f *account.Fair) string {
	if f.Pairs == 0 {
		return ""
	}
	return fmt.Sprintf("fair control: of %s pairs of events of one thread, as far apart as a pause is long, %s look as if something had held the thread up (%s with it running again just before the end): looking so proves nothing, who woke whom does",
		count(f.Pairs), percent(share(f.Covered, f.Pairs)), percent(share(f.Edge, f.Pairs)))
}

// tiers tells what recorded a process, and what could not be seen and costs certainty.
func (p *page) tiers(r *Report) {
	if len(r.Tiers) == 0 && r.Kernel == nil {
		return
	}
	p.heading("WHAT WAS LOOKED AT", "")
	for _, t := range r.looked() {
		p.note(t[0]+": ", t[1])
	}
	for _, s := range r.Unseen {
		p.note("not seen: ", s)
	}
}

// looked gives the kinds of evidence that are there, each with its words.
func (r *Report) looked() (out [][2]string) {
	var runtime, system []string
	for _, t := range r.Tiers {
		switch {
		case t.State == evidence.Unavailable:
		case isKernelTier(t.Name):
		case isRuntimeTier(t.Name):
			runtime = append(runtime, t.Name)
		default:
			system = append(system, t.Name)
		}
	}
	if len(runtime) > 0 {
		out = append(out, [2]string{"the runtime", strings.Join(runtime, ", ")})
	}
	if k := r.Kernel; k != nil {
		s := map[string]string{"bpf": "eBPF", "perf": "perf_event switch records"}[k.Source]
		if s == "" {
			s = k.Source
		}
		s += " on Linux " + k.Release
		if k.AllTasks {
			s += ", switches of all tasks on all CPUs"
		} else {
			s += ", switches of its own threads"
		}
		if k.Whole {
			s += "; joined with the trace, whose clock was found by when no thread of the process was on a CPU, and which names no threads: what kept all of them off the CPUs is told, what kept one is not"
		} else if k.Joined {
			s += "; joined with the trace: "
			if a := &k.Align; a.Transitions > 0 {
				s += fmt.Sprintf("of %s transitions of goroutines %s fall on a thread that was on no CPU", count(a.Transitions), count(a.OffCPU))
				if a.Dropped > 0 {
					s += fmt.Sprintf(" (%s not counted: their times are not the events' own)", count(a.Dropped))
				}
				if a.MinNS > 0 {
					s += fmt.Sprintf(", the first comes %s after its thread's switch-in at the least", finding.Duration(a.MinNS))
				}
			} else {
				s += "no transition could be compared"
			}
		}
		out = append(out, [2]string{"the kernel", s})
	}
	if len(system) > 0 {
		out = append(out, [2]string{"/proc, /sys, cgroups", strings.Join(system, ", ")})
	}
	return out
}

func isKernelTier(name string) bool { return name == "kernel" || strings.HasPrefix(name, "kernel-") }

func isRuntimeTier(name string) bool {
	switch name {
	case "trace", "mutex", "block", "goroutine", "heap", "memstats", "metrics", "vars", "cpu", "pprof":
		return true
	}
	return false
}

// unseen lists what could not be seen of a process, each with what that costs in certainty.
func (r *Report) unseen() (out []string) {
	if r.Target.PID == 0 && r.Kernel == nil {
		return nil
	}
	for _, t := range r.Tiers {
		if t.State == evidence.Ready || t.Why == "" {
			continue
		}
		switch {
		case t.Name == "pprof", t.Name == "trace":
			cost := "requests are those of threads, and what goroutines waited for is not told apart"
			if r.Target.Runtime == "go" {
				cost = "requests, and what goroutines waited for, are not seen"
			}
			out = append(out, "the runtime ("+t.Why+"): "+cost)
		case isKernelTier(t.Name) && r.Kernel == nil:
			out = append(out, "the kernel ("+t.Name+": "+t.Why+"): whether threads that ran were on a CPU is not known; nothing is proven")
		case !isRuntimeTier(t.Name):
			out = append(out, t.Name+" ("+t.Why+")")
		}
	}
	k := r.Kernel
	if k == nil {
		return out
	}
	switch r.Target.Runtime {
	case "jvm", "python":
		out = append(out, "the "+map[string]string{"jvm": "Java virtual machine", "python": "Python interpreter"}[r.Target.Runtime]+": its threads are told as plain threads, and nothing is claimed about its runtime, its collector or its locks")
	}
	if !k.AllTasks {
		out = append(out, "other processes' switches: that a thread had no CPU is seen, because of whom is not")
	}
	if !k.PerTask {
		out = append(out, "which thread is throttled: this kernel tells only that its group is, so throttling is supported at most")
	}
	out = append(out, k.Missing...)
	if k.Lost > 0 {
		out = append(out, plural(k.Lost, "record", "records")+" of the kernel that got lost: what they leave open is unexplained")
	}
	if whole := k.OnNS + k.QueuedNS + k.ThrottledNS + k.BlockedNS + k.UnknownNS; k.UnknownNS*1000 > whole {
		out = append(out, fmt.Sprintf("%s of its threads' time, for which records are missing: unexplained", finding.Duration(k.UnknownNS)))
	}
	return out
}
