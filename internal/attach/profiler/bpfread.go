package profiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// latencies are the values of a column of a table, sorted, in seconds.
type latencies struct {
	all     []float64
	sum     float64
	longest bpfRow // its row
	by      map[string]float64
}

// overflown is a time in seconds that no call takes: a clock that went backwards between two
// readings, counted without a sign, gives up to 2^64 ns.
const overflown = 1e9

// dropAbsurd leaves out rows whose time is absurd.
func (t *bpfTable) dropAbsurd() {
	t.rows = slices.DeleteFunc(t.rows, func(row bpfRow) bool {
		for column, unit := range map[string]float64{"LAT(ms)": 1e-3, "LAT(us)": 1e-6, "MS": 1e-3,
			"TIME(us)": 1e-6, "QUE(ms)": 1e-3} {
			if row.num(column)*unit >= overflown {
				t.wrong++
				return true
			}
		}
		return false
	})
}

func (t *bpfTable) latencies(column string, unit float64) latencies {
	l := latencies{by: map[string]float64{}}
	top := -1.0
	for _, row := range t.rows {
		v := row.num(column) * unit
		l.all = append(l.all, v)
		l.sum += v
		l.by[row.owner()] += v
		if v > top {
			top, l.longest = v, row
		}
	}
	slices.Sort(l.all)
	return l
}

func (l *latencies) max() float64 {
	if len(l.all) == 0 {
		return 0
	}
	return l.all[len(l.all)-1]
}

func (l *latencies) says(what string) string {
	n := len(l.all)
	if n == 0 {
		return "no " + what
	}
	return l.saysEach(what) + ", " + lasts(l.sum) + " in all"
}

// saysEach leaves out the sum: of what overlaps it is no time.
func (l *latencies) saysEach(what string) string {
	return fmt.Sprintf("%s: median %s, longest %s", attach.Plural(len(l.all), what),
		lasts(attach.Median(l.all)), lasts(l.max()))
}

// over counts the values that are at least this long.
func (l *latencies) over(least float64) int {
	at, _ := slices.BinarySearch(l.all, least)
	return len(l.all) - at
}

// table is the start of a reading.
func (t *bpfTable) reading(what string) attach.Reading {
	r := attach.Reading{Title: fmt.Sprintf("%s, %s", t.tool.name, attach.Plural(len(t.rows), what)),
		State: attach.CannotTell}
	if s := t.span(); s > 0 {
		r.Title += " in " + lasts(s)
	}
	if t.left > 0 {
		r.Flaws = append(r.Flaws, fmt.Sprintf("only the first %d rows are read", len(t.rows)))
	}
	if t.cut {
		r.Flaws = append(r.Flaws, "rows were cut out of it: sums are of those that are here")
	}
	if t.wrong > 0 {
		r.Flaws = append(r.Flaws,
			fmt.Sprintf("%s left out: a time of more than 30 years is a clock that went backwards",
				attach.Plural(t.wrong, "row")))
	}
	if len(t.rows) == 0 {
		r.Means = "It has no event, which says nothing unless it ran while the service was slow."
	}
	return r
}

// Facts of drsnoop.
const (
	ReclaimStall attach.FactName = "/drsnoop/stalled:ns"        // in all
	ReclaimRate  attach.FactName = "/drsnoop/stalls:per-second" // only where the rows have times
)

