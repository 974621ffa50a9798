package kernelfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// Facts of a cgroup's CPU controller. Shares are 0..1.
const (
	FactThrottledShare attach.FactName = "/cgroup/cpu/throttled:share"      // of the periods in which it had work
	FactThrottledTime  attach.FactName = "/cgroup/cpu/throttled-time:share" // of a CPU, in those periods
	FactQuota          attach.FactName = "/cgroup/cpu/quota:cpus"           // 0: none at this level
	FactPeriod         attach.FactName = "/cgroup/cpu/period:ns"
)

var cpuStatSure = oneOf("nr_periods nr_throttled throttled_time throttled_usec usage_usec nr_bursts burst_usec burst_time")

var cpuStatKnown = oneOf("nr_periods nr_throttled throttled_time throttled_usec usage_usec user_usec system_usec nice_usec nr_bursts burst_usec burst_time " +
	"wait_sum current_bw core_sched.force_idle_usec user system")

// cpuStatRow is two of its counters that somebody put on one line.
var cpuStatRow = pattern.New(`^nr_periods[ :=]+(\d{1,15})[ ,;]+nr_throttled[ :=]+(\d{1,15})(?:[ ,;(].*)?$`)

var cpuStat = &attach.Kind{
	Name: "cpu.stat", Joins: true,
	Claim: starting("a-z", 80, repeated(func(lines []paste.Line) int {
		if cpuStatRow.MatchString(strings.TrimSpace(lines[0].Text)) {
			return 1
		}
		return claimPairs(lines, cpuStatKnown, cpuStatSure, nil, 9)
	})),
	Read: func(p *attach.Part) attach.Reading {
		if f := cpuStatRow.FindStringSubmatch(strings.TrimSpace(p.Lines[0].Text)); f != nil && len(p.Lines) == 1 {
			m := parsePairs([]string{"nr_periods " + f[1], "nr_throttled " + f[2]})
			return cpuGroup{all: []sample{{at: p.Lines[0].Time}}, stats: []pairs{m}}.read()
		}
		all, m := pairSamples(p)
		return cpuGroup{all: all, stats: m}.read()
	},
}

// cpuMax is known alone only where it has no quota, or the usual period: other pairs of numbers may
// be anything.
var cpuMax = &attach.Kind{
	Name: "cpu.max",
	Claim: func(lines []paste.Line) int {
		if q, period, ok := parseCPUMax(lines[0].Text); ok && (q < 0 || period == 100e6 && q >= 1e6) {
			return 1
		}
		return 0
	},
	Read: func(p *attach.Part) attach.Reading {
		q, period, _ := parseCPUMax(p.Lines[0].Text)
		return cpuGroup{quota: q, period: period, hasQuota: true}.read()
	},
}

// parseCPUMax reads "50000 100000" or "max 100000", into ns; a quota of -1 is none.
func parseCPUMax(text string) (quota, period float64, ok bool) {
	f := strings.Fields(text)
	if len(f) != 2 {
		return 0, 0, false
	}
	us, err := strconv.ParseUint(f[1], 10, 32)
	if err != nil || us < 1000 || us > 1e6 {
		return 0, 0, false
	}
	if f[0] == "max" {
		return -1, float64(us) * 1000, true
	}
	q, err := strconv.ParseUint(f[0], 10, 48)
	return float64(q) * 1000, float64(us) * 1000, err == nil && q >= 1000
}

// cpuGroup is what a cgroup's files say of its CPU time.
type cpuGroup struct {
	path          string
	all           []sample
	stats         []pairs
	quota, period float64 // ns; a quota of -1 is none
	hasQuota      bool
	shares        string
}

// next fills the group's path into a command.
func (g cpuGroup) next(command, why string) []attach.Next {
	if len(g.stats) > 0 && g.stats[len(g.stats)-1].has("throttled_time") { // cgroup v1
		command = strings.ReplaceAll(command, "/sys/fs/cgroup/CGROUP/cpu.max", "/sys/fs/cgroup/cpu/CGROUP/cpu.cfs_quota_us /sys/fs/cgroup/cpu/CGROUP/cpu.cfs_period_us")
		command = strings.ReplaceAll(command, "/sys/fs/cgroup/CGROUP/cpu.stat", "/sys/fs/cgroup/cpu/CGROUP/cpu.stat")
	}
	return []attach.Next{{Command: strings.ReplaceAll(command, "CGROUP", groupName(g.path)), Why: why}}
}

