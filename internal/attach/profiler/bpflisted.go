package profiler

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// readListed reads tools whose rows bear on no cause: what is most frequent or largest of what they
// list.
func readListed(t *bpfTable) attach.Reading {
	l := t.tool.listed
	r := t.reading(l.what)
	r.Not = l.not
	if len(t.rows) == 0 {
		return r
	}
	r.State, r.Means = attach.Context, l.means
	switch column := t.column(l.sum); {
	case l.mean:
		t.medians(&r, strings.Fields(l.sum))
	case column != "":
		t.largest(&r, t.sums(column), column)
	default:
		if s := t.span(); s > 0 {
			r.Figures = append(r.Figures, perSecond(float64(len(t.rows)), s))
		}
		t.largest(&r, t.sums(""), "")
	}
	return r
}

// sums adds up a column by what is counted; "": it counts the rows.
func (t *bpfTable) sums(column string) map[string]float64 {
	by, of := map[string]float64{}, t.column(t.tool.by)
	for _, row := range t.rows {
		name := row.at(of)
		if of == "" {
			name = row.owner()
		}
		if column == "" {
			by[name]++
		} else {
			by[name] += row.num(column)
		}
	}
	return by
}

// largest tells of the largest sums.
func (t *bpfTable) largest(r *attach.Reading, by map[string]float64, column string) {
	total := 0.0
	for _, v := range by {
		total += v
	}
	for _, name := range attach.Largest(by) {
		if len(r.Figures) == 3 || total <= 0 {
			return
		}
		says := fmt.Sprintf("%.60s: %s of %s", name, figure(by[name]), figure(total))
		if column != "" {
			says += " " + column
		}
		r.Figures = append(r.Figures, says)
	}
}

// figure writes a sum that may have a fraction.
func figure(v float64) string {
	if v == math.Trunc(v) || v > 1e6 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return fmt.Sprintf("%.4g", v)
}

// medians tells of rates.
func (t *bpfTable) medians(r *attach.Reading, columns []string) {
	for _, c := range columns {
		var all []float64
		for _, row := range t.rows {
			if t.has(c) {
				all = append(all, row.num(c))
			}
		}
		if len(all) > 0 {
			r.Figures = append(r.Figures, fmt.Sprintf("%s %s in the median of %s",
				count(attach.Median(all)), c, attach.Plural(len(all), "row")))
		}
	}
}

// What counts as many, each second.
const (
	manySwapIns = 16  // pages: 64 KiB
	manyThreads = 100 // new threads or processes
)

// readSwapIns reads swapin, which counts pages each second if it is not told another interval.
func readSwapIns(t *bpfTable) attach.Reading {
	r := t.reading("row")
	by, total := map[string]float64{}, 0.0
	for _, row := range t.rows {
		by[row.owner()] += row.num("COUNT")
		total += row.num("COUNT")
	}
	each := t.interval()
	if each == 0 {
		each = 1
	}
	rate := total / (each * float64(max(t.heads, 1)))
	r.Figures = append(r.Figures, fmt.Sprintf("%s pages came back from swap, %s in the mean of %s",
		count(total), perSecond(rate, 1), attach.Plural(t.heads, "interval")))
	t.tool = &bpfTool{name: t.tool.name}
	t.largest(&r, by, "")
	r.Not = "A page that comes back from swap makes one thread wait for the disk; whether it was a request's is not in it."
	switch {
	case total == 0:
		r.Means = "No page came back from swap while it ran."
		if t.heads >= 3 {
			r.State = attach.Healthy
		}
	case rate < manySwapIns:
		r.Means = "Few pages come back from swap."
	default:
		r.Means = "Threads wait for pages which come back from swap: memory is short, or was short before."
		for _, cause := range []string{"page-fault", "direct-reclaim"} {
			r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate, Proof: r.Figures[:1]})
		}
		r.Next = append(r.Next, ask("vmstat 1 10", 0, "si and so: whether it swaps all the time"))
	}
	return r
}

// readSlowSoftirqs reads softirqslower: only those above a threshold are listed.
func readSlowSoftirqs(t *bpfTable) attach.Reading {
	r := t.reading("slow softirq")
	if len(t.rows) == 0 {
		return r
	}
	l := t.latencies("LAT(us)", 1e-6)
	by := map[string]float64{}
	for _, row := range t.rows {
		by[row.at("SOFTIRQ")]++
	}
	r.Figures = append(r.Figures, l.says("softirq"))
	t.largest(&r, by, "")
	r.Means = "Softirqs started late or ran long: packets and timers of that CPU waited so long, and the thread on it as well."
	r.Not = "Only those above the threshold are listed, so they are no share of all."
	if l.max() >= 0.001 {
		r.Signs = append(r.Signs, attach.Sign{Cause: "softirq", Grade: attach.Candidate, Proof: r.Figures[:1]})
		r.Next = append(r.Next, ask("mpstat -P ALL 1 10", 0, "the share of %irq and %soft by CPU"))
	}
	return r
}

// readNewThreads reads threadsnoop.
func readNewThreads(t *bpfTable) attach.Reading {
	r := t.reading("new thread")
	if len(t.rows) == 0 {
		return r
	}
	by := map[string]float64{}
	for _, row := range t.rows {
		by[row.owner()]++
	}
	r.Means = "It lists threads that programs started. A pool that is kept starts none."
	r.Not = "What they cost is not in it."
	rate := 0.0
	if s := t.span(); s > 0 {
		rate = float64(len(t.rows)) / s
		r.Figures = append(r.Figures, perSecond(float64(len(t.rows)), s)+" new threads")
	}
	t.largest(&r, by, "")
	churn(&r, rate, "threads")
	return r
}

