package kernelfile

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// earlyLog is what earlyoom says: how much was available, and whom it sent a signal. It acts only
// where memory and swap are both below their limits.
type earlyLog struct {
	states             int
	first, least, last earlyState
	memLimit           float64 // percent; 0: not said
	swapLimit          float64
	kills              []*earlyVictim
	ended              bool
	low                []string // the signal that is next, and the limits of memory and swap
	failed             int      // kills after which the process lived on
	out                string   // what was available where it acted, by its first versions
}

type earlyState struct{ mem, memAll, swap, swapAll float64 } // MiB

func (s earlyState) share() float64 { return ratio(s.mem, s.memAll) }

func (s earlyState) String() string {
	text := fmt.Sprintf("%s of %s MiB available (%s)", number(s.mem), number(s.memAll), percent(s.share()))
	if s.swapAll == 0 {
		return text + ", no swap"
	}
	return text + fmt.Sprintf(", %s of %s MiB of swap free (%s)", number(s.swap), number(s.swapAll),
		percent(ratio(s.swap, s.swapAll)))
}

type earlyVictim struct {
	name, pid   string
	signals     []string
	first, last float64 // MiB resident
}

func (e *earlyLog) read(text string) bool {
	if m := earlyAvail.FindStringSubmatch(text); m != nil {
		s := earlyState{float(m[1]), float(m[2]), float(m[4]), float(m[5])}
		if e.states++; e.states == 1 {
			e.first, e.least = s, s
		}
		if s.share() < e.least.share() {
			e.least = s
		}
		e.last = s
		return true
	}
	if m := earlyKill.FindStringSubmatch(text); m != nil {
		e.kill(cmp.Or(m[3], m[5]), cmp.Or(m[2], m[7]), cmp.Or(m[1], signalName(m[6])), float(m[8]))
		return true
	}
	if m := earlyFirst.FindStringSubmatch(text); m != nil {
		e.kill(m[2], m[1], "a signal", 0)
		return true
	}
	if m := earlyOut.FindStringSubmatch(text); m != nil {
		e.out = fmt.Sprintf("%s MiB available, and its limit is %s", m[1], m[2])
		return true
	}
	if m := earlyRule.FindStringSubmatch(text); m != nil {
		if m[1] == "SIGTERM" {
			e.memLimit, e.swapLimit = float(m[2]), float(m[4])
		}
		return true
	}
	if m := earlyLow.FindStringSubmatch(text); m != nil {
		e.low = m[1:]
		return true
	}
	if strings.HasPrefix(strings.ToLower(text), "kill failed") {
		e.failed++
		return true
	}
	e.ended = e.ended || strings.Contains(text, "process exited") || strings.Contains(text, " exited after")
	return earlyOther.MatchString(text)
}

func (e *earlyLog) kill(name, pid, signal string, rss float64) {
	for _, v := range e.kills {
		if v.pid == pid {
			v.signals, v.last = append(v.signals, signal), rss
			return
		}
	}
	if len(e.kills) < 256 {
		e.kills = append(e.kills, &earlyVictim{name, pid, []string{signal}, rss, rss})
	}
}

func signalName(n string) string {
	switch n {
	case "15":
		return "SIGTERM"
	case "9":
		return "SIGKILL"
	}
	return "signal " + n
}

func (v *earlyVictim) String() string {
	text := fmt.Sprintf("%s (pid %s) was sent %s", printed(v.name), v.pid,
		strings.Join(v.signals[:min(2, len(v.signals))], ", "))
	if n := len(v.signals); n > 1 {
		text = fmt.Sprintf("%s (pid %s) was sent %s %d times", printed(v.name), v.pid, v.signals[0], n)
	}
	switch {
	case v.first > 0 && v.last > v.first:
		text += fmt.Sprintf(", and grew from %s to %s MiB", number(v.first), number(v.last))
	case v.first > 0:
		text += fmt.Sprintf(", with %s MiB resident", number(v.first))
	}
	return text
}

