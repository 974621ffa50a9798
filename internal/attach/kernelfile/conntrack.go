package kernelfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// Facts of tables that the kernel bounds for the whole host: what is in them, and their bounds.
const (
	FactOrphans      attach.FactName = "/net/tcp/orphans:sockets"
	FactOrphansMax   attach.FactName = "/net/tcp/orphans/max:sockets"
	FactConntrack    attach.FactName = "/net/conntrack/entries:connections"
	FactConntrackMax attach.FactName = "/net/conntrack/max:connections"
)

// conntrackKind is the host's table of connections: conntrack -L, -S and -C, and its files.
var conntrackKind = &attach.Kind{
	Name: "conntrack", Prompted: true, Reports: true,
	Hints: []string{"src=", "cpu=", "nf_conntrack", "ip_conntrack", "conntrack", "insert_failed",
		"entries", "searched"},
	Claim: claimConntrack, Read: readConntrack,
}

var (
	trackedLine  = pattern.New(`^(?:ipv[46] +\d+ +)?(?:tcp|udp|udplite|icmp|icmpv6|sctp|dccp|gre|unknown) +\d+ +(?:\d+ +)?(?:([A-Z_0-9]+) +)?src=\S+ dst=\S+ `)
	shownLine    = pattern.New(`^conntrack v[\d.]+ \(conntrack-tools\): (\d+) flow entries have been (?:shown|deleted)\.$`)
	countedLine  = pattern.New(`^(\d+) /proc/net/(?:nf|ip)_conntrack$`)
	perCPULine   = pattern.New(`^cpu=\d+\s+(?:(?:\w+|\(null\))=\d+\s*){4,}$`)
	trackedNames = pattern.New(`^entries +(?:clashres|searched) +found +new .*insert_failed +drop +early_drop`)
	columnLine   = pattern.New(`^(entries|searched|found|new|invalid|ignore|delete|delete_list|insert|insert_failed|drop|early_drop|icmp_error|error|expect_new|expect_create|expect_delete|search_restart|clash_resolve|chaintoolong)\s+(\d+)$`)
	trackedRow   = pattern.New(`^[0-9a-f]{8}(?: +[0-9a-f]{8}){10,}$`)
)

// countCommand reports whether a command prints the number of connections and no more.
func countCommand(command string) bool {
	f := strings.Fields(strings.TrimPrefix(command, "sudo "))
	return len(f) == 2 && f[0] == "conntrack" && (f[1] == "-C" || f[1] == "--count")
}

func conntrackLine(t string) bool {
	return trackedLine.MatchString(t) || shownLine.MatchString(t) || countedLine.MatchString(t) ||
		perCPULine.MatchString(t)
}

func claimConntrack(lines []paste.Line) int {
	if lines[0].Command != "" {
		if countCommand(lines[0].Command) && len(lines) > 1 && lines[1].Command == "" &&
			isDigits(strings.TrimSpace(lines[1].Text)) {
			return 2
		}
		return 0
	}
	table, column := false, map[string]bool{}
	n := run(lines, func(t string) bool {
		if len(t) > 1000 {
			return false
		}
		if m := columnLine.FindStringSubmatch(t); m != nil {
			column[m[1]] = true
			return true
		}
		if trackedNames.MatchString(t) {
			table = true
			return true
		}
		return table && trackedRow.MatchString(t) || conntrackLine(t)
	})
	return attach.ClaimIf(len(column) == 0 || len(column) >= 4 && (column["insert_failed"] || column["early_drop"]), n)
}

// connections is what such outputs say of the table.
type connections struct {
	listed, count float64 // a count of -1: not said
	states        map[string]int
	rounds        []map[string]float64 // counters, summed over CPUs, of each reading
}

// counters of the table that say that packets were lost.
var tableLosses = []struct{ name, say string }{
	{"drop", "packets dropped since no entry could be made"},
	{"early_drop", "entries thrown out to make room"},
	{"insert_failed", "entries that could not be put in, mostly since another was there first"},
}

