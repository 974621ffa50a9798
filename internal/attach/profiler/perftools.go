package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// readOldBlockIO reads the iosnoop of perf-tools, which is biosnoop by other names.
func readOldBlockIO(t *bpfTable) attach.Reading {
	for i := range t.rows {
		t.rows[i].columns = slices.Clone(t.rows[i].columns)
		for at, c := range t.rows[i].columns {
			switch c {
			case "LATms":
				t.rows[i].columns[at] = "LAT(ms)"
			case "DEV":
				t.rows[i].columns[at] = "DISK"
			}
		}
	}
	return readBlockIO(t)
}

// readCompactions reads compactsnoop: each row is a thread that moved pages together before it got
// a large block. kcompactd does so in the background.
func readCompactions(t *bpfTable) attach.Reading {
	t.rows = slices.DeleteFunc(t.rows, func(row bpfRow) bool { return strings.HasPrefix(row.owner(), "kcompactd") })
	r := t.reading("compaction")
	if len(t.rows) == 0 {
		return r
	}
	l := t.latencies("LAT(ms)", 1e-3)
	who := attach.Largest(l.by)[0]
	r.Figures = []string{l.says("compaction"), fmt.Sprintf("%s of it in %s", lasts(l.by[who]), who)}
	r.Means = "Threads moved pages together themselves before they got a large block: each waited so long for its memory."
	r.Not = "Whether a request waited in one is not in it."
	byRequest := !slices.ContainsFunc(t.rows, func(row bpfRow) bool { return row.at("ORDER") != "-1" })
	switch {
	case byRequest:
		r.Means = "Somebody asked the kernel to compact all of the memory (order -1, as by /proc/sys/vm/compact_memory): no thread waited for a block."
		return r
	case l.max() >= 0.010:
		r.Signs = append(r.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Candidate, Proof: r.Figures[:1]})
	}
	r.Next = append(r.Next, ask("grep compact_stall /proc/vmstat; sleep 10; grep compact_stall /proc/vmstat", 0, "how often it goes on"))
	return r
}

// ioProfile is pt-ioprofile: seconds, calls or bytes by file and system call.
var ioProfile = &attach.Kind{
	Name:  "pt-ioprofile",
	Hints: []string{"Tracing process ID ", " filename", "total "},
	Claim: func(lines []paste.Line) int {
		headed, rows := false, 0
		n := claimed(lines, func(_ int, text string) bool {
			f := strings.Fields(text)
			switch {
			case strings.HasPrefix(text, "Tracing process ID "), ioProfileDate.MatchString(text):
				return !headed
			case len(f) >= 3 && f[0] == "total" && f[len(f)-1] == "filename":
				headed = true
				return true
			}
			if headed && len(f) >= 3 && numbers(f[:len(f)-1]) {
				rows++
				return true
			}
			return false
		})
		return attach.ClaimIf(rows > 0, n)
	},
	Read: readIOProfile,
}

var ioProfileDate = pattern.New(`^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d( [AP]M)? [A-Z]+ \d{4}$`)

func readIOProfile(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "pt-ioprofile", State: attach.CannotTell}
	var names []string
	byCall, byFile, total := map[string]float64{}, map[string]float64{}, 0.0
	times := false
	for _, text := range texts(p) {
		f := strings.Fields(text)
		switch {
		case strings.HasPrefix(text, "Tracing process ID "):
			r.Who.PID, _ = whole(f[len(f)-1])
		case len(f) >= 3 && f[0] == "total" && f[len(f)-1] == "filename":
			names = f
		case len(names) > 0 && len(f) == len(names) && numbers(f[:len(f)-1]):
			for i, w := range f[:len(f)-1] {
				v, _ := number(w)
				times = times || strings.Contains(w, ".")
				if i == 0 {
					total += v
					byFile[f[len(f)-1]] += v
					continue
				}
				byCall[names[i]] += v
			}
		}
	}
	if !times || total <= 0 {
		r.Figures = []string{fmt.Sprintf("%s files", count(float64(len(byFile))))}
		r.Means = "It counts calls or bytes by file: no time is in it."
		return r
	}
	call, file := attach.Largest(byCall)[0], attach.Largest(byFile)[0]
	r.Figures = []string{fmt.Sprintf("%s in system calls on files, %s of it in %s", lasts(total),
		pct(byCall[call]/total), call),
		fmt.Sprintf("%s of it on %s", pct(byFile[file]/total), file)}
	r.Means = "It says how long threads were in calls on files; how long it was traced, and whether the calls slept, is not in it."
	r.Not = "strace slows the process down while it runs, and a lock of the file looks the same as a slow disk."
	syncs := byCall["fsync"] + byCall["fdatasync"]
	if total >= 0.1 && (syncs >= total/2 ||
		slices.Contains([]string{"read", "pread", "pread64", "write", "pwrite", "pwrite64"}, call)) {
		r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Candidate,
			Proof: []string{r.Figures[0]}})
	}
	r.Next = append(r.Next, ask("pidstat -d -p PID 1 10", r.Who.PID, "iodelay: how long it waits for disks"))
	return r
}

// rbspy is rbspy's summary, live or of a report.
var rbspy = &attach.Kind{
	Name:  "rbspy",
	Hints: []string{"% self"},
	Claim: func(lines []paste.Line) int {
		rows := 0
		n := claimed(lines, func(i int, text string) bool {
			switch f := strings.Fields(text); {
			case slices.Equal(f, []string{"%", "self", "%", "total", "name"}):
			case strings.HasPrefix(text, "Summary of profiling data so far"),
				strings.HasPrefix(text, "Time since start: "):
				return i == 0 || rows > 0
			case len(f) >= 3 && numbers(f[:2]):
				rows++
			default:
				return false
			}
			return true
		})
		if rows == 0 || !slices.ContainsFunc(lines[:min(4, len(lines))],
			func(l paste.Line) bool { return strings.HasPrefix(strings.TrimSpace(l.Text), "% self") }) {
			return 0
		}
		return n
	},
	Read: func(p *attach.Part) attach.Reading {
		r := attach.Reading{Title: "rbspy", State: attach.CannotTell}
		for _, text := range texts(p) {
			if f := strings.Fields(text); len(f) >= 3 && numbers(f[:2]) && len(r.Figures) < 3 {
				r.Figures = append(r.Figures,
					fmt.Sprintf("%s %% itself, %s %% with what it calls: %s", f[0], f[1], strings.Join(f[2:], " ")))
			}
		}
		r.Means = "It says where Ruby code was found. A method that sleeps, reads or locks waits there, and does not compute."
		r.Not = "Without --on-cpu samples of waiting threads count as well."
		r.Next = append(r.Next, record(0, "what the threads wait for"))
		return r
	},
}