func groupName(p string) string {
	if p = strings.Trim(p, "/"); p == "" ||
		strings.Trim(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@") != "" {
		return "CGROUP"
	}
	return p
}

func (g cpuGroup) cpus() float64 {
	if g.period <= 0 {
		return g.quota / 100e6 // the kernel's default period
	}
	return g.quota / g.period
}

// What counts. A process at its quota is throttled in nearly all of its periods; a tenth of them,
// each for a few ms, is what the slowest requests see.
const (
	throttledFew    = attach.ThrottledFew
	throttledMany   = attach.ThrottledMany
	periodsLeast    = 100
	periodsPair     = 20  // between two samples: 2 s
	periodsYoung    = 20  // in its life
	throttledLonger = 1e6 // ns for each throttled period; below, only the timer's grain
)

func (g cpuGroup) read() attach.Reading {
	r := attach.Reading{Title: "cpu controller of a cgroup", State: attach.CannotTell}
	if g.path != "" {
		r.Title = "cpu controller of cgroup " + printed(g.path)
		r.Who.Cgroup = g.path
	}
	var quota string
	if g.hasQuota {
		quota = g.readQuota(&r)
	}
	if len(g.stats) == 0 {
		if g.shares != "" {
			r.Figures = append(r.Figures, g.shares)
		}
		if r.Means == "" {
			r.Means = "A weight matters only while others want the same CPUs."
		}
		return r
	}
	last := g.stats[len(g.stats)-1]
	r.Title += ": cpu.stat"
	r.Time, r.Flaws = g.all[0].at, last.flaws
	r.Signs = nil
	if grow, ok := growth(g.all, g.stats, "nr_periods", "nr_throttled", "throttled_time",
		"throttled_usec", "usage_usec"); ok {
		r.Title += fmt.Sprintf(", %d samples", len(g.stats))
		if g.mixed() {
			r.Boot = true
			if g.apart(&r) {
				return r
			}
			r.Means = "One of them is of cgroup v1 and one of v2: they are of two groups, and no rate follows."
			return r
		}
		if grow.fell != "" {
			r.Boot = true
			if g.apart(&r) {
				return r
			}
			r.Means = fmt.Sprintf("The counter %s falls between the samples: they are of two groups, or the group was made anew; no rate follows.", printed(grow.fell))
			return r
		}
		period := g.period
		if period <= 0 {
			period = 100e6
		}
		if grow.by("nr_periods")*period > 1.2e9*grow.seconds {
			grow.seconds = 0 // more went on between the samples than the sleep that is known
		}
		if last.has("nr_periods") == grow.to.has("nr_periods") && last.has("nr_throttled") == grow.to.has("nr_throttled") {
			r.Title += over(grow.seconds)
			g.judge(&r, grow.by, quota, grow.seconds, "between the samples")
			return r
		}
		r.Boot = true // the first one was cut: the last one alone counts
		r.Title += ", the first cut off"
		g.judge(&r, func(n string) float64 { return last.get(n) }, quota, 0, "since the group was made")
		return r
	}
	r.Boot = true
	if n := len(g.stats); n > 1 {
		r.Title += fmt.Sprintf(", %d samples", n)
		if g.apart(&r) {
			return r
		}
		r.Title += ", the last of them"
	} else {
		r.Title += ", read once"
	}
	g.judge(&r, func(n string) float64 { return last.get(n) }, quota, 0, "since the group was made")
	return r
}

// mixed reports whether samples are of both versions of cgroups, whose names for throttled time
// differ: then they are of two groups, and not before and after.
func (g cpuGroup) mixed() bool {
	v1 := slices.ContainsFunc(g.stats, func(m pairs) bool { return m.has("throttled_time") })
	v2 := slices.ContainsFunc(g.stats, func(m pairs) bool { return m.has("throttled_usec") || m.has("usage_usec") })
	return v1 && v2
}

