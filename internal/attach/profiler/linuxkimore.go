package profiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var (
	// "FD: 47 REG dev: 0x4 /proc/stat", and "device: 0x0fd00000 ... filename: /data/t.dbf"
	kiFile = pattern.New(`^(?:FD:?\s+\d+\s+[A-Z]\w*\s|device: 0x[0-9a-f]+ .*filename:\s)\s*(\S.*)$`)
	// "0.100908 cpu=3 pid=1026 semget [64] ret=-2 syscallbeg= 0.000725 key=0x10cabb74"
	kiTracedCall = pattern.New(`^\d+\.\d{6} cpu=\d+ [pt]id=\d+(?: tgid=\d+)? ([a-z_]\w*)(?: \[\d+\])? ret=(\S+) syscallbeg=\s*(\d+\.\d{6})`)
)

// kiTraced is the calls of one name in a trace.
type kiTraced struct {
	count, failed int
	sum, longest  float64 // s
}

// kiDeviceRow is what a device of a report did, reads and writes together.
type kiDeviceRow struct {
	wait, serve float64 // ms, on average: in the queue, and by the device
	rate        float64 // requests/s
}

// kiHerdRow is a task that woke many others at once.
type kiHerdRow struct {
	pid, most, times int
	command          string
}

// kiWrapped reports whether a line is a stack that was wrapped: names of functions and no more.
func kiWrapped(text string) bool {
	names, low := strings.Fields(text), 0
	for _, n := range names {
		if strings.Trim(n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.|") != "" {
			return false
		}
		if strings.Contains(n, "_") {
			low++
		}
	}
	return len(names) >= 3 && low*2 > len(names)
}

// moreLine reads the rows of devices, nodes and files.
func (k *kiReport) moreLine(text string, mode kiMode) bool {
	fields := strings.Fields(text)
	switch {
	case kiDevice.MatchString(text):
		k.deviceRow(fields)
	case kiHerd.MatchString(text) && len(k.herds) < most:
		h := kiHerdRow{command: kiHerd.FindStringSubmatch(text)[5]}
		h.pid, _ = whole(fields[0])
		h.most, _ = whole(fields[2])
		h.times, _ = whole(fields[3])
		k.herds = append(k.herds, h)
	case mode == kiCPUs && kiNode.MatchString(text):
		k.cpuRow(text)
	case kiFile.MatchString(text):
		words := strings.Fields(kiFile.FindStringSubmatch(text)[1])
		k.file = words[len(words)-1]
	case mode == kiNodes && kiNode.MatchString(text) && fields[0] != "Total":
		n, _ := whole(kiNode.FindStringSubmatch(text)[1])
		k.cpus += min(n, 1<<16)
	case mode == kiNodes && kiNode.MatchString(text) && len(fields) >= 5:
		k.usage = true
		k.sysPct, k.userPct, k.idle = percentOf(fields[2]), percentOf(fields[3]), percentOf(fields[4])
		if len(fields) >= 7 {
			k.hits = percentOf(fields[5])
			k.cpi, _ = number(fields[6])
		}
	default:
		return false
	}
	return true
}

func (k *kiReport) deviceRow(fields []string) {
	if len(fields) < 4 || fields[1] != "t" || len(k.devices) >= most {
		return
	}
	of := func(column string) float64 {
		i := slices.Index(k.deviceHead, column)
		if i < 0 || i+2 >= len(fields) {
			return 0
		}
		v, _ := number(fields[i+2])
		return v
	}
	k.devices = append(k.devices, kiDeviceRow{wait: of("avwait"), serve: of("avserv"), rate: of("io/s")})
}

