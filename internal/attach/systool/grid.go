package systool

import (
	"cmp"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// A grid is what a tool prints as a line of names and rows below it, where no more is to be known
// of it than its names and what a row looks like.
type grid struct {
	name  string
	title string   // "": the name
	heads []string // lines of names, with single blanks; a line may go on behind it
	notes *pattern.Regexp
	note  func(v *verdict, text string) // reads notes; nil: they say nothing
	row   func(f []string) bool
	bare  bool // two rows tell it without a line of names
	read  func(v *verdict, rows [][]string)
}

var grids = []grid{
	{name: "vmstat -d", heads: []string{"disk- ------------reads------------",
		"total merged sectors ms total merged sectors ms cur sec"}, row: numbersBehind(1, 10), read: readVmstatDisks},
	{name: "vmstat -m", heads: []string{"Cache Num Total Size Pages"}, row: numbersBehind(1, 4), read: readVmstatSlabs},
	{name: "slabtop", heads: []string{"OBJS ACTIVE USE OBJ SIZE SLABS OBJ/SLAB CACHE SIZE NAME"},
		row: slabtopRow, bare: true, read: readSlabtop, note: slabtopTotal,
		notes: pattern.New(`^(Active / Total (Objects|Slabs|Caches|Size) \(% used\) +: |Minimum / Average / Maximum Object : )`)},
	{name: "netstat -i", heads: []string{"Iface MTU RX-OK RX-ERR RX-DRP RX-OVR TX-OK",
		"Iface MTU Met RX-OK RX-ERR RX-DRP RX-OVR TX-OK"}, row: netstatIfRow, read: readNetstatIf,
		notes: pattern.New(`^Kernel Interface table$`)},
	collectl,
	pmstat,
	{name: "lsblk", heads: []string{"NAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINT"},
		read: readNames("disks and what is on them"),
		row:  func(f []string) bool { return len(f) >= 6 && strings.Contains(f[1], ":") }},
	{name: "docker images", heads: []string{"REPOSITORY TAG IMAGE ID CREATED"}, read: readNames("images of containers"),
		row: func(f []string) bool { return len(f) >= 6 && containerID.MatchString(f[2]) }},
	{name: "docker ps", heads: []string{"CONTAINER ID IMAGE COMMAND CREATED STATUS PORTS NAMES"}, read: readDockerPs,
		row: func(f []string) bool { return len(f) >= 6 && containerID.MatchString(f[0]) }},
	{name: "kubectl get pods", heads: []string{"NAME READY STATUS RESTARTS AGE",
		"NAMESPACE NAME READY STATUS RESTARTS AGE"}, read: readPods, row: podRow},
	{name: "kubectl get nodes", heads: []string{"NAME STATUS ROLES AGE VERSION"}, read: readNodes,
		row: func(f []string) bool {
			return len(f) >= 5 &&
				(strings.HasPrefix(f[1], "Ready") || strings.HasPrefix(f[1], "NotReady") || f[1] == "Unknown")
		}},
	{name: "kubectl get events", heads: []string{"LAST SEEN TYPE REASON OBJECT MESSAGE",
		"NAMESPACE LAST SEEN TYPE REASON OBJECT MESSAGE"}, read: readEvents,
		row: func(f []string) bool {
			return len(f) >= 4 && (slices.Contains(f[:4], "Normal") || slices.Contains(f[:4], "Warning"))
		}},
	{name: "ipcs", heads: []string{"key msqid owner perms used-bytes messages",
		"key shmid owner perms bytes nattch status", "key semid owner perms nsems"},
		read:  readNames("objects of System V IPC"),
		notes: pattern.New(`^-+ (Message Queues|Shared Memory Segments|Semaphore Arrays) -+$`),
		row:   func(f []string) bool { return len(f) >= 5 && strings.HasPrefix(f[0], "0x") }},
}

// gridKinds makes a kind of each.
func gridKinds() (out []*attach.Kind) {
	for i := range grids {
		g := &grids[i]
		k := &attach.Kind{Name: g.name, Claim: g.claim, Read: g.readPart}
		for _, h := range g.heads {
			k.Hints = append(k.Hints, strings.Fields(h)[0])
		}
		if g.bare {
			k.Hints = append(k.Hints, "% ")
		}
		if g.notes != nil {
			k.Hints = append(k.Hints, "Kernel Interface", "------ ", "Active / ", "Minimum / ",
				"#<--", "waiting for ", "@ ")
		}
		out = append(out, k)
	}
	return out
}

func (g *grid) head(f []string) bool {
	text := strings.Join(f, " ")
	return slices.ContainsFunc(g.heads, func(h string) bool { return strings.HasPrefix(text, h) })
}

func (g *grid) claim(lines []paste.Line) int {
	headed := false
	if g.bare && len(lines) > 1 && g.row(fields(lines[0].Text)) {
		next, ok := following(lines, 1)
		headed = ok && g.row(fields(next.Text))
	}
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		f := fields(text)
		switch {
		case g.head(f):
			headed = true
			return true
		case g.notes != nil && g.notes.MatchString(strings.TrimSpace(text)):
			return true
		}
		return headed && g.row(f)
	})
	return attach.ClaimIf(headed, n)
}

