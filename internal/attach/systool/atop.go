package systool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var atop = &attach.Kind{
	Name:  "atop",
	Rows:  true,
	Hints: []string{"ATOP - ", " | "},
	Claim: claimAtop,
	Read:  readAtop,
}

var (
	atopTop  = pattern.New(`^ATOP - (\S+)\s+\S+\s+\S+.*?(\S+)? elapsed`)
	atopLine = pattern.New(`^(PRC|CPU|cpu|CPL|MEM|SWP|PAG|PSI|LVM|MDD|DSK|NET|GPU|NUM|NUC|NFM|NFC|NFS|IFB|LLC|CPR|SHM) \|`)
	atopCell = pattern.New(`^([a-zA-Z]\w*)\s+(-?[\d.]+)(%|[KMGT]|e\d)?`)
	atopExit = pattern.New(`\|\s*#exit\s+(\d+)`)
	atopSpan = pattern.New(`(?:(\d+)h)?(?:(\d+)m)?(\d+)s elapsed`)
	atopName = pattern.New(`^PID\b.*\b(SYSCPU|CPU|CMD|RDDSK|VSIZE|RSIZE|DSK|MEM)\b`)
	atopTask = pattern.New(`^\d+ +\S+ +\S+ .*\S$`)
)

func claimAtop(lines []paste.Line) int {
	sure, tasks := 0, false
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		text = strings.TrimSpace(text)
		switch {
		case atopTop.MatchString(text):
			tasks = false
			sure += 2
			return true
		case atopLine.MatchString(text):
			sure++
			return true
		case strings.HasPrefix(text, "*** System and Process Activity"):
			return sure > 0
		case atopName.MatchString(text) && sure > 0:
			tasks = true
			return true
		}
		return tasks && atopTask.MatchString(text)
	})
	return attach.ClaimIf(sure >= 2, n)
}

// atopCells are the figures of a line, by name.
func atopCells(text string) map[string]string {
	out := map[string]string{}
	for i, c := range strings.Split(text, "|") {
		if m := atopCell.FindStringSubmatch(strings.TrimSpace(c)); m != nil && i > 0 && i < 64 {
			out[m[1]] = m[2] + m[3]
		}
	}
	return out
}

func readAtop(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "atop"
	var all []screen
	boot := false
	var psi map[string]string
	var disks []string
	paging := ""
	stalls, swin, swout, full := 0.0, 0.0, 0.0, false
	exits, span := 0.0, 0.0
	begin := func() {
		all = append(all, screen{})
		disks, paging, stalls, swin, swout, full = nil, "", 0, 0, 0, false
	}
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		if m := atopTop.FindStringSubmatch(text); m != nil || len(all) == 0 {
			begin()
			if m != nil {
				v.Who.Host = m[1]
			}
			span = atopSeconds(text)
		}
		s := &all[len(all)-1]
		if strings.Contains(text, "since Boot") {
			boot = true
		}
		if !atopLine.MatchString(text) {
			s.atopTask(text)
			continue
		}
		cells := atopCells(text)
		num := func(name string) float64 { f, _ := number(strings.TrimSuffix(cells[name], "%")); return f }
		amount := func(name string) float64 { f, _ := size(cells[name], 1); return f }
		switch text[:3] {
		case "PRC":
			if m := atopExit.FindStringSubmatch(text); m != nil {
				exits, _ = number(m[1])
			}
		case "CPU":
			s.cpu = []cpuUse{{us: num("user"), sy: num("sys"), hi: num("irq"), id: num("idle"), wa: num("wait"), st: num("steal"), samples: 1}}
		case "CPL":
			s.load = []float64{num("avg1"), num("avg5"), num("avg15")}
			if cells["avg15"] == "" { // left out on a narrow terminal
				s.load[2] = s.load[1]
			}
			s.cpus = int(min(num("numcpu"), maxCPUs))
		case "MEM":
			if s.mem.total == 0 {
				s.mem = memory{total: amount("tot"), free: amount("free"), cache: amount("cache") + amount("buff")}
				s.mem.available = s.mem.free + s.mem.cache
			}
		case "PSI":
			psi = cells
		case "PAG":
			stalls, swin, swout = num("stall"), num("swin"), num("swout")
			paging = "paging:"
			for _, k := range []string{"scan", "stall", "swin", "swout"} { // versions differ in which they have
				if cells[k] != "" {
					paging += " " + k + " " + cells[k]
				}
			}
		case "DSK":
			f := strings.Split(text, "|")
			if len(f) > 2 {
				busy := num("busy")
				at := len(disks)
				if busy >= 90 { // it stands before those with room
					at, full = 0, true
				}
				disks = slices.Insert(disks, at, fmt.Sprintf("%s: busy %s, %s reads and %s writes, avio %s ms", strings.TrimSpace(f[1]), cells["busy"], cmp.Or(cells["read"], "?"), cmp.Or(cells["write"], "?"), cells["avio"]))
			}
		}
	}
	last := all[len(all)-1]
	judged := all
	if boot {
		judged = all[1:]
	}
	if len(judged) == 0 {
		v.Title, v.Boot, v.unsure = "atop, since boot", true, true
		v.means("the first screen is an average since boot, and says nothing about now")
		v.next("atop 1 10", "what happens now")
	} else {
		v.Title = "atop, " + attach.Plural(len(judged), "interval")
	}
	if rate := exits / max(1, span); span > 0 && rate >= manyExits && len(judged) > 0 {
		v.unsure = true
		v.figure("%s processes ended in %s s, %s a second", plain(exits), plain(span), plain(rate))
		v.means("processes start and end all the time: their CPU time is in the machine's figures, and in no row of the list")
		v.next("execsnoop-bpfcc, or: perf trace -e sched:sched_process_exec -a -- sleep 5", "which processes start and end all the time")
	}
	atopJudge(v, judged, last, psi, disks, full)
	if len(judged) > 0 && span > 0 && stalls+swin+swout > 0 {
		v.Figures = slices.Insert(v.Figures, min(1, len(v.Figures)), fmt.Sprintf("%s, in %s s", paging, plain(span)))
		atopPaging(v, stalls, swin, swout, span, len(judged))
	}
	return v.done()
}

