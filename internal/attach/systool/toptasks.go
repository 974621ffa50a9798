package systool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// programs sums the CPU time of processes by their names. Many small ones may fill a machine.
func (t *table) programs() (name string, use float64, count int) {
	sums, counts := map[string]float64{}, map[string]int{}
	at := t.column("COMMAND", "BEFEHL", "Command")
	for _, r := range t.rows {
		if at < 0 || at >= len(r.cells) {
			continue // it is cut off
		}
		n := r.cells[at]
		sums[n] += max(0, t.num(r, "%CPU"))
		counts[n]++
		if sums[n] > use || sums[n] == use && n < name {
			name, use = n, sums[n]
		}
	}
	return name, use, counts[name]
}

// processes names the one with most CPU time and the one with most memory. load is how busy all
// CPUs are in percent, and 0 where rows are not summed up.
func (s *screen) processes(v *verdict, load float64) {
	t := table{names: s.names, rows: s.rows}
	if len(t.rows) == 0 {
		return
	}
	name := func(r row) string {
		at := t.column("COMMAND", "BEFEHL", "Command")
		if at < 0 || at >= len(r.cells) {
			at = len(r.cells) - 1
		}
		return fmt.Sprintf("%s (pid %s)", strings.Join(r.cells[at:min(len(r.cells), at+1)], " "), t.cell(r, "PID"))
	}
	loaded := load > 50
	busy := slices.MaxFunc(t.rows, func(a, b row) int { return cmp.Compare(t.num(a, "%CPU"), t.num(b, "%CPU")) })
	if program, all, n := t.programs(); !s.threads && (loaded || all >= 200) && n > 1 && all > 1.5*t.num(busy, "%CPU") {
		text := fmt.Sprintf("%d processes %s: %s %% CPU", n, program, plain(all))
		if use := t.num(busy, "%CPU"); use >= 1 && !strings.HasPrefix(name(busy), program+" ") {
			text += fmt.Sprintf("; most of a single one: %s %s %%", name(busy), plain(use))
		}
		v.Figures = slices.Insert(v.Figures, min(2, len(v.Figures)), text)
	} else if use := t.num(busy, "%CPU"); use >= 1 {
		holds := ""
		if size := t.resident(busy); size > 0 && !s.threads {
			holds = fmt.Sprintf(", %s resident", bytes(size))
			if share := t.num(busy, "%MEM"); share >= 25 {
				holds += fmt.Sprintf(" (%s %% of the memory)", plain(share))
			}
		}
		text := fmt.Sprintf("%s: %s %% CPU%s%s", name(busy), plain(use), holds, t.next(busy, name))
		if n, sum := t.busy(); s.threads && n > 1 {
			of := ""
			if s.total > n {
				of = fmt.Sprintf(" of %d", s.total)
			}
			text = fmt.Sprintf("%d%s threads use a fifth of a CPU or more, %s %% together, the most %s with %s %%", n, of, plain(sum), name(busy), plain(use))
			v.Figures = slices.Insert(v.Figures, min(2, len(v.Figures)), text)
		} else {
			v.figure("%s", text)
		}
		v.factOf(ProcessCPU, use/100, name(busy))
		if used := s.used(); loaded && use >= 100 && use >= mostOfIt*used && len(t.rows) > 2 {
			v.means("the CPUs are %s %% busy in it, and %.0f %% of what the tasks listed use is %s", plain(load), 100*use/used, name(busy))
			v.pid, _ = whole(t.cell(busy, "PID"))
		}
	}
	for _, r := range t.rows {
		if t.resident(r) == 0 { // threads of the kernel have no memory; programs take their names
			v.kernelThread(name(r), t.num(r, "%CPU"), "a CPU")
		}
	}
	s.reclaimed(v)
	large := slices.MaxFunc(t.rows, func(a, b row) int { return cmp.Compare(t.resident(a), t.resident(b)) })
	if share := t.num(large, "%MEM"); share >= 25 && s.threads {
		v.figure("the process of %s holds %s, %s %% of the memory", name(large), bytes(t.resident(large)), plain(share))
	} else if share >= 25 && t.cell(large, "PID") != t.cell(busy, "PID") {
		at := len(v.Figures)
		if t.num(busy, "%CPU") < 50 || share >= 50 {
			at = min(2, at)
		}
		text := fmt.Sprintf("%s holds %s, %s %% of the memory", name(large), bytes(t.resident(large)), plain(share))
		v.Figures = slices.Insert(v.Figures, at, text)
	}
}