func (g *grid) readPart(p *attach.Part) attach.Reading {
	var rows [][]string
	for _, l := range p.Lines {
		f := fields(l.Text)
		if len(f) > 0 && !g.head(f) && g.row(f) {
			rows = append(rows, f)
		}
	}
	v := &verdict{}
	v.Title = cmp.Or(g.title, g.name) + ", " + attach.Plural(len(rows), "row")
	v.unsure = true
	if g.note != nil {
		for _, l := range p.Lines {
			g.note(v, strings.TrimSpace(l.Text))
		}
	}
	g.read(v, rows)
	v.means("it says nothing of why a service is slow")
	return v.done()
}

// numbersBehind accepts rows of so many names, and numbers behind them.
func numbersBehind(names, numbers int) func([]string) bool {
	return func(f []string) bool {
		return len(f) == names+numbers && numeric(f[names:]) && !numeric(f[:1])
	}
}

func readNames(what string) func(*verdict, [][]string) {
	return func(v *verdict, rows [][]string) {
		v.unsure = false
		v.figure("%d rows", len(rows))
		v.means("it lists %s, and nothing of slowness", what)
	}
}

// readVmstatDisks has counters since boot, and with an interval their growth from the first table
// to the last.
func readVmstatDisks(v *verdict, rows [][]string) {
	var order []string
	first, last := map[string][]string{}, map[string][]string{}
	for _, f := range rows {
		if _, ok := first[f[0]]; !ok {
			first[f[0]] = f
			order = append(order, f[0])
			continue
		}
		last[f[0]] = f
	}
	boot, when := len(last) == 0, "since boot"
	if !boot {
		when = "between the first table and the last"
	}
	var all []attach.DiskUse
	for _, name := range order {
		from, to := first[name], last[name]
		if !boot && to == nil {
			continue
		}
		grew := func(column int) float64 {
			f, _ := number(from[column])
			if boot {
				return f
			}
			t, _ := number(to[column])
			return t - f
		}
		d := attach.DiskUse{Name: name, Reads: grew(1), Writes: grew(5), Busy: -1, Queue: -1}
		d.ReadMS, d.WriteMS = grew(4)/max(1, d.Reads), grew(8)/max(1, d.Writes)
		if d.Reads+d.Writes > 0 && d.Reads >= 0 && d.Writes >= 0 {
			all = append(all, d)
		}
	}
	title := v.Title
	v.Reading = attach.Disks(all, boot, when, "vmstat -d 10 2", plain)
	v.Title, v.unsure = title, v.State == attach.CannotTell
}

func netstatIfRow(f []string) bool {
	return (len(f) == 11 || len(f) == 12) && numeric(f[1:len(f)-1]) && !numeric(f[len(f)-1:])
}