// readReclaims reads drsnoop: each row is a thread that freed memory itself before it got some.
func readReclaims(t *bpfTable) attach.Reading {
	r := t.reading("direct reclaim")
	if len(t.rows) == 0 {
		return r
	}
	l := t.latencies("LAT(ms)", 1e-3)
	who := attach.Largest(l.by)[0]
	r.Figures = append(r.Figures, l.says("direct reclaim"), fmt.Sprintf("%s of it in %s", lasts(l.by[who]), who),
		fmt.Sprintf("%s took 10 ms or longer; the longest is %s's",
			attach.Plural(l.over(0.010), "stall"), l.longest.owner()))
	r.Facts = append(r.Facts, attach.Fact{Name: ReclaimStall, Value: l.sum * 1e9})
	share, sure := 0.0, finding.Possible
	if s := t.span(); s > 0 {
		r.Facts = append(r.Facts, attach.Fact{Name: ReclaimRate, Value: float64(len(t.rows)) / s})
		share = min(1, l.by[who]/s)
	}
	r.Not = "Whether a request waited in such a stall is not in it; reclaim of a memory cgroup looks the same."
	proof := fmt.Sprintf("threads stalled %s in %s, up to %s each", lasts(l.sum),
		attach.Plural(len(t.rows), "direct reclaim"), lasts(l.max()))
	switch {
	case share >= 0.05 && l.sum >= 0.05:
		sure = finding.Supported
		proof += fmt.Sprintf("; %s lost %s of the time to it", who, pct(share))
		fallthrough
	case l.max() >= 0.010 && l.sum >= 0.02, l.sum >= 0.1:
		r.State = attach.Ill
		r.Means = upper(proof) + "."
		r.Signs = append(r.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Found,
			Sure: sure, Share: share, Proof: []string{proof}})
		if s := t.span(); s > 0 && l.sum < 0.005*s && l.max() < 0.1 { // over so long it is little
			sign := &r.Signs[len(r.Signs)-1]
			r.State, sign.Grade, sign.Sure = attach.CannotTell, attach.Candidate, ""
		}
		r.Next = append(r.Next,
			ask("grep -E 'allocstall|compact_stall|pgscan_direct ' /proc/vmstat; sleep 10; grep -E 'allocstall|compact_stall|pgscan_direct ' /proc/vmstat", 0, "how often it goes on"))
	default:
		r.Means = fmt.Sprintf("Threads do free memory themselves, and the stalls are short: %s at most.", lasts(l.max()))
	}
	return r
}

// readBlockIO reads biosnoop.
func readBlockIO(t *bpfTable) attach.Reading {
	r := t.reading("I/O")
	if len(t.rows) == 0 {
		return r
	}
	l := t.latencies("LAT(ms)", 1e-3)
	h := &histogram{unit: "usecs"}
	for _, v := range l.all {
		h.add(bucket{v * 1e6, v*1e6 + 1, 1})
	}
	r.Figures = append(r.Figures, l.saysEach("I/O"), fmt.Sprintf("%d of %d took 10 ms or longer",
		l.over(0.010), len(l.all)),
		fmt.Sprintf("the longest is %s's on %s", l.longest.owner(), l.longest.at("DISK")))
	share := float64(l.over(0.010)) / float64(len(l.all))
	r.Not = "It is the disk's time for everybody: whether a request waited for it is not in it, and write-back waits for nobody."
	median := attach.Median(l.all)
	switch {
	case len(l.all) < 10:
		r.Means = fmt.Sprintf("These are %s: too few to judge a disk.", attach.Plural(len(l.all), "I/O"))
	case median >= flashLate && t.flash():
		proof := fmt.Sprintf("half of the I/Os of NVMe took %s or longer, where such a device needs some 0.1 ms", lasts(median))
		r.Means = upper(proof) + ": it queues, or each write waits for a flush of its cache."
		r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Candidate, Proof: []string{proof}})
		r.Next = append(r.Next, record(0, "whose requests waited for it"))
	case share < 0.02:
		r.Means = fmt.Sprintf("The disk answered in time: the median is %s.", lasts(median))
		if len(l.all) >= enoughRows {
			r.State = attach.Healthy
			r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Against, Share: share})
		}
	default:
		proof := fmt.Sprintf("%s of the I/Os took 10 ms or longer, up to %s", pct(share), lasts(l.max()))
		r.Means = upper(proof) + "."
		r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Candidate,
			Share: share, Proof: []string{proof}})
		if t.writtenBack() {
			r.Means += " Nearly all of these are of threads of the kernel, which write behind the programs."
		} else if share >= 0.2 && l.max() >= 0.05 && len(l.all) >= 20 {
			r.State = attach.Ill
			r.Signs[0].Grade, r.Signs[0].Sure = attach.Found, finding.Possible
		}
		r.Next = append(r.Next, record(0, "whose requests waited for it"))
	}
	return r
}

// writtenBack reports whether threads of the kernel did nearly all of the slow I/O of biosnoop. For
// the journal's thread those wait who call fsync.
func (t *bpfTable) writtenBack() bool {
	slow, behind := 0, 0
	for _, row := range t.rows {
		if row.num("LAT(ms)") < 10 {
			continue
		}
		slow++
		if comm := row.owner(); kernelThread(comm) && !strings.HasPrefix(comm, "jbd2") {
			behind++
		}
	}
	return slow > 0 && behind*5 >= slow*4
}

