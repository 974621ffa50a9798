package kernelfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// oomReport is what the kernel prints before it kills a process for lack of memory.
type oomReport struct {
	seen    bool
	open    bool   // the line that starts a report was read last, and not yet whom it blames
	group   bool   // a cgroup's limit was reached, and not the host's memory
	cgroup  string // whose limit, of the last report
	groups  []string
	usage   float64 // of the group, bytes
	limit   float64
	hits    float64 // how often the group was at its limit, since it was made
	rss     float64 // of the group, bytes
	swapped float64 // of it, too
	biggest oomTask
	tasks   int
	columns []string // of the table of tasks
	asked   string   // the task whose allocation found no memory, and its order
	order   int      // of that allocation; -1: somebody asked for a kill by hand
	nodes   bool     // memory of some nodes ran out, which are all that the task may use
	anon    float64  // of the group, bytes; 0: not said
}

// smallVictim is less than a kill frees where processes hold the memory: the kernel takes the
// largest.
const smallVictim = 32 << 20

type oomTask struct {
	name, pid string
	pages     float64
}

var (
	oomAsked   = pattern.New(`^(.{1,64}?) invoked oom-killer:.*?\border=(-?\d+)`)
	oomUsage   = pattern.New(`^memory: usage (\d+)kB, limit (\d+)kB(?:, failcnt (\d+))?`)
	oomLimited = pattern.New(`^Task in (\S+) killed as a result of limit of (\S+)`)
	oomStats   = pattern.New(`^Memory cgroup stats for (/[^\s:]*):?(?:.*?\brss:(\d+)KB)?(?:.*?\bswap:(\d+)KB)?`)
	oomSwap    = pattern.New(`^swap: usage (\d+)kB`)
	oomBlame   = pattern.New(`^oom-kill:constraint=(\w+)(?:.*?oom_memcg=([^,\s]+))?(?:.*?,task=([^,]+),pid=(\d+))?`)
	oomRow     = pattern.New(`^\[ *(\d+)\] +((?:-?\d+ +){5,11})(\S.*)$`)
)

// read takes what a line says of the kill.
func (o *oomReport) read(text string) {
	text = strings.TrimSpace(text)
	switch {
	case strings.Contains(text, "invoked oom-killer"):
		if m := oomAsked.FindStringSubmatch(text); m != nil && o.asked == "" {
			o.asked = fmt.Sprintf("%s asked for memory (order %s), and got none", printed(m[1]), m[2])
			o.order, _ = strconv.Atoi(m[2])
		}
	case strings.HasPrefix(text, "memory: usage"):
		if m := oomUsage.FindStringSubmatch(text); m != nil {
			o.seen, o.group = true, true
			o.usage = float(m[1])
			o.limit = float(m[2])
			o.usage, o.limit = o.usage*1024, o.limit*1024
			o.hits = float(m[3])
		}
	case strings.HasPrefix(text, "Task in "):
		if m := oomLimited.FindStringSubmatch(text); m != nil {
			o.seen, o.group = true, true
			o.of(m[2])
		}
	case strings.HasPrefix(text, "Memory cgroup stats for "):
		if m := oomStats.FindStringSubmatch(text); m != nil {
			o.seen, o.group = true, true
			if o.cgroup == "" {
				o.of(m[1])
			}
			if kb, err := strconv.ParseFloat(m[2], 64); err == nil {
				o.rss = kb * 1024
			}
			if m[3] != "" {
				o.swapped = float(m[3]) * 1024
			}
		}
	case strings.HasPrefix(text, "swap: usage"):
		if m := oomSwap.FindStringSubmatch(text); m != nil {
			o.swapped = float(m[1]) * 1024
		}
	case strings.HasPrefix(text, "oom-kill:"):
		if m := oomBlame.FindStringSubmatch(text); m != nil {
			o.seen, o.group = true, m[1] == "CONSTRAINT_MEMCG"
			if m[2] != "" {
				o.of(m[2])
			}
			o.nodes = m[1] == "CONSTRAINT_CPUSET" || m[1] == "CONSTRAINT_MEMORY_POLICY"
		}
	case strings.HasPrefix(text, "[") && strings.HasSuffix(text, "name") && strings.Contains(text, "pid"):
		o.columns = strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(text))
		o.tasks, o.biggest = 0, oomTask{} // of several tables the last
	case strings.HasPrefix(text, "Tasks state (memory"):
		o.seen = true
	case strings.HasPrefix(text, "["):
		o.row(text)
	case o.group && strings.HasPrefix(text, "anon "):
		if _, v, ok := pair(text); ok { // in bytes, of v2
			o.anon = v
		}
	}
}