func readNetstatIf(v *verdict, rows [][]string) {
	v.Boot, v.unsure = true, false
	lost := false
	for _, f := range rows {
		at := len(f) - 9
		n := func(i int) float64 { x, _ := number(f[at+i]); return x }
		packets, drops, errors := n(0)+n(4), n(2)+n(6)+n(3)+n(7), n(1)+n(5)
		if packets+drops+errors == 0 {
			continue
		}
		v.figure("%s: %s of %s packets dropped (%s %%), %s errors", f[0], plain(drops),
			plain(packets), plain(100*drops/max(1, packets)), plain(errors))
		lost = lost || drops+errors >= 0.001*packets
	}
	v.not("drops since the interface came up are no drops now; packets of unknown protocols count as well")
	if lost {
		v.unsure = true
		v.means("packets were dropped: whether it still goes on is not in it")
		v.next("netstat -i; sleep 10; netstat -i", "what was added in ten seconds")
	}
	v.means("hardly any packet was dropped or broken")
}

var containerID = pattern.New(`^[0-9a-f]{12,64}$`)

func readDockerPs(v *verdict, rows [][]string) {
	ill := 0
	for _, f := range rows {
		if text := strings.Join(f, " "); strings.Contains(text, "(unhealthy)") ||
			strings.Contains(text, " Restarting (") {
			ill++
		}
	}
	v.figure("%s, %d of them unhealthy or restarting", attach.Plural(len(rows), "container"), ill)
	v.unsure = ill > 0
	v.means("it lists containers; whether one is slow it does not say")
	v.next("docker stats --no-stream", "what each uses of CPU and memory")
}

var podReady = pattern.New(`^\d+/\d+$`)

func podRow(f []string) bool {
	if len(f) < 5 {
		return false
	}
	return podReady.MatchString(f[1]) || podReady.MatchString(f[2])
}

// readPods: a pod that restarts answers slowly or not at all, and why it restarts another command
// says.
func readPods(v *verdict, rows [][]string) {
	odd := ""
	restarts, most, name := 0.0, 0.0, ""
	for _, f := range rows {
		at := slices.IndexFunc(f, func(s string) bool { return strings.Contains(s, "/") })
		if at < 1 || at+2 >= len(f) {
			continue
		}
		n, _ := number(f[at+2])
		restarts += n
		if n > most {
			most, name = n, f[at-1]
		}
		if s := f[at+1]; s != "Running" && s != "Completed" && odd == "" {
			odd, name = s, f[at-1]
		}
	}
	v.figure("%s, %s restarts in all", attach.Plural(len(rows), "pod"), plain(restarts))
	if odd != "" {
		v.figure("%s is %s", name, odd)
	} else if most > 0 {
		v.figure("most restarts: %s, %s", name, plain(most))
	}
	v.unsure = odd != "" || restarts > 0
	v.means("it says which pods run, and nothing of how fast they are")
	v.not("when the restarts were: their number counts since the pod was made")
	if v.unsure {
		v.next("kubectl describe pod "+name, "Last State and Events: why it was restarted")
		return
	}
	v.next("kubectl top pod --containers", "what each uses of CPU and memory")
}

func readNodes(v *verdict, rows [][]string) {
	ill := 0
	for _, f := range rows {
		if f[1] != "Ready" {
			ill++
		}
	}
	v.figure("%s, %d not ready or cordoned", attach.Plural(len(rows), "node"), ill)
	v.unsure = ill > 0
	v.means("it says which nodes are there, and nothing of how busy they are")
	v.next("kubectl top node", "what is used of each node's CPUs and memory")
}

func readEvents(v *verdict, rows [][]string) {
	var all []clusterEvent
	for _, f := range rows {
		at := slices.IndexFunc(f[:min(4, len(f))], func(s string) bool { return s == "Warning" || s == "Normal" })
		if at >= 0 && at+1 < len(f) {
			all = append(all, clusterEvent{reason: f[at+1], warning: f[at] == "Warning", n: 1,
				message: strings.Join(f[min(at+3, len(f)):], " ")})
		}
	}
	tellEvents(v, all)
}