func parseConntrack(p *attach.Part) connections {
	c := connections{count: -1, states: map[string]int{}}
	var names []string
	column := map[string]bool{} // conntrack before 1.4 has a line for each counter
	add := func(name string, v float64) { c.rounds[len(c.rounds)-1][name] += v }
	round := func() { c.rounds = append(c.rounds, map[string]float64{}) }
	for _, l := range p.Lines {
		t := strings.TrimSpace(l.Text)
		switch f := strings.Fields(t); {
		case countCommand(p.Command) && isDigits(t):
			c.count = float(t)
		case shownLine.MatchString(t):
			c.count = float(shownLine.FindStringSubmatch(t)[1])
		case countedLine.MatchString(t):
			c.count = float(countedLine.FindStringSubmatch(t)[1])
		case trackedNames.MatchString(t):
			names = f
			round()
		case perCPULine.MatchString(t):
			if strings.HasPrefix(t, "cpu=0\t") || strings.HasPrefix(t, "cpu=0 ") || len(c.rounds) == 0 {
				round()
			}
			for _, w := range f {
				name, v, _ := strings.Cut(w, "=")
				add(name, float(v))
			}
		case columnLine.MatchString(t):
			if m := columnLine.FindStringSubmatch(t); m[1] == "entries" {
				c.count = float(m[2])
			} else {
				if len(c.rounds) == 0 || column[m[1]] {
					round()
					clear(column)
				}
				column[m[1]] = true
				add(m[1], float(m[2]))
			}
		case len(names) > 0 && trackedRow.MatchString(t):
			for i, w := range f[:min(len(f), len(names))] {
				if v, err := strconv.ParseUint(w, 16, 64); err == nil && i > 0 {
					add(names[i], float64(v))
				} else if err == nil { // each CPU's row has the count of the host
					c.count = max(c.count, float64(v))
				}
			}
		case trackedLine.MatchString(t):
			c.listed++
			if s := trackedLine.FindStringSubmatch(t)[1]; s != "" {
				c.states[s]++
			}
		}
	}
	return c
}

func readConntrack(p *attach.Part) attach.Reading {
	c := parseConntrack(p)
	r := attach.Reading{
		Title: "conntrack, the host's table of connections", State: attach.Context, Glance: true,
		Means: "It says how many connections the host follows; whether the table is full, nf_conntrack_max tells.",
	}
	if c.count >= 0 {
		r.Figures = append(r.Figures, number(c.count)+" connections in the table")
		r.Facts = append(r.Facts, attach.Fact{Name: FactConntrack, Value: c.count})
		r.State = attach.CannotTell
		r.Next = []attach.Next{{Command: "sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max", Why: "whether the table is full"}}
	}
	if c.listed > 0 {
		r.Figures = append(r.Figures, number(c.listed)+" of them listed here"+statesText(c.states))
	}
	if len(c.rounds) > 0 {
		c.losses(&r)
	}
	return r
}

func statesText(states map[string]int) string {
	most := ""
	for s, n := range states {
		if n > states[most] || n == states[most] && s < most {
			most = s
		}
	}
	if most == "" {
		return ""
	}
	return fmt.Sprintf(", %d in %s", states[most], most)
}

// losses says what counters say: since boot, or between the first reading and the last.
func (c connections) losses(r *attach.Reading) {
	first, last := map[string]float64{}, c.rounds[len(c.rounds)-1]
	since := "since boot"
	if len(c.rounds) > 1 {
		first, since = c.rounds[0], "between the samples"
	}
	r.Boot = len(c.rounds) == 1
	var said []string
	for _, l := range tableLosses {
		switch by := last[l.name] - first[l.name]; {
		case by < 0:
			r.State, r.Means = attach.CannotTell, "The counters fall between the samples: no rate follows."
			return
		case by > 0:
			said = append(said, fmt.Sprintf("%s %s, %s (%s)", number(by), l.say, since, l.name))
		}
	}
	r.Figures = append(said, r.Figures...)
	dropped := last["drop"] > first["drop"] || last["early_drop"] > first["early_drop"]
	r.Not = "whether the service's own connections were met"
	switch {
	case len(said) == 0:
		r.State = attach.CannotTell
		if !r.Boot {
			r.State = attach.Healthy
		}
		r.Means = "No packet was lost to the table of connections " + since + "."
	case r.Boot:
		r.State = attach.CannotTell
		r.Means = "Counters since boot: they say that packets were lost to the table of connections once, and not that they are now."
		r.Next = []attach.Next{{Command: "conntrack -S; sleep 10; conntrack -S",
			Why: "whether drop and insert_failed rise now"}}
	case dropped:
		r.State = attach.CannotTell
		r.Means = "Packets are dropped now since the table of connections takes no more: connections time out that no process has seen."
		r.Signs = []attach.Sign{{Grade: attach.Outside, Where: attach.ConntrackTable, Proof: said[:1]}}
	default:
		r.State = attach.CannotTell
		r.Means = "Entries collide now: each costs a packet, which is sent again a second later or, of DNS, five seconds."
	}
}