// of notes whose limit was reached.
func (o *oomReport) of(group string) {
	o.cgroup = group
	if len(o.groups) < 1024 && !slices.Contains(o.groups, group) {
		o.groups = append(o.groups, group)
	}
}

// row reads a task of the table, whose memory is in pages.
func (o *oomReport) row(text string) {
	m := oomRow.FindStringSubmatch(text)
	if m == nil {
		return
	}
	at := slices.Index(o.columns, "rss") - 1
	if at < 0 {
		at = 3 // uid tgid total_vm rss
	}
	f := strings.Fields(m[2])
	if at >= len(f) {
		return
	}
	pages := float(f[at])
	o.seen = true
	o.tasks++
	if pages > o.biggest.pages {
		o.biggest = oomTask{m[3], m[1], pages}
	}
}

func (o *oomReport) figures(page float64) (out []string) {
	if o.limit > 0 && o.limit < 1<<60 {
		text := fmt.Sprintf("the group used %s of its limit of %s", mem(o.usage), mem(o.limit))
		if o.hits > 1 {
			text += fmt.Sprintf(", which it had reached %s times since it was made (failcnt)", number(o.hits))
		}
		if o.anon > 0 {
			text += fmt.Sprintf("; %s of it anonymous", mem(o.anon))
		}
		out = append(out, text)
	} else if o.rss > 0 {
		out = append(out, "the group's processes had "+mem(o.rss)+" resident")
	}
	if resident := max(o.rss, o.usage); o.swaps() {
		out = append(out, fmt.Sprintf("%s of the group's memory was in swap, beside %s that was not", mem(o.swapped), mem(resident)))
	}
	if o.biggest.pages > 0 {
		out = append(out, fmt.Sprintf("the largest of %s: %s (pid %s), %s resident",
			plural(o.tasks, "task listed", "tasks listed"), printed(o.biggest.name), o.biggest.pid,
			mem(o.biggest.pages*page)))
	}
	switch n := len(o.groups); {
	case n > 1:
		out = append(out, fmt.Sprintf("%d cgroups, the last %s", n, printed(tail(o.cgroup))))
	case n == 1:
		out = append(out, "cgroup "+printed(tail(o.cgroup)))
	}
	return out
}

// swaps reports whether a good part of the group's memory was in swap when it was killed.
func (o *oomReport) swaps() bool {
	resident := max(o.rss, o.usage)
	return o.group && resident > 0 && o.swapped >= 0.2*resident
}

// tail keeps the end of a long path, which names what is in it.
func tail(path string) string {
	if len(path) > 76 {
		return "..." + path[len(path)-73:]
	}
	return path
}

// plenty is how much was free when a process was killed, in bytes, where that is more than what the
// kernel keeps back; 0: it is not, or not said.
func (r *report) plenty() float64 {
	free := r.sums.free * r.sums.pageBytes()
	all := r.sums.free + r.sums.anon + r.sums.file + r.sums.slab
	if free < 4*beyondReserve || r.sums.free < 0.05*all {
		return 0
	}
	return free
}

