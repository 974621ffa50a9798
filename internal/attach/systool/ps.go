package systool

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var ps = &attach.Kind{
	Name: "ps",
	Hints: []string{"PID", "LWP", "TID", "STAT", "WCHAN", " ? ", "pts/", "tty", "D ", "R ", " S ", " I ",
		"Ss ", "Sl ", "sl ", "Ds ", "Dl ", "Rl ", "l+ ", "s+ ", "S+ ", "D+ ", "S< ", "I< "},
	Claim: claimPs,
	Read:  readPs,
}

// psNames are the columns that ps prints, of which a line of names has nothing else but one or two
// that a user named.
var psNames = func() map[string]bool {
	names := map[string]bool{}
	for _, n := range strings.Fields(`USER UID PID PPID LWP NLWP TID SPID PGID SID C STIME TTY TT TIME CMD COMMAND %CPU %MEM VSZ RSS STAT S START
		STARTED ELAPSED PRI NI F ADDR SZ WCHAN CLS RTPRIO PSR TPGID RUSER EUSER GROUP CPU MAJFL MINFL TIME+ COMMAND POL CGROUP NAMESPACE LABEL THCNT
		PENDING BLOCKED IGNORED CAUGHT EIP ESP STACKP CP SUPGRP NUMA PSS USS DRS TRS SIZE RSZ VSIZE VSZ-MiB RSS-MiB SGID EGID RGID EUID RUID UNIT SLICE MACHINE OOM SERVICE #`) {
		names[n] = true
	}
	return names
}()

// psHeader gives the columns. Tables of top have PID as well, and VIRT and RES beside it.
func psHeader(text string) ([]string, bool) {
	f := fields(text)
	if strings.HasPrefix(text, "TIME") && slices.Equal(f, []string{"TIME", "PID", "COMMAND"}) {
		return nil, false // bashreadline; ps puts the names of figures to the right
	}
	if len(f) < 2 || slices.Contains(f, "VIRT") || slices.Contains(f, "RES") || slices.Contains(f, "%VSZ") {
		return nil, false
	}
	known := 0
	for _, n := range f {
		if psNames[n] {
			known++
		}
	}
	process := slices.ContainsFunc(f, func(n string) bool { return n == "PID" || n == "LWP" || n == "TID" || n == "SPID" })
	state := slices.ContainsFunc(f, func(n string) bool { return n == "STAT" || n == "S" || n == "WCHAN" })
	if known == len(f) && known >= 2 && (process || state) {
		return f, true
	}
	return f, process && known >= 4 && known >= len(f)-1
}

var psState = pattern.New(`^[RSDZTtXIW][<NLsl+]*$`)

func psRow(names, f []string) bool {
	if len(f) < len(names) && !(len(f) == len(names)-1 && len(f) > 3) {
		return false
	}
	for i, n := range names {
		if i >= len(f) {
			break
		}
		switch n {
		case "PID", "PPID", "LWP", "NLWP", "TID", "SPID", "VSZ", "RSS":
			if _, ok := whole(f[i]); !ok {
				return f[i] == "-"
			}
		case "%CPU", "%MEM":
			if _, ok := number(f[i]); !ok && f[i] != "-" {
				return false
			}
		case "STAT", "S": // with m, a process' row has its threads' states below it
			if !psState.MatchString(f[i]) && f[i] != "-" {
				return false
			}
		}
	}
	return true
}

// psAux are the columns of ps aux, where a paste has no line of names.
var psAux = []string{"USER", "PID", "%CPU", "%MEM", "VSZ", "RSS", "TTY", "STAT", "START", "TIME", "COMMAND"}

func auxRow(f []string) bool {
	return len(f) >= 11 && psRow(psAux, f) && strings.Contains(f[9], ":") && (f[6] == "?" || strings.Contains(f[6], "/") || strings.HasPrefix(f[6], "tty"))
}

func claimPs(lines []paste.Line) int {
	var names []string
	return attach.ClaimWhile(lines, func(at int, text string) bool {
		f := fields(text)
		if n, ok := psHeader(text); ok {
			next, more := following(lines, at+1)
			if at > 0 && names != nil || more && psRow(n, fields(next.Text)) {
				names = n
				return true
			}
			return false
		}
		if names == nil && at == 0 {
			names = psBare(lines)
		}
		return names != nil && psRow(names, f)
	})
}