// flashLate is a median in seconds at which NVMe devices are late.
const flashLate = 0.002

// flash reports whether all rows are of NVMe devices. Other names do not say what a disk is.
func (t *bpfTable) flash() bool {
	return !slices.ContainsFunc(t.rows, func(row bpfRow) bool { return !strings.HasPrefix(row.at("DISK"), "nvme") })
}

// enoughRows is how many rows of single events say that all is well: of fewer, the late ones may be
// those that were not seen.
const enoughRows = 30

// readFsyncs reads fsyncsnoop of perf-tools: each row is a call that wrote a file's data to disk.
func readFsyncs(t *bpfTable) attach.Reading {
	r := t.reading("fsync")
	if len(t.rows) == 0 {
		return r
	}
	l := t.latencies("LATms", 1e-3)
	who := attach.Largest(l.by)[0]
	r.Figures = append(r.Figures, l.says("fsync"),
		fmt.Sprintf("%d of %d took 10 ms or longer; the longest is of %s, pid %s", l.over(0.010),
			len(l.all), l.longest.owner(), l.longest.at("PID")),
		fmt.Sprintf("%s of it in %s", lasts(l.by[who]), who))
	r.Not = "A thread that syncs waits for it: whether a request waited for that thread is not in it."
	if n := l.over(0.010); n > 0 {
		proof := fmt.Sprintf("%d of %s took 10 ms or longer, up to %s", n,
			attach.Plural(len(l.all), "fsync"), lasts(l.max()))
		r.Means = upper(proof) + "; half took " + lasts(l.all[(len(l.all)-1)/2]) + " or less."
		r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Candidate,
			Share: float64(n) / float64(len(l.all)), Proof: []string{proof}})
		r.Next = append(r.Next, ask("biolatency-bpfcc -m 10 1", 0, "whether the disk took that time"))
		return r
	}
	r.Means = fmt.Sprintf("Data reached the disk in time: %s at most.", lasts(l.max()))
	if len(l.all) >= enoughRows {
		r.State = attach.Healthy
	}
	return r
}

// readSlowFiles reads ext4slower and its kin: only calls above a threshold are listed.
func readSlowFiles(t *bpfTable) attach.Reading {
	r := t.reading("slow call")
	if len(t.rows) == 0 {
		r.State, r.Means = attach.CannotTell,
			"No row stands below its head: either no call was slower than the tool's threshold, or the rows were cut off."
		return r
	}
	l := t.latencies("LAT(ms)", 1e-3)
	kinds, remote := map[string]float64{}, false // commit and getattr are calls to a server of files
	names := map[string]string{"R": "read", "W": "write", "S": "sync", "F": "sync", "O": "open", "C": "commit", "G": "getattr"}
	for _, row := range t.rows {
		kind := row.at("T")
		if kind == "" {
			kind = row.at("D")
		}
		if kind != "" && names[kind] == "" {
			names[kind] = kind + " call"
		}
		remote = remote || kind == "C" || kind == "G"
		kinds[cmp.Or(names[kind], "call")]++
	}
	var parts string
	// Rows of the kernel's own threads are write-back, for which no request waits.
	behind := slices.ContainsFunc(t.rows, func(row bpfRow) bool { return kernelThread(row.owner()) })
	for i, k := range attach.Largest(kinds) {
		if i > 0 {
			parts += ", "
		}
		parts += attach.Plural(int(kinds[k]), k)
	}
	who := attach.Largest(l.by)[0]
	r.Figures = append(r.Figures, l.says("slow call"), parts,
		fmt.Sprintf("%s of it in %s; the longest is %s's on %s", lasts(l.by[who]), who,
			l.longest.owner(), l.longest.at("FILENAME")))
	r.Not = "Only calls above the tool's threshold are listed, so a median of them is no median of calls. A lock of the file or a full page cache looks the same as a slow disk."
	if remote || strings.Contains(t.said, "NFS") || strings.Contains(t.command, "nfsslower") {
		r.Means = "Calls on files of NFS took long: the time is most likely in the server of these files or on the way to it."
		if l.over(0.010) >= 3 {
			r.Signs = append(r.Signs,
				attach.Sign{Grade: attach.Outside, Where: "the NFS server, or the network to it: " +
					l.says("slow call")})
		}
		r.Next = append(r.Next, ask("nfsiostat 5 3", 0, "how long the server takes for each call"))
		return r
	}
	proof := fmt.Sprintf("%s on files, %s in all, up to %s each",
		attach.Plural(len(l.all), "slow call"), lasts(l.sum), lasts(l.max()))
	if behind {
		t.rows = slices.DeleteFunc(t.rows, func(row bpfRow) bool { return kernelThread(row.owner()) })
		l = t.latencies("LAT(ms)", 1e-3)
		if len(t.rows) == 0 {
			r.Means = "All of these are calls of threads of the kernel, which write behind the programs: whether anybody waited for them is not in it."
			return r
		}
		proof = fmt.Sprintf("without threads of the kernel, %s on files, %s in all, up to %s each",
			attach.Plural(len(l.all), "slow call"), lasts(l.sum), lasts(l.max()))
	}
	if n := l.over(0.010); n >= 3 && l.sum >= 0.1 && l.max() >= 0.020 && localFiles.MatchString(t.said+" "+t.command) {
		r.State = attach.Ill
		r.Means = upper(proof) + "."
		r.Signs = append(r.Signs, diskSign(proof, 0))
		r.Next = append(r.Next, ask("biolatency-bpfcc -m 10 1", 0, "whether the disk took that time"))
		return r
	}
	r.Means = upper(proof) + "."
	if l.max() < 0.050 && l.sum < 0.5 {
		r.Means = upper(proof) + ": that is little."
		return r
	}
	sign := diskSign(proof, 0)
	sign.Grade, sign.Sure = attach.Candidate, ""
	r.Signs = append(r.Signs, sign)
	r.Next = append(r.Next, ask("biolatency-bpfcc -m 10 1", 0, "whether the disk took that time"))
	return r
}

