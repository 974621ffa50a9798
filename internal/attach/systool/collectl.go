package systool

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// collectl prints a line for each sample; the first columns are CPUs, whatever else is chosen.
var collectl = grid{name: "collectl", heads: []string{"#cpu sys inter ctxsw"},
	notes: pattern.New(`^(#<-+\w*|waiting for \d+ second sample\.\.\.|#\s+RECORD\b)`),
	row:   func(f []string) bool { return len(f) >= 6 && numeric(f[:4]) }, read: readCollectl}

func readCollectl(v *verdict, rows [][]string) {
	var busy, switches []float64
	for _, f := range rows {
		cpu, _ := number(f[0])
		n, _ := number(f[3])
		busy, switches = append(busy, cpu), append(switches, n)
	}
	v.figure("CPUs: %s %% busy in the median, %s context switches a second",
		plain(attach.Median(busy)), plain(attach.Median(switches)))
	v.means("how busy CPUs, disks and the network were: who waited for them is not in it")
	if attach.Median(busy) < 70 && len(rows) >= enoughSamples {
		v.unsure = false
		v.means("the CPUs had room")
	}
	v.not("amounts read and written say nothing of how long a disk took")
	v.next("vmstat 1 10", "r, and st: whether threads wait for CPUs")
}

// diskSums is vmstat -D: sums over all disks since boot.
var diskSums = &attach.Kind{
	Name:  "vmstat -D",
	Hints: []string{" disks", " reads", " writes", " sectors", " milli "},
	Claim: func(lines []paste.Line) int {
		n := attach.ClaimWhile(lines,
			func(_ int, text string) bool { return diskSum.MatchString(strings.TrimSpace(text)) })
		if n < 4 {
			return 0
		}
		return n
	},
	Read: func(p *attach.Part) attach.Reading {
		v := &verdict{}
		v.Title, v.Boot, v.unsure = "vmstat -D, sums of all disks since boot", true, true
		n := map[string]float64{}
		for _, l := range p.Lines {
			if m := diskSum.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil {
				n[m[2]], _ = number(m[1])
			}
		}
		reads, writes := n["total reads"], n["writes"]
		v.figure("%s reads of %s ms and %s writes of %s ms in the mean, since boot", plain(reads),
			plain(n["milli reading"]/max(1, reads)), plain(writes), plain(n["milli writing"]/max(1, writes)))
		v.figure("%s requests are under way now", plain(n["inprogress IO"]))
		v.means("these are means since boot, and say nothing about now")
		v.next("iostat -x 1 10", "how long requests take now, by disk")
		return v.done()
	},
}

var diskSum = pattern.New(`^(\d+) (disks|partitions|total reads|merged reads|read sectors|milli reading|writes|merged writes|written sectors|milli writing|inprogress IO|milli spent IO|milli weighted IO)$`)

// nfs is nfsiostat: of each mount, how long the server took.
var nfs = &attach.Kind{
	Name:  "nfsiostat",
	Hints: []string{" mounted on ", "rpc bklog", "avg RTT"},
	Claim: func(lines []paste.Line) int {
		tables := 0
		n := attach.ClaimWhile(lines, func(_ int, text string) bool {
			text = strings.TrimSpace(text)
			if strings.Contains(text, "avg RTT (ms)") {
				tables++
			}
			return nfsMount.MatchString(text) || nfsHead.MatchString(text) ||
				numeric(fields(nfsShare.ReplaceAllString(text, "")))
		})
		return attach.ClaimIf(tables > 0, n)
	},
	Read: readNFS,
}

var (
	nfsMount = pattern.New(`^(\S+:/\S*) mounted on (\S+):$`)
	nfsHead  = pattern.New(`^(read|write):\s+ops/s\s|^(ops/s|op/s)\s+rpc bklog`)
	nfsShare = pattern.New(`\([\d.]+%\)`)
)

func readNFS(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.unsure = true
	mount, call, mounts, reports := "the mount", "", 0, 0
	worst, where, took, queued := 0.0, "", 0.0, ""
	for _, l := range p.Lines {
		text := strings.TrimSpace(l.Text)
		switch m := nfsMount.FindStringSubmatch(text); {
		case m != nil:
			mount = m[2]
			mounts++
		case strings.HasPrefix(text, "read:"), strings.HasPrefix(text, "write:"):
			call, _, _ = strings.Cut(text, ":")
			reports++
		case call != "":
			f := fields(nfsShare.ReplaceAllString(text, ""))
			if len(f) >= 6 {
				ops, _ := number(f[0])
				rtt, _ := number(f[4])
				exe, _ := number(f[5])
				if ops > 0 {
					v.figure("%s of %s: %s/s, the server took %s ms, with the queue before it %s ms", call, mount, plain(ops), plain(rtt), plain(exe))
				}
				if ops >= 1 && exe > took {
					took = exe
					queued = ""
					if exe >= awaitSlow && exe >= 4*rtt {
						queued = fmt.Sprintf("%s of %s took %s ms, of which the server took %s ms: the rest is the client's own queue", call, mount, plain(exe), plain(rtt))
					}
				}
				if ops >= 1 && rtt > worst {
					worst, where = rtt, call+" of "+mount
				}
			}
			call = ""
		}
	}
	v.Title = "nfsiostat, " + attach.Plural(max(1, mounts), "table")
	v.not("the first report is a mean since the mount; who waited is not in it")
	v.Boot = mounts <= 1 || reports <= 2
	switch {
	case worst >= awaitSlow && !v.Boot:
		v.outside("the NFS server, or the network to it", 0, where+" took "+plain(worst)+" ms")
		v.means("the server takes long for %s", where)
	case queued != "":
		v.means("%s", queued)
		v.next("nfsiostat 5 3; nfsstat -rc", "whether the queue lasts, and whether calls are sent again")
	case worst >= awaitSlow:
		v.means("%s took %s ms in the mean since the mount: whether it is so now a second report tells", where, plain(worst))
		v.next("nfsiostat 5 3", "reports of five seconds each")
	}
	v.means("the NFS server answered fast in the mean")
	return v.done()
}