func (r *report) readOOM(out *attach.Reading) {
	group, host := r.counts[oomGroup], r.counts[oomKill]
	if group+host+r.counts[oomDetail] == 0 && !r.oom.seen {
		return
	}
	if host == 0 && r.oom.group {
		group++
	}
	if len(r.oom.groups) == 1 {
		out.Who.Cgroup = r.oom.cgroup
	}
	var figures []string
	if len(r.killed) > 0 {
		figure := "killed: " + strings.Join(r.killed[:min(3, len(r.killed))], "; ")
		if len(r.killed) > 3 {
			figure += fmt.Sprintf("; and %d more", len(r.killed)-3)
		}
		figures = append(figures, figure)
	}
	if r.oom.asked != "" && len(r.killed) == 0 {
		figures = append(figures, r.oom.asked)
	}
	figures = append(figures, r.oom.figures(r.sums.pageBytes())...)
	killed := "and a process in it was killed: an end, and perhaps a restart, and by itself no cause of latency."
	if len(r.killed) == 0 {
		killed = "and the kernel kills a process in it; which one is not in the paste."
	}
	switch {
	case group > 0 && host == 0:
		reached := "A cgroup reached its memory limit, "
		if n := len(r.oom.groups); n > 1 {
			reached = fmt.Sprintf("%d cgroups reached their memory limits, ", n)
			killed = "and processes in them were killed: an end, and perhaps a restart, and by itself no cause of latency."
		}
		say(out, attach.CannotTell, reached+killed, figures...)
		if r.oom.swaps() {
			out.Means += " Before that its threads freed memory themselves, by swap: that is a wait, and so is each page that comes back."
			out.Signs = append(out.Signs,
				attach.Sign{Cause: "direct-reclaim", Grade: attach.Candidate,
					Proof: []string{fmt.Sprintf("%s of a group at its limit were in swap", mem(r.oom.swapped))}})
		}
	case host > 0 && r.oom.asked != "" && r.oom.order < 0:
		say(out, attach.CannotTell,
			"Somebody, or a program, had the kernel kill a process by hand (SysRq f): no allocation was without memory.", figures...)
	case host > 0 && r.oom.nodes:
		say(out, attach.CannotTell,
			"The NUMA nodes that a task may use (its cpuset or its policy) ran out of memory, and a process was killed; the host's other nodes may have some.", figures...)
	case host > 0 && r.plenty() > 0:
		say(out, attach.CannotTell,
			fmt.Sprintf("A process was killed although %s were free: an allocation (order %d) got none of it, as its pieces are too small, or are of a zone or a reserve (CMA) that this allocation may not have.", mem(r.plenty()), r.oom.order),
			append(figures, r.sums.figure())...)
	case host > 0 && r.sums.cached():
		say(out, attach.CannotTell,
			"The host ran out of memory, but most of it was page cache, which the kernel could not free: no process held it. Pages that cannot be written back (a disk or file system that does not get on), or a fault of the kernel, look like that.",
			append(figures, append([]string{r.sums.figure()}, r.sums.tail()...)...)...)
	case host > 0 && r.freed > 0 && r.freed < smallVictim && r.oom.biggest.pages == 0 &&
		slices.ContainsFunc(r.killed, func(k string) bool { return strings.Contains(k, "; chosen was ") }):
		say(out, attach.CannotTell,
			fmt.Sprintf("The host ran out of memory, and what was killed held next to none of it (%s at most): it died in the place of the process that was chosen, whose memory stayed.", mem(r.freed)), figures...)
	case host > 0 && r.freed > 0 && r.freed < smallVictim && r.oom.biggest.pages == 0:
		say(out, attach.CannotTell,
			fmt.Sprintf("The host ran out of memory, and what was killed held next to none of it (%s at most): the memory is with processes that may not be killed, in tmpfs, or in the kernel itself.", mem(r.freed)), figures...)
		out.Next = append(out.Next,
			attach.Next{Command: "grep -E 'AnonPages|Shmem:|SUnreclaim|KernelStack|PageTables|Percpu|HugePages_Total' /proc/meminfo; df -t tmpfs", Why: "where the memory is"})
	case host > 0:
		say(out, attach.CannotTell,
			"The host ran out of memory, and a process was killed: an end, and a restart where something starts it again; what other processes waited for before that, it does not say.", append(figures, r.sums.tail()...)...)
	case len(r.killed) > 0:
		say(out, attach.CannotTell,
			"The kernel killed a process for lack of memory: an end, and a restart where something starts it again; whether of the host or of a cgroup is not in the paste.", figures...)
	default:
		say(out, attach.CannotTell,
			"The kernel had to kill a process for lack of memory; which one is not in the paste.", figures...)
	}
	out.Not = cmp.Or(out.Not, "how slow requests were before the kill, nor that what was killed had used the memory: the kernel weighs sizes and settings")
}