// process is a row of ps.
type process struct {
	pid, name, state, wchan string
	cpu, mem, rss           float64
}

func parsePs(p *attach.Part) (all []process, names []string) {
	names = psBare(p.Lines)
	for _, l := range p.Lines {
		if n, ok := psHeader(l.Text); ok {
			names = n
			continue
		}
		f := fields(l.Text)
		if len(f) == 0 || names == nil || !psRow(names, f) || len(all) >= maxTasks {
			continue
		}
		t := table{names: names}
		r := row{cells: f}
		one := process{pid: t.cell(r, "PID", "LWP", "TID"), state: t.cell(r, "STAT", "S"), wchan: t.cell(r, "WCHAN"),
			cpu: t.num(r, "%CPU"), mem: t.num(r, "%MEM"), rss: t.num(r, "RSS", "RSZ") * 1024}
		if t.has("RSS-MiB") { // of xsos
			one.rss = t.num(r, "RSS-MiB") * (1 << 20)
		}
		if at := t.column("COMMAND", "CMD"); at >= 0 && at < len(f) {
			for at+1 < len(f) && (f[at] == `\_` || f[at] == "|") {
				at++ // the lines of a tree (f, --forest)
			}
			one.name = f[at]
			if strings.HasPrefix(one.name, "/") {
				one.name = path.Base(one.name)
			}
		}
		if len(one.name) > 40 {
			one.name = one.name[:40]
		}
		if n := len(all); one.pid == "-" && n > 0 { // a thread below its process, whose row has the sums
			one.pid, one.name, one.cpu = all[n-1].pid, all[n-1].name, 0
		}
		all = append(all, one)
	}
	return all, names
}

// waitPlaces say what a thread in D waits for, by the kernel function that it sleeps in.
var waitPlaces = []struct {
	parts []string
	cause string
}{
	{[]string{"io_schedule", "balance_dirty_pages", "jbd2", "wait_on_page", "folio_wait", "blkdev", "wait_on_buffer", "xfs_log", "xlog", "ext4_sync", "blk_mq", "rq_qos_wait", "submit_bio", "do_get_write_access"}, "disk-wait"},
	{[]string{"mmap_read_lock", "mmap_write_lock"}, "mmap-lock"},
	{[]string{"do_try_to_free", "shrink_", "reclaim_inodes", "congestion_wait", "reclaim_throttle", "throttle_direct", "mem_cgroup_handle_over_high"}, "direct-reclaim"},
	{[]string{"__mutex_lock", "mutex_lock", "rwsem_down"}, "kernel-lock"}, // of an inode, mmap_lock, or any other
}

// waitsElsewhere are kernel functions whose wait is of no cause's own.
var waitsElsewhere = []struct{ prefix, what string }{
	{"rpc_wait", "an answer of a server of files (NFS)"}, {"nfs_wait", "an answer of a server of files (NFS)"},
	{"txg_", "a transaction group of ZFS"}, {"cv_wait", "another thread of ZFS"}, {"cv_timedwait", "another thread of ZFS"},
	{"fuse_", "the program of a file system (FUSE)"}, {"request_wait_answer", "the program of a file system (FUSE)"},
}

// shortPlace is how many letters of a name ps prints where no width is given.
const shortPlace = 6

func placeCause(wchan string) string {
	for _, p := range waitPlaces {
		for _, s := range p.parts {
			if strings.Contains(wchan, s) || len(wchan) == shortPlace && strings.HasPrefix(s, wchan) {
				return p.cause
			}
		}
	}
	return ""
}