func (e *earlyLog) say(out *attach.Reading) {
	if e.states == 0 && len(e.kills) == 0 {
		e.sayLow(out)
		return
	}
	if e.states > 0 {
		out.Figures = append(out.Figures, "least: "+e.least.String())
	}
	if e.out != "" {
		out.Figures = append(out.Figures, e.out)
	}
	for _, v := range e.kills[:min(3, len(e.kills))] {
		out.Figures = append(out.Figures, v.String())
	}
	if e.failed > 0 {
		out.Figures = append(out.Figures, plural(e.failed, "kill failed", "kills failed"))
	}
	swapLimit := cmp.Or(e.swapLimit, 10)
	low := e.states > 0 && e.least.share() <= max(0.05, e.memLimit/100)
	swapLow := e.least.swapAll == 0 || ratio(e.least.swap, e.least.swapAll) <= swapLimit/100
	switch {
	case len(e.kills) > 0 && len(e.kills[0].signals) > 2:
		say(out, attach.CannotTell,
			"Memory ran short, and earlyoom sent the same process one signal after another: it did not end by that.")
	case e.failed > 0 && len(e.kills) == 0:
		say(out, attach.CannotTell,
			"Memory ran short, and earlyoom could not end a process; which one is not in the paste.")
	case e.failed > 0 && !e.ended:
		say(out, attach.CannotTell,
			"Memory ran short, and earlyoom sent a signal, but the process had not ended by then: whatever needs memory goes on waiting.")
	case len(e.kills) > 0:
		say(out, attach.CannotTell,
			fmt.Sprintf("Memory ran short, and earlyoom had %s end before the kernel had to: an end, and by itself no cause of latency.", plural(len(e.kills), "process", "processes")))
	case low && !swapLow:
		say(out, attach.CannotTell,
			"Memory was as good as gone, and no line says that anything was killed: earlyoom waits until swap is used up as well, and meanwhile everybody swaps.")
	case low:
		say(out, attach.CannotTell, "Memory was as good as gone; that anything was killed is not in the paste.")
	default:
		say(out, attach.Healthy, "Memory was available at each line, and no line says that anything was killed.")
	}
	if low || len(e.kills) > 0 && e.out == "" { // the first versions act at a tenth of all memory
		shortOfMemory(out, out.Figures[0])
	}
	out.Not = cmp.Or(out.Not, "who used the memory: the process with the highest badness is ended, and it need not be the one that grew")
}

// sayLow is for a log in which earlyoom is about to act, and no line says on whom.
func (e *earlyLog) sayLow(out *attach.Reading) {
	if e.low == nil {
		return
	}
	figure := fmt.Sprintf("at most %s %% of memory was available, and at most %s %% of swap free",
		number(float(e.low[1])), number(float(e.low[2])))
	out.Figures = append(out.Figures, figure)
	say(out, attach.CannotTell, "Memory was as good as gone: earlyoom is about to send "+e.low[0]+
		" to a process; which one is not in the paste.")
	shortOfMemory(out, figure)
	out.Not = cmp.Or(out.Not, "who used the memory")
}

// nohangLog is what nohang says: pressure, and what was available at the same moment.
type nohangLog struct {
	seen      bool
	psi       float64 // percent; negative: not said
	mem, swap float64 // percent that was available or free
	memMiB    float64
	exceeded  string
	kept      bool // it says that nothing was over its limit in the end
	killed    string
}

func (n *nohangLog) read(text string) bool {
	if !nohangLine.MatchString(text) && !strings.Contains(text, "Sending SIG") {
		return false
	}
	if m := nohangState.FindStringSubmatch(text); m != nil && (!n.seen || float(m[3]) < n.mem || float(m[1]) > n.psi) {
		n.seen, n.psi, n.memMiB, n.mem, n.swap = true, -1, float(m[2]), float(m[3]), float(m[5])
		if m[1] != "" {
			n.psi = float(m[1])
		}
	}
	switch {
	case strings.Contains(text, "exceeded psi_excess_duration"):
		_, n.exceeded, _ = strings.Cut(text, "PSI avg ")
	case strings.Contains(text, "is not exceeded now"):
		n.kept = true
	case strings.Contains(text, "Sending") && strings.Contains(text, "SIG"):
		n.killed = text
	}
	return true
}

func (n *nohangLog) say(out *attach.Reading) {
	if !n.seen {
		return
	}
	figure := fmt.Sprintf("%s MiB of memory available (%s), %s of swap free", number(n.memMiB),
		percent(n.mem/100), percent(n.swap/100))
	if n.psi >= 0 {
		figure = fmt.Sprintf("memory pressure (PSI) %s, with ", percent(n.psi/100)) + figure
	}
	out.Figures = append(out.Figures, figure)
	if n.exceeded != "" {
		out.Figures = append(out.Figures, printed(n.exceeded))
	}
	if n.killed != "" {
		out.Figures = append(out.Figures, printed(n.killed))
	}
	end := ""
	if n.kept && n.killed == "" {
		end = " Nothing was killed."
	}
	switch {
	case n.psi >= 20 && n.mem >= 20:
		say(out, attach.CannotTell,
			"Tasks waited for memory though most of it was available: the two do not fit. It is reclaim within a cgroup's limit, swapping to zram, or a kernel that counts wrongly."+end)
		out.Signs = append(out.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Candidate,
			Share: n.psi / 100, Proof: []string{figure}})
		out.Next = append(out.Next,
			attach.Next{Command: "cat /proc/pressure/memory; find /sys/fs/cgroup -name memory.pressure -exec grep -H . {} +", Why: "which group's tasks wait"})
	case n.mem < 5 || n.psi >= 20:
		say(out, attach.CannotTell, "Memory was short."+end)
		shortOfMemory(out, figure)
	default:
		say(out, attach.Healthy, "Memory was available."+end)
	}
}