// readDevices says how fast the devices were: calls may wait long while they are not slow.
func (k *kiReport) readDevices(r *attach.Reading) {
	if len(k.devices) == 0 || k.deviceHead == nil {
		return
	}
	k.says("devices")
	slowest := slices.MaxFunc(k.devices,
		func(a, b kiDeviceRow) int { return cmp.Compare(a.wait+a.serve, b.wait+b.serve) })
	ms := func(v float64) string { return lasts(v / 1000) }
	r.Figures = append(r.Figures, fmt.Sprintf("%s: the slowest answers in %s and queues for %s on average, at %s",
		attach.Plural(len(k.devices), "device"), ms(slowest.serve), ms(slowest.wait), perSecond(slowest.rate, 1)))
	if r.Means == "" {
		r.Means = fmt.Sprintf("A request to the slowest device takes %s on average: who waits for it is not in it.", ms(slowest.wait+slowest.serve))
	} else if len(k.calls) > 0 {
		r.Means += fmt.Sprintf(" The devices themselves answer within %s on average.", ms(slowest.wait+slowest.serve))
	}
}

// trace counts an event of the raw trace. A line at a call's end says how long it took.
func (k *kiReport) trace(text string) {
	k.traces++
	m := kiTracedCall.FindStringSubmatch(text)
	if m == nil {
		return
	}
	c := k.traced[m[1]]
	if c == nil {
		if len(k.traced) >= 512 {
			return
		}
		c = &kiTraced{}
		k.traced[m[1]] = c
	}
	took, _ := number(m[3])
	c.count++
	c.sum += took
	c.longest = max(c.longest, took)
	if strings.HasPrefix(m[2], "-") {
		c.failed++
	}
}

func (k *kiReport) readTrace(r *attach.Reading) {
	k.says("trace")
	r.Figures = append(r.Figures, attach.Plural(k.traces, "traced event"))
	sums := map[string]float64{}
	for name, c := range k.traced {
		sums[name] = c.sum
	}
	for _, name := range attach.Largest(sums)[:min(2, len(sums))] {
		c := k.traced[name]
		line := fmt.Sprintf("%s: %s, %s in all, longest %s", name, attach.Plural(c.count, "call"),
			lasts(c.sum), lasts(c.longest))
		if c.failed > 0 {
			line += fmt.Sprintf("; %d failed", c.failed)
		}
		r.Figures = append(r.Figures, line)
	}
	if r.Means == "" && len(sums) > 0 {
		r.Means = "These are lines of a trace: what the calls waited for is in its lines of sched_switch."
	}
}

// readHerds says who woke many tasks at once.
func (k *kiReport) readHerds(r *attach.Reading) {
	if len(k.herds) == 0 {
		return
	}
	k.says("who wakes many at once")
	worst, times := k.herds[0], 0
	for _, h := range k.herds {
		times += h.times
		if h.most > worst.most {
			worst = h
		}
	}
	r.Figures = append(r.Figures, fmt.Sprintf("%s (pid %d) woke %s others at once; %s woke many so, %s in all",
		worst.command, worst.pid, count(float64(worst.most)), attach.Plural(len(k.herds), "task"),
		attach.Plural(times, "time")))
	if r.Means == "" {
		r.Means = "Threads that are woken at once crowd the CPUs, and the locks of what all of them then do: most of them may have been woken for nothing."
		r.Not = "How long any of them waited then is in the run queue's and the locks' tables."
	}
}

// readCounters adds what the CPUs' counters say.
func (k *kiReport) readCounters(r *attach.Reading) {
	if k.cpi > 0 {
		r.Figures = append(r.Figures,
			fmt.Sprintf("%.2f cycles per instruction, %s of reads found in the last cache", k.cpi, pct(k.hits)))
	}
}

// waitIn says what a sleep within a call is for. Some functions say it only with their call:
// io_submit and fsync wait for a completion of a disk's.
func (c *kiCallRow) waitIn(function string) wait {
	w := waitOf([]string{function})
	if w == waitedOther && callWaits[c.name] == waitSync {
		return waitedDisk
	}
	return w
}

// spends reports whether a time is much of what the process did, where that is known: a process
// which computes waits for its peer in between, and loses nothing by it.
func (k *kiReport) spends(seconds float64) bool {
	all := k.run + k.sleep + k.queue
	return !k.sched || all <= 0 || seconds >= 0.3*all
}