func readPs(p *attach.Part) attach.Reading {
	all, names := parsePs(p)
	v := &verdict{}
	v.Glance, v.unsure = true, true
	v.Title = "ps, " + attach.Plural(len(all), "row")
	psStates(v, all, names, psFiltered(p.Command))
	if slices.Contains(names, "%CPU") && len(all) > 0 {
		one := slices.MaxFunc(all, func(a, b process) int { return cmp.Compare(a.cpu, b.cpu) })
		v.figure("%s (pid %s): %s %% CPU since it started", one.name, one.pid, plain(one.cpu))
	}
	if len(all) > 0 {
		one := slices.MaxFunc(all, func(a, b process) int { return cmp.Compare(a.rss, b.rss) })
		if one.rss > 0 {
			share := ""
			if one.mem > 0 {
				share = fmt.Sprintf(" (%s %% of the memory)", plain(one.mem))
			}
			v.figure("%s (pid %s): %s resident%s", one.name, one.pid, bytes(one.rss), share)
		}
	}
	if len(v.Figures) == 0 {
		v.figure("%s, without states", attach.Plural(len(all), "row"))
	}
	v.means("it says what runs, and not how it does")
	if slices.Contains(names, "%CPU") {
		v.not("ps is a glance: states change a thousand times a second, and its %CPU is an average since the process started")
	}
	v.not("ps is a glance: states change a thousand times a second")
	return v.done()
}

// psFiltered reports whether what ps wrote went through a filter, which leaves rows out.
func psFiltered(command string) bool {
	_, rest, piped := strings.Cut(command, "|")
	return piped && slices.ContainsFunc([]string{"grep", "awk", "sed", "head", "tail"}, func(w string) bool { return strings.Contains(rest, w) })
}

func psStates(v *verdict, all []process, names []string, filtered bool) {
	in := map[byte]int{}
	places, blocked := map[string]int{}, map[string]int{}
	var lone process // the last one in D
	if !slices.Contains(names, "STAT") && !slices.Contains(names, "S") {
		for _, one := range all {
			if one.wchan != "" && one.wchan != "-" && one.wchan != "0" {
				places[one.wchan]++
			}
		}
		for _, w := range attach.Largest(places)[:min(2, len(places))] {
			v.figure("%d of %d sleep in %s at that moment", places[w], len(all), w)
		}
		return
	}
	for _, one := range all {
		if one.state == "" {
			continue
		}
		in[one.state[0]]++
		if one.state[0] == 'D' && one.name != "" && one.name != "-" {
			blocked[unnumbered(one.name)]++
			lone = one
		}
		if one.state[0] == 'D' && one.wchan != "" && one.wchan != "-" {
			places[one.wchan]++
		}
	}
	if filtered {
		v.figure("%d in D at that moment, in a list that went through a filter: how many there are in all is not in it", in['D'])
	} else {
		v.figure("%d in state R, %d in D, %d in S or I at that moment", in['R'], in['D'], in['S']+in['I'])
	}
	if in['D'] == 1 && lone.pid != "" {
		v.figure("in D: %s (pid %s)", lone.name, lone.pid)
	} else if by := attach.Largest(blocked); len(by) > 0 && (in['D'] >= 3 || filtered) {
		text := fmt.Sprintf("in D: %d %s", blocked[by[0]], by[0])
		for _, w := range by[1:min(3, len(by))] {
			text += fmt.Sprintf(", %d %s", blocked[w], w)
		}
		if len(by) > 3 {
			text += ", ..."
		}
		v.figure("%s", text)
	}
	if in['Z'] > 0 {
		v.figure("%s", attach.Plural(in['Z'], "zombie"))
	}
	most := ""
	if by := attach.Largest(places); len(by) > 0 {
		most = by[0]
		text := fmt.Sprintf("%d of those in D sleep in %s", places[most], most)
		for _, w := range by[1:min(3, len(by))] {
			text += fmt.Sprintf(", %d in %s", places[w], w)
		}
		v.figure("%s", text)
	}
	if in['D'] > 0 {
		v.next("for i in 1 2 3 4 5; do ps -eLo state,wchan:32,comm | grep ^D; sleep 1; done", "whether the same threads stay in D, and where in the kernel")
	}
	proof := v.Figures[len(v.Figures)-1]
	psReclaimer(v, all)
	for _, w := range waitsElsewhere {
		if strings.HasPrefix(most, w.prefix) && places[most] >= 3 {
			v.means("%d threads sleep in %s at that moment: they wait for %s", places[most], most, w.what)
		}
	}
	if cause := placeCause(most); cause != "" && places[most] >= 3 {
		v.proves(cause, proof)
		v.means("%d threads sleep in %s at that moment", places[most], most)
	}
	if in['D'] >= 3 {
		v.means("%d threads are in D at that moment: whether they stay there is not in it", in['D'])
	}
}