// apart reads samples that are not before and after each by itself: the worst of them speaks.
func (g cpuGroup) apart(r *attach.Reading) bool {
	if g.hasQuota {
		return false
	}
	var worst attach.Reading
	share, n := -1.0, 0
	var figures []string
	for i := range g.stats[:min(16, len(g.stats))] {
		m := g.stats[i]
		periods := m.get("nr_periods")
		if periods == 0 || !m.has("nr_throttled") {
			continue
		}
		one := cpuGroup{path: g.path, all: g.all[i : i+1], stats: g.stats[i : i+1]}.read()
		if n++; n <= 4 {
			text := fmt.Sprintf("sample %d: throttled in %s of its periods (%s of %s)", i+1,
				percent(ratio(m.get("nr_throttled"), periods)), number(m.get("nr_throttled")), number(periods))
			if ns := throttledNS(func(name string) float64 { return m.get(name) }); ns > 0 {
				text += fmt.Sprintf(", %s in all", dur(ns))
			}
			figures = append(figures, text)
		}
		if s := ratio(m.get("nr_throttled"), periods); s > share {
			one.Figures = one.Figures[1:] // of what is throttled each has its own above
			if throttledNS(func(name string) float64 { return m.get(name) }) > 0 {
				one.Figures = one.Figures[1:]
			}
			share, worst = s, one
		}
	}
	if n < 2 {
		return false
	}
	worst.Title = r.Title + " of different groups or lives of one"
	worst.Figures = append(figures, worst.Figures...)
	worst.Boot = true
	*r = worst
	return true
}

func (g cpuGroup) readQuota(r *attach.Reading) string {
	r.Facts = append(r.Facts, attach.Fact{Name: FactPeriod, Value: g.period})
	if g.quota < 0 {
		r.Facts = append(r.Facts, attach.Fact{Name: FactQuota, Value: 0})
		r.Figures = append(r.Figures, "no quota at this level")
		r.State = attach.Healthy
		r.Means = "This level of the cgroup had no CPU quota when it was read."
		r.Not = "whether a level above has one: the least of all holds"
		return ""
	}
	r.Facts = append(r.Facts, attach.Fact{Name: FactQuota, Value: g.cpus()})
	text := fmt.Sprintf("quota %s CPUs (%s of CPU time in each period", number(g.cpus()), dur(g.quota))
	if g.period > 0 {
		text += " of " + dur(g.period) + ")"
	} else {
		text += "; the period was not read, 100 ms is the default)"
	}
	r.Figures = append(r.Figures, text)
	r.Means = fmt.Sprintf("The group may use %s CPUs; whether that stops it only cpu.stat tells.", number(g.cpus()))
	r.Not = "whether the quota ever stopped the group"
	r.Signs = []attach.Sign{{Cause: "cpu-throttled", Grade: attach.Risk, Proof: []string{text}}}
	r.Next = g.next("cat /sys/fs/cgroup/CGROUP/cpu.stat; sleep 10; cat /sys/fs/cgroup/CGROUP/cpu.stat", "nr_throttled and throttled time tell whether the quota is used up")
	return text
}

// throttledNS is the throttled time: cgroup v1 counts ns, and v2 us.
func throttledNS(by func(string) float64) float64 {
	return by("throttled_time") + 1000*by("throttled_usec")
}