// next names the two rows that use most CPU time behind the first one, where they use much of it
// too.
func (t *table) next(first row, name func(row) string) (text string) {
	rows := slices.Clone(t.rows)
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(t.num(b, "%CPU"), t.num(a, "%CPU")) })
	for i, r := range rows[min(1, len(rows)):min(3, len(rows))] {
		use := t.num(r, "%CPU")
		if use < worthNaming*t.num(first, "%CPU") || use < 5 {
			break
		}
		text += []string{"; then ", ", "}[i] + fmt.Sprintf("%s %s %%", name(r), plain(use))
	}
	return text
}

// busy counts rows that use a fifth of a CPU or more, and sums their use.
func (t *table) busy() (n int, use float64) {
	for _, r := range t.rows {
		if one := t.num(r, "%CPU"); one >= 20 {
			n, use = n+1, use+one
		}
	}
	return n, use
}

func (t *table) resident(r row) float64 {
	f, _ := size(t.cell(r, "RES"), 1024)
	return f
}

// kernelThread: some threads of the kernel that use much CPU time do so for one reason. The use is
// in percent, of one CPU or of the time of all.
func (v *verdict) kernelThread(name string, use float64, of string) {
	name = strings.NewReplacer("[", "", "]", "").Replace(name) // of kernel threads, with command lines
	if use < 20 || use > oneThread || !strings.HasPrefix(name, "k") {
		return
	}
	proof := fmt.Sprintf("%s uses %s %% of %s", name, plain(use), of)
	switch {
	case strings.HasPrefix(name, "khugepaged"):
		v.means("%s: it looks for memory in one piece, for huge pages; whether the service's threads do so as well is not in it", proof)
		v.next("grep . /sys/kernel/mm/transparent_hugepage/{enabled,defrag}; grep -E 'compact|thp_fault' /proc/vmstat; sleep 10; grep -E 'compact|thp_fault' /proc/vmstat", "compact_stall: whether threads move memory themselves to get huge pages")
	case strings.HasPrefix(name, "kswapd"), strings.HasPrefix(name, "kcompactd"):
		v.proves("direct-reclaim", proof)
		v.means("%s: it looks for memory to free or to move; whether the service's threads have to help is not in it", proof)
		v.next("sar -B 1 10", "pgscand/s: whether threads free memory themselves")
	case strings.HasPrefix(name, "ksoftirqd"):
		v.candidate("softirq", 0, proof)
		v.means("%s: there are more interrupts than are served at once", proof)
		v.next("cat /proc/softirqs; sleep 10; cat /proc/softirqs", "which soft interrupts they are")
	}
}

// reclaimed adds to the proof of reclaim how much memory is left: little, or enough for all but one
// node, one group or huge pages.
func (s *screen) reclaimed(v *verdict) {
	if s.mem.total <= 0 || !v.accuses("direct-reclaim") {
		return
	}
	share := s.mem.available / s.mem.total
	if share < memoryShort { // scarce says it
		return
	}
	text := fmt.Sprintf("%s of %s are %s", bytes(s.mem.available), bytes(s.mem.total), s.mem.left())
	switch {
	case share < 0.15 && s.mem.hasSwap && s.mem.swap == 0:
		text += ", and there is no swap: only pages of files can be given up, programs' own among them"
	case share >= 0.3:
		text += ": memory as a whole is not short, so it is a node's, a group's, or in too small pieces"
	}
	v.proves("direct-reclaim", text)
}
