package profiler

import (
	"fmt"
	"math"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// readSessions reads tables of connections: how long one lives says nothing of a stall.
func readSessions(t *bpfTable) attach.Reading {
	r := t.reading("row")
	if len(t.rows) == 0 {
		return r
	}
	by := map[string]float64{}
	for _, row := range t.rows {
		by[row.owner()]++
	}
	who := attach.Largest(by)[0]
	r.Figures = append(r.Figures, fmt.Sprintf("%s of %d rows are %s's", count(by[who]), len(t.rows), who))
	if t.has("MS") {
		l := t.latencies("MS", 1e-3)
		r.Figures = append(r.Figures, l.says("session"))
	}
	r.Means = "It lists connections. How long one lives, and how much it carried, is no latency of a request."
	r.Not = "A long session is mostly one that was kept open."
	return r
}

// sentAgain is what a retransmit says.
const sentAgain = "Packets were sent again: they, or their answers, were lost or late on the way between two hosts. One that waited for its timer cost 200 ms or more, others a round trip."

// oftenLost is a rate of retransmits each second from which on they are more than the few that any
// network has.
const oftenLost = 0.5

// closing are states of a connection of which both ends know that it ends.
var closing = words("LAST_ACK FIN_WAIT1 FIN_WAIT2 FIN_WAIT_1 FIN_WAIT_2 CLOSING CLOSE CLOSED TIME_WAIT")

// readRetransmits reads tcpretrans and tcpdrop: what the network lost.
func readRetransmits(t *bpfTable) attach.Reading {
	r := t.reading("event")
	if len(t.rows) == 0 {
		return r
	}
	peers := map[string]float64{}
	states, inUse, rate := map[string]float64{}, 0, 0.0
	for _, row := range t.rows {
		peer := row.at("RADDR:RPORT")
		if peer == "" {
			peer = row.at("DADDR:DPORT")
		}
		peers[peer]++
		state, _, _ := strings.Cut(row.at("STATE"), " ")
		states[state]++
		if !closing[state] {
			inUse++
		}
	}
	peer := attach.Largest(peers)[0]
	r.Figures = append(r.Figures, fmt.Sprintf("%s of %d to %s", count(peers[peer]), len(t.rows),
		peer), fmt.Sprintf("%s in state %s", count(states[attach.Largest(states)[0]]), attach.Largest(states)[0]))
	if s := t.span(); s > 0 {
		rate = float64(inUse) / s
		r.Figures = append(r.Figures, perSecond(float64(len(t.rows)), s))
	}
	r.Means = sentAgain
	r.Not = "How many packets were sent in all is not in it, so no share of loss follows."
	switch {
	case t.tool.name == "tcpdrop":
		r.Means = "The kernel of this host dropped these segments: the functions below a row say where. What a peer still needs is sent again."
		r.Not = "A segment of a connection that was closed meanwhile is dropped as well, and costs nobody anything."
	case inUse >= 5 && rate >= oftenLost:
		r.Signs = append(r.Signs,
			attach.Sign{Grade: attach.Outside,
				Where: fmt.Sprintf("the network: %s", attach.Plural(inUse, "retransmit"))})
	case inUse == 0:
		r.Not = "These connections were being closed: no request waits for that. " + r.Not
	}
	r.Next = append(r.Next, attach.Next{Command: "ss -ti dst ADDRESS",
		Why: "retransmits and round trip time of these connections"})
	return r
}

// readConnects reads tcpconnlat: how long a peer took to accept.
func readConnects(t *bpfTable) attach.Reading {
	r := t.reading("connection")
	if len(t.rows) == 0 {
		return r
	}
	l := t.latencies("LAT(ms)", 1e-3)
	r.Figures = append(r.Figures, l.says("connection"), fmt.Sprintf("the longest is %s's to %s",
		l.longest.owner(), l.longest.at("DADDR")))
	r.Means = "It is the time until a peer answered a new connection: the network and the peer's kernel."
	if l.max() < 0.020 {
		r.Means = "Peers accepted these connections at once."
		if len(l.all) >= enoughRows {
			r.State = attach.Healthy
		}
		return r
	}
	r.Signs = append(r.Signs, attach.Sign{Grade: attach.Outside,
		Where: fmt.Sprintf("the network or the peer: a connection took up to %s", lasts(l.max()))})
	return r
}

// readOpens reads opensnoop.
func readOpens(t *bpfTable) attach.Reading {
	r := t.reading("open")
	failed, zero, by := 0, 0, map[string]float64{}
	for _, row := range t.rows {
		by[row.owner()]++
		switch {
		case row.num("ERR") != 0:
			failed++
		case row.at("FD") == "0":
			zero++
		}
	}
	if len(t.rows) == 0 {
		return r
	}
	who := attach.Largest(by)[0]
	r.Figures = append(r.Figures, fmt.Sprintf("%d of %d failed", failed, len(t.rows)),
		fmt.Sprintf("%s of them are %s's", count(by[who]), who))
	r.Means = "It lists opened files. No time is in it."
	r.Not = "Failed opens are mostly a search along a path."
	// Both tools have the same columns: what stands in FD is 0 for each stat that succeeds, and
	// an open hardly ever returns that.
	if strings.Contains(t.command, "statsnoop") || zero > 1 && zero+failed == len(t.rows) {
		r.Title = "statsnoop, " + attach.Plural(len(t.rows), "call") + " of stat"
		r.Means = "It lists calls of stat. No time is in it."
		r.Not = "Failed calls are mostly a search along a path."
	}
	return r
}

// readExecs reads execsnoop.
func readExecs(t *bpfTable) attach.Reading {
	r := t.reading("started program")
	if len(t.rows) == 0 {
		return r
	}
	if s := t.span(); s > 0 {
		r.Figures = append(r.Figures, perSecond(float64(len(t.rows)), s)+" programs started")
	}
	by := map[string]float64{}
	for _, row := range t.rows {
		name := row.owner()
		if f := strings.Fields(row.at("ARGS")); row.at("COMM") == "" && row.at("PCOMM") == "" && len(f) > 0 {
			name = f[0]
		}
		by[name]++
	}
	who := attach.Largest(by)[0]
	r.Figures = append(r.Figures, fmt.Sprintf("most often %s: %s of %d", who, count(by[who]), len(t.rows)))
	r.Means = "It lists programs that were started. Many short ones may cost CPU time that tables of processes do not show."
	r.Not = "What they cost is not in it."
	return r
}

// readCounts reads tables of counts.
func readCounts(t *bpfTable) attach.Reading {
	r := t.reading("row")
	column := "COUNT"
	for _, c := range []string{"COUNT", "READS"} {
		if t.has(c) {
			column = c
			break
		}
	}
	by, times, total := map[string]float64{}, map[string]float64{}, 0.0
	unit := 0.0
	for _, c := range t.columns {
		if strings.HasPrefix(c, "TIME(us)") {
			unit = 1e-6
		} else if strings.HasPrefix(c, "TIME(ms)") {
			unit = 1e-3
		}
	}
	for _, row := range t.rows {
		name := row.at(t.column("SYSCALL FUNC"))
		if name == "" {
			name = row.owner()
		}
		if name == "" {
			name = t.tool.name
		}
		by[name] += row.num(column)
		times[name] += (row.num("TIME(us)") + row.num("TIME(ms)")) * unit
		total += row.num(column)
	}
	if len(by) == 0 || total <= 0 {
		r.Means = "It has no row."
		return r
	}
	order := by
	if unit > 0 {
		order = times
	}
	for _, name := range attach.Largest(order)[:min(3, len(by))] {
		line := fmt.Sprintf("%s: %s (%s)", name, count(by[name]), pct(by[name]/total))
		if unit > 0 {
			line += ", " + lasts(times[name])
		}
		r.Figures = append(r.Figures, line)
	}
	r.Means = "It counts, and says nothing of how long anybody waited."
	if unit > 0 {
		r.Means = "Its times are from entry to exit: in epoll_wait, poll, futex and sleeps a thread mostly idles."
	}
	r.Not = "A high count is no cause of slowness by itself."
	return r
}

// cacheTotals is llcstat's last line.
var cacheTotals = pattern.New(`^Total References: (\d+) Total Misses: \d+ Hit Rate: ([\d.]+)%`)

// readCache reads hits and misses.
func readCache(t *bpfTable) attach.Reading {
	r := t.reading("row")
	hits, misses := 0.0, 0.0
	for _, row := range t.rows {
		if t.has("REFERENCE") {
			hits += row.num("REFERENCE") - row.num("MISS")
			misses += row.num("MISS")
			continue
		}
		hits += max(row.num("HITS"), 0)
		misses += max(row.num("MISSES"), 0)
	}
	spread := t.hitsByRow()
	what := "the page cache"
	r.Means = "Misses of the page cache are reads from a disk, or pages written for the first time; how long anybody waited for them is not in it."
	if t.has("REFERENCE") {
		what = "the last-level cache"
		r.Means = "Misses of the processor's cache make own computing slower; they are no stall."
	}
	m := cacheTotals.FindStringSubmatch(t.total)
	switch {
	case m != nil && t.heads <= 1:
		all, _ := number(m[1])
		r.Figures = append(r.Figures,
			fmt.Sprintf("%s%% of %s lookups in %s hit, by its line of totals", m[2], count(all), what))
	case hits+misses > 0 && t.cut:
		r.Figures = append(r.Figures,
			fmt.Sprintf("%s of %s lookups in %s hit in the rows that are here",
				pct(hits/(hits+misses)), count(hits+misses), what))
	case hits+misses > 0:
		r.Figures = append(r.Figures, fmt.Sprintf("%s of %s lookups in %s hit",
			pct(hits/(hits+misses)), count(hits+misses), what)+spread)
	}
	if len(t.rows) > 0 && !t.has("REFERENCE") && !t.has("COMM") && !t.has("CMD") {
		each := t.interval()
		if each == 0 && t.span() > 0 {
			each = t.span() / float64(len(t.rows)-1)
		}
		mean := misses / float64(len(t.rows))
		line := fmt.Sprintf("%s pages missed in the mean of the rows, each of a second where no other interval was asked for",
			count(math.Round(mean)))
		if each > 0 {
			line = fmt.Sprintf("%s pages/s missed in the mean, %.3g MiB/s where a page is 4 KiB",
				count(math.Round(mean/each)), mean/each/256)
		}
		r.Figures = append(r.Figures, line)
		if c := t.column("CACHE_MB CACHED_MB"); c != "" {
			r.Figures = append(r.Figures, fmt.Sprintf("the cache holds %s MB", t.rows[len(t.rows)-1].at(c)))
		}
	}
	if hits+misses >= 1000 && misses > 0.5*(hits+misses) && !t.has("REFERENCE") {
		r.Means = "Most look-ups miss the page cache: what is read may be larger than memory, or read once, and pages that are written for the first time miss it as well. How long anybody waited is not in it."
	}
	r.Not = "A hit rate is no latency."
	if !t.has("REFERENCE") && hits+misses >= 1000 && misses <= 0.01*(hits+misses) {
		r.Means = fmt.Sprintf("What was read was in the page cache: %s of %s lookups here missed it.", count(misses), count(hits+misses))
		r.Not = "Reads past the page cache (O_DIRECT) are not in it, and on newer kernels some versions of the tool see no misses. " + r.Not
	}
	return r
}

// readInterrupts reads hardirqs and softirqs: sums of time.
func readInterrupts(t *bpfTable) attach.Reading {
	r := t.reading("row")
	by, unit := map[string]float64{}, 1e-6
	column := ""
	for _, c := range t.columns {
		if strings.HasPrefix(c, "TOTAL_") && (column == "" || strings.HasSuffix(c, "secs")) {
			column = c
		}
	}
	if strings.HasSuffix(column, "nsecs") {
		unit = 1e-9
	}
	total := 0.0
	for _, row := range t.rows {
		v := row.num(column) * unit
		by[row.at("HARDIRQ")+row.at("SOFTIRQ")] += v
		total += v
	}
	if len(by) == 0 {
		return r
	}
	for _, name := range attach.Largest(by)[:min(3, len(by))] {
		r.Figures = append(r.Figures, fmt.Sprintf("%s: %s (%s)", name, lasts(by[name]),
			pct(by[name]/max(total, 1e-12))))
	}
	r.Next = append(r.Next, attach.Next{Command: "mpstat -P ALL 1 10", Why: "the share of %irq and %soft by CPU"})
	each := t.interval()
	if each == 0 || column == "" || strings.HasSuffix(column, "count") {
		r.Means = fmt.Sprintf("Interrupts took %s of CPU time in all; over how long is not in the table.", lasts(total))
		if column == "" || strings.HasSuffix(column, "count") {
			r.Figures, r.Means = nil, "It counts interrupts, and not what they took."
			t.largest(&r, t.counted(), "")
		}
		r.Not = "Only as a share of one CPU's time would it say that interrupts crowd threads out."
		return r
	}
	ofCPU := total / (each * float64(max(t.heads, 1)))
	r.Means = fmt.Sprintf("Interrupts took %s of CPU time in %s: as much as %s of one CPU.",
		lasts(total), lasts(each*float64(max(t.heads, 1))), pct(ofCPU))
	r.Not = "On which CPUs they ran is not in it: on one CPU they crowd its threads out, on many they hardly do."
	if ofCPU >= muchOfCPU {
		r.Signs = append(r.Signs, attach.Sign{Cause: "softirq", Grade: attach.Candidate,
			Share: min(1, ofCPU), Proof: []string{r.Means}})
	}
	return r
}

// muchOfCPU is the time in interrupts, as a share of one CPU, from which on its threads feel it.
const muchOfCPU = 0.3

// counted are the rows of hardirqs and softirqs that have counts and no times.
func (t *bpfTable) counted() map[string]float64 {
	by := map[string]float64{}
	for _, row := range t.rows {
		by[row.at("HARDIRQ")+row.at("SOFTIRQ")] += row.num("TOTAL_count")
	}
	return by
}

// readOutside reads tools whose time is in somebody else's hands: names, queries.
func readOutside(t *bpfTable) attach.Reading {
	r := t.reading("row")
	column, where := "MS", "the database: queries"
	if t.has("HOST") {
		column, where = "LATms", "resolving host names"
		if !t.has("LATms") {
			for _, c := range t.columns {
				if strings.HasPrefix(c, "LAT") {
					column = c
				}
			}
		}
	}
	if len(t.rows) == 0 {
		return r
	}
	l := t.latencies(column, 1e-3)
	r.Figures = append(r.Figures, l.says("row"), "the longest: "+l.longest.at("QUERY")+l.longest.at("HOST"))
	r.Means = fmt.Sprintf("The time is in %s, up to %s: outside what whystall can look into.", where, lasts(l.max()))
	if l.max() >= 0.050 {
		r.Signs = append(r.Signs,
			attach.Sign{Grade: attach.Outside, Where: fmt.Sprintf("%s, up to %s", where, lasts(l.max()))})
	}
	return r
}

// readPauses reads ugc: collections of garbage by a runtime.
func readPauses(t *bpfTable) attach.Reading {
	r := t.reading("collection")
	if len(t.rows) == 0 {
		return r
	}
	l := t.latencies("TIME(us)", 1e-6)
	r.Figures = append(r.Figures, l.says("collection"))
	r.Means = "It lists collections of garbage with their lengths; whether the program stood still meanwhile depends on the runtime."
	return r
}

// readEvents reads trace and argdist: events with what a person asked for.
func readEvents(t *bpfTable) attach.Reading {
	r := t.reading("row")
	by := map[string]float64{}
	for _, row := range t.rows {
		if t.has("EVENT") {
			by[row.at("EVENT")] += row.num("COUNT")
		} else {
			by[row.owner()]++
		}
	}
	for _, name := range attach.Largest(by)[:min(3, len(by))] {
		r.Figures = append(r.Figures, fmt.Sprintf("%s: %s", name, count(by[name])))
	}
	r.Means = "It lists events that a probe saw: what they mean is in the command that asked for them."
	r.Not = "A count is no latency."
	return r
}