// localFiles are file systems of disks of this machine. The table itself is the same for files of
// another one.
var localFiles = pattern.New(`(?i)ext[234]|xfs|btrfs|f2fs|zfs`)

// readSlowFunctions reads funcslower: calls of a function that took longer than a threshold.
func readSlowFunctions(t *bpfTable) attach.Reading {
	r := t.reading("slow call")
	column, scale := "LAT(us)", 1e-6
	if t.has("LAT(ms)") {
		column, scale = "LAT(ms)", 1e-3
	}
	if len(t.rows) == 0 {
		return r
	}
	l := t.latencies(column, scale)
	by := map[string]float64{}
	for _, row := range t.rows {
		by[row.at("FUNC")] += row.num(column) * scale
	}
	r.Figures = append(r.Figures, l.says("call"),
		fmt.Sprintf("%s of it in %s", lasts(by[attach.Largest(by)[0]]), attach.Largest(by)[0]))
	r.Means = "It says how long calls of a function took, its own waiting included, and not what it waited for."
	r.Not = "Only calls above the threshold are listed, so they are no share of all."
	return r
}

// readBlockTop reads biotop.
func readBlockTop(t *bpfTable) attach.Reading {
	r := t.reading("row")
	if len(t.rows) == 0 {
		return r
	}
	top, longest := t.rows[0], t.rows[0]
	slow := 0
	for _, row := range t.rows {
		if row.num("AVGms") >= 10 {
			slow++
		}
		if row.num("AVGms") > longest.num("AVGms") {
			longest = row
		}
	}
	r.Figures = append(r.Figures,
		fmt.Sprintf("%s: %s I/Os of %s KB in all, %s ms each in the mean, on %s", top.owner(),
			top.at("I/O"), top.at("Kbytes"), top.at("AVGms"), top.at("DISK")),
		fmt.Sprintf("%d of %d rows have a mean of 10 ms or more", slow, len(t.rows)))
	if longest.num("AVGms") > top.num("AVGms") {
		r.Figures = append(r.Figures, fmt.Sprintf("the longest mean is %s ms, of %s I/Os of %s on %s",
			longest.at("AVGms"), longest.at("I/O"), longest.owner(), longest.at("DISK")))
	}
	r.Means = "It says who does I/O, and how long the disk takes for it in the mean."
	r.Not = "A mean hides the slow ones, and whether requests waited is not in it."
	if slow > 0 {
		r.Signs = append(r.Signs, attach.Sign{Cause: "disk-wait", Grade: attach.Candidate,
			Proof: []string{fmt.Sprintf("a mean of 10 ms or more in %s", attach.Plural(slow, "row"))}})
		r.Next = append(r.Next, ask("biolatency-bpfcc -m 10 1", 0, "how the times are spread"))
	}
	return r
}