// judge says what periods and throttled time mean; by gives a counter's growth.
func (g cpuGroup) judge(r *attach.Reading, by func(string) float64, quota string, seconds float64, since string) {
	periods, throttled := by("nr_periods"), by("nr_throttled")
	ns := throttledNS(by)
	share := ratio(throttled, periods)
	system := by("system_usec") * 1000
	last := g.stats[len(g.stats)-1]
	used := ""
	if u := by("usage_usec"); u > 0 && seconds > 0 {
		used = fmt.Sprintf("%s CPUs used", number(u/1e6/seconds))
	} else if u > 0 {
		used = fmt.Sprintf("%s of CPU time used %s", dur(u*1000), since)
		if system > 0 {
			used += fmt.Sprintf(", %s of it in the kernel (%s)", dur(system), percent(ratio(system, u*1000)))
		}
	}
	if last.has("nr_periods") && !last.has("nr_throttled") {
		r.Figures = append([]string{number(periods) + " periods in which the group ran, " + since}, r.Figures...)
		if used != "" {
			r.Figures = append(r.Figures, used)
		}
		r.State, r.Means = attach.CannotTell, "How many of them it was throttled in (nr_throttled) is not in the paste."
		return
	}
	if !last.has("nr_periods") || periods == 0 {
		g.judgeUnlimited(r, last, used, throttled, ns, since)
		return
	}
	figure := fmt.Sprintf("throttled in %s of its periods %s (%s of %s)", nearly(share), since,
		number(throttled), number(periods))
	figures := []string{figure}
	each := ratio(ns, throttled)
	if ns > 0 {
		figures = append(figures,
			fmt.Sprintf("%s throttled in all, %s for each throttled period, summed over its CPUs", dur(ns), dur(each)))
	}
	r.Figures = append(figures, r.Figures...)
	if used != "" {
		r.Figures = append(r.Figures, used)
	}
	period := g.period
	if period <= 0 {
		period = 100e6
	}
	r.Facts = append(r.Facts, attach.Fact{Name: FactThrottledShare, Value: share},
		attach.Fact{Name: FactThrottledTime, Value: ratio(ns, periods*period)})
	r.Not = "how much time requests lost: a program at its quota is throttled in nearly all periods, also where nobody waits for it"
	if r.Boot {
		r.Not = "whether it happens now, since this is an average over the group's life; nor " + r.Not
	}
	r.Next = g.next("cat /sys/fs/cgroup/CGROUP/cpu.max /sys/fs/cgroup/CGROUP/cpu.stat; sleep 10; cat /sys/fs/cgroup/CGROUP/cpu.stat", "the rate of now, and the quota")
	sign := attach.Sign{Cause: "cpu-throttled", Share: min(1, share), Proof: r.Figures[:min(2, len(r.Figures))]}
	small := ns > 0 && each < throttledLonger
	switch {
	case r.Boot && periods < periodsYoung && throttled == 0:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("Only %s in which the group ran are counted, none of which the quota stopped: it is young or hardly runs.",
			plural(int(periods), "period", "periods"))
		return
	case share < throttledFew || small:
		r.State, sign.Grade, r.Next = attach.Healthy, attach.Against, nil
		r.Means = "The quota stopped the group in next to none of its periods."
		if small && share >= throttledFew {
			r.Means = "The quota stopped the group for under a millisecond at a time: that is no pause."
		}
	case r.Boot && periods < periodsYoung:
		r.State, sign.Grade = attach.CannotTell, attach.Candidate
		r.Means = fmt.Sprintf("Only %s in which the group ran are counted, and its quota stopped it in %s of them: it is young or hardly runs, and whether that lasts cannot be told.",
			plural(int(periods), "period", "periods"), number(throttled))
	case share < throttledMany || periods < periodsLeast && (r.Boot || periods < periodsPair):
		r.State, sign.Grade = attach.CannotTell, attach.Candidate
		r.Means = fmt.Sprintf("The group ran out of its CPU quota in %s of its periods: enough for the slowest requests, and they may be others.", percent(share))
	default:
		r.State, sign.Grade, sign.Sure = attach.Ill, attach.Found, finding.Possible
		if seconds > 0 && ratio(ns, seconds*1e9) >= 0.10 {
			sign.Sure = finding.Supported
		}
		r.Means = fmt.Sprintf("The group runs out of its CPU quota in %s of its periods and is stopped until the next.", nearly(share))
		if r.Boot {
			r.Means = fmt.Sprintf("Over its life the group ran out of its CPU quota in %s of its periods and was stopped until the next.", nearly(share))
		}
	}
	if quota != "" && sign.Grade != attach.Against {
		sign.Proof = append(sign.Proof, quota)
	}
	r.Signs = []attach.Sign{sign}
}

// judgeUnlimited is for a group in whose life, or between whose samples, no period passed.
func (g cpuGroup) judgeUnlimited(r *attach.Reading, last pairs, used string, throttled, ns float64, since string) {
	if used != "" {
		r.Figures = append([]string{used}, r.Figures...)
	}
	switch {
	case last.has("nr_periods"):
		r.Figures = append([]string{"no period in which a quota was counted " + since}, r.Figures...)
		r.State = attach.Healthy
		r.Means = "No quota of this level stopped the group: it has none, or had nothing to run."
		r.Not = "whether a level above stops it: each has a cpu.stat of its own"
		r.Signs = []attach.Sign{{Cause: "cpu-throttled", Grade: attach.Against}}
	case throttled > 0 || ns > 0:
		text := dur(ns) + " throttled time"
		if last.has("nr_throttled") {
			text = number(throttled) + " throttled periods, " + text
		}
		r.Figures = append([]string{text + " " + since}, r.Figures...)
		r.Means = "Without nr_periods it cannot be told which share of its periods the group was throttled in."
		r.Signs = []attach.Sign{{Cause: "cpu-throttled", Grade: attach.Candidate, Proof: r.Figures[:1]}}
	default:
		r.Means = "It has no counter of throttling: a cgroup v2 without the cpu controller shows only usage."
	}
	if g.shares != "" {
		r.Figures = append(r.Figures, g.shares)
	}
}