// atopTask keeps the process that used most CPU time, of rows that end in CPU and CMD.
func (s *screen) atopTask(text string) {
	f := fields(text)
	if len(f) >= 3 && f[0] == "PID" {
		s.names = f
		return
	}
	at := slices.Index(s.names, "CMD")
	if at < 1 || s.names[at-1] != "CPU" || len(f) <= at || !strings.HasSuffix(f[at-1], "%") {
		return
	}
	if use, ok := number(strings.TrimSuffix(f[at-1], "%")); ok && use > s.most {
		s.most, s.busiest = use, f[at]
	}
}

// atopPaging says what stalls and pages in swap within an interval mean.
func atopPaging(v *verdict, stalls, swin, swout, span float64, samples int) {
	if stalls > 0 {
		v.proves("direct-reclaim", fmt.Sprintf("%s stalls in %s s: threads freed memory themselves before they got any", plain(stalls), plain(span)))
		v.next("sar -B 1 10", "pgscand/s: whether it goes on")
	}
	if in, out := swin*4096/span, swout*4096/span; swin > 0 {
		v.swapping(in, out, samples, fmt.Sprintf("swap in %s/s, out %s/s", bytes(in), bytes(out)))
	}
}

// manyExits is the processes that end in a second from which on to start them costs much.
const manyExits = 50

// atopSeconds is how long an interval was; 0: it does not say.
func atopSeconds(text string) (sum float64) {
	m := atopSpan.FindStringSubmatch(text)
	for i, f := range []float64{3600, 60, 1} {
		if m != nil {
			n, _ := number(m[i+1])
			sum += n * f
		}
	}
	return sum
}

// wholeCPU in percent of a CPU is what one thread uses, or waits for I/O, all the time.
const wholeCPU = 100

// atopJudge: atop counts the CPUs' time in percent of one CPU, so it is divided by their number.
func atopJudge(v *verdict, judged []screen, last screen, psi map[string]string, disks []string, full bool) {
	n := max(1, last.cpus)
	for i := range judged {
		for j := range judged[i].cpu {
			c := &judged[i].cpu[j]
			for _, f := range []*float64{&c.us, &c.sy, &c.hi, &c.id, &c.wa, &c.st} {
				*f /= float64(n)
			}
		}
	}
	c, known := screensCPU(judged)
	c.cpus = last.cpus
	if known {
		v.figure("CPUs: %s of %s", c, attach.Plural(n, "CPU"))
	}
	if last.load != nil {
		v.figure("load average %s, %s, %s", fixed(last.load[0]), fixed(last.load[1]), fixed(last.load[2]))
	}
	if last.mem.total > 0 {
		v.figure("memory: %s of %s free or cached", bytes(last.mem.available), bytes(last.mem.total))
	}
	if last.most > 0 {
		at := len(v.Figures)
		if last.most >= wholeCPU { // it stands before those that are mostly the same
			at = min(1, at)
		}
		v.Figures = slices.Insert(v.Figures, at, fmt.Sprintf("%s: %s %% CPU", last.busiest, plain(last.most)))
	}
	for i, d := range disks {
		if i == 0 && full {
			v.Figures = slices.Insert(v.Figures, min(1, len(v.Figures)), d)
		} else if i < 2 {
			v.figure("%s", d)
		}
	}
	if len(judged) > 0 {
		if psi["cpusome"] != "" {
			v.figure("some threads waited for a CPU %s of the time, for memory %s, for the disk %s", psi["cpusome"], psi["memsome"], psi["iosome"])
		}
		if known {
			c.judge(v)
			last.loaded(v, c, known)
		}
		last.scarce(v)
		if len(disks) > 0 && full {
			v.unsure = true
			if waiting := c.wa * float64(n); known && waiting >= wholeCPU && !v.has() {
				v.candidate("disk-wait", c.wa/100, disks[0], fmt.Sprintf("iowait is %s %% of a CPU", plain(waiting)))
			}
			v.means("a disk is busy nearly all of the time (%s): whether requests wait for it is not in it", disks[0])
			v.next("iostat -x 1 10", "r_await and w_await: how long requests take")
		}
	}
	v.ease("the machine is at ease in it")
	v.not("these are figures of the machine: a service may wait for a lock or for another server")
}