// churn says what a rate of new threads or processes means.
func churn(r *attach.Reading, rate float64, what string) {
	if rate < manyThreads {
		return
	}
	r.Means = fmt.Sprintf("%.0f new %s a second: each costs CPU time of the kernel, and its program's start.", rate, what)
	r.Signs = append(r.Signs, attach.Sign{Cause: "thread-churn", Grade: attach.Candidate, Proof: r.Figures[:1]})
	r.Next = append(r.Next, ask("perf record -a -g -- sleep 10; perf script", 0, "which share of the CPU time that is"))
}

// readLateReads reads tcppktlat: how long what had arrived lay before the program read it.
func readLateReads(t *bpfTable) attach.Reading {
	r := t.reading("late read")
	if len(t.rows) == 0 {
		return r
	}
	l := t.latencies("MS", 1e-3)
	r.Figures = append(r.Figures, l.says("read"))
	t.largest(&r, l.by, "s")
	r.Means = "What had arrived lay in the kernel so long before the program read it: the network is not what that time was lost to."
	r.Not = "Why the program came late is not in it: it may have waited for a CPU or a lock, or have worked on the request before. Only reads above a threshold are listed."
	r.Next = append(r.Next, record(0, "what the program did meanwhile"))
	return r
}

// readPageMoves reads numamove: pages moved between nodes each second, and the time that took.
func readPageMoves(t *bpfTable) attach.Reading {
	r := t.reading("interval")
	if len(t.rows) == 0 {
		return r
	}
	var pages, spent []float64
	for _, row := range t.rows {
		pages, spent = append(pages, row.num("NUMA_migrations")), append(spent, row.num("NUMA_migrations_ms"))
	}
	ms := attach.Median(spent)
	r.Figures = append(r.Figures,
		fmt.Sprintf("%s pages moved between NUMA nodes each second (median), which took %s ms",
			count(attach.Median(pages)), count(ms)))
	r.Not = "The time is of all threads that touched such pages; whose requests they worked on is not in it."
	r.Means = "Moving pages between NUMA nodes costs threads little here."
	switch {
	case ms >= 50 && len(t.rows) >= 3:
		r.Means = "Threads lose time while the kernel moves pages that they touch to another NUMA node."
		r.Signs = append(r.Signs, attach.Sign{Cause: "numa-balancing", Grade: attach.Candidate,
			Share: min(1, ms/1000), Proof: r.Figures[:1]})
		r.Next = append(r.Next, record(0, "whose requests lose how much time to it"))
	case len(t.rows) >= 3:
		r.State = attach.Healthy
		r.Signs = append(r.Signs, attach.Sign{Cause: "numa-balancing", Grade: attach.Against})
	}
	return r
}

// readAccepts reads tcpaccept; bpftrace's has how full the queue of accepted connections was.
func readAccepts(t *bpfTable) attach.Reading {
	r := t.reading("accepted connection")
	if len(t.rows) == 0 {
		return r
	}
	by := map[string]float64{}
	fullest, says := 0.0, ""
	for _, row := range t.rows {
		by[row.owner()]++
		queued, backlog, ok := strings.Cut(row.at("BL"), "/")
		n, _ := number(queued)
		if of, _ := number(backlog); ok && of > 0 && n/of >= fullest {
			fullest, says = n/of, row.at("BL")
		}
	}
	r.State = attach.Context
	if s := t.span(); s > 0 {
		r.Figures = append(r.Figures, perSecond(float64(len(t.rows)), s)+" accepted")
	}
	if says != "" {
		r.Figures = append(r.Figures, "the queue of a listening socket was at most "+says+" full")
	}
	t.largest(&r, by, "")
	r.Means = "It lists connections that programs accepted. A new one for each request costs a round trip each."
	r.Not = "How long one waited to be accepted is not in it."
	if fullest >= 0.8 {
		r.State = attach.CannotTell
		r.Means = "The queue of a listening socket was all but full: the program accepts too slowly, or its backlog is small. More connections are dropped, and tried again after a second."
		r.Next = append(r.Next,
			ask("nstat -az TcpExtListenOverflows TcpExtListenDrops; sleep 10; nstat -az TcpExtListenOverflows TcpExtListenDrops", 0, "whether it overflows now"))
	}
	return r
}

// readRetransmitSums reads tcpretrans -c, a count for each connection.
func readRetransmitSums(t *bpfTable) attach.Reading {
	r := t.reading("connection")
	if len(t.rows) == 0 {
		return r
	}
	by, total := map[string]float64{}, 0.0
	for _, row := range t.rows {
		by[row.at("RADDR:RPORT")] += row.num("RETRANSMITS")
		total += row.num("RETRANSMITS")
	}
	t.largest(&r, by, "retransmits")
	r.Means = sentAgain
	r.Not = "How many packets were sent in all, and over how long, is not in it: no share and no rate follows."
	r.Next = append(r.Next, attach.Next{Command: "ss -ti dst ADDRESS",
		Why: "retransmits and round trip time of these connections"})
	return r
}
