package kernelfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// softnet has a line for each CPU, of 9 to 15 hexadecimal counters.
var softnetLine = pattern.New(`^(?:[0-9a-f]{8} ){8,15}[0-9a-f]{8}$`)

// softnetPart is a row that was cut off, or one that a terminal broke.
var softnetPart = pattern.New(`^[0-9a-f]{8}(?: [0-9a-f]{8})*(?: [0-9a-f]{1,7})?$`)

var softnet = &attach.Kind{
	Name: "softnet_stat", Claim: starting("0-9a-f", 160, repeated(claimSoftnet)),
	Read: func(p *attach.Part) attach.Reading {
		all := samples(p, nil)
		for i := range all {
			if rows := softnetRows(all[i].lines); rows != nil {
				all[i].lines = rows
			}
		}
		packets, dropped, squeezed := softnetSums(all[len(all)-1].lines)
		cpus := len(all[len(all)-1].lines)
		r := attach.Reading{Title: fmt.Sprintf("softnet_stat, %s", plural(cpus, "CPU", "CPUs")),
			Boot: true, State: attach.Healthy, Time: all[0].at}
		when := "since boot"
		if len(all) > 1 && len(all[0].lines) == cpus {
			a, b, c := softnetSums(all[0].lines)
			if packets >= a && dropped >= b && squeezed >= c {
				packets, dropped, squeezed, r.Boot, when = packets-a, dropped-b, squeezed-c, false,
					"between the samples"+over(span(all))
			}
		}
		r.Figures = []string{
			fmt.Sprintf("%s packets dropped because the backlog was full (%s of %s), %s",
				number(dropped), percent(ratio(dropped, packets)), number(packets), when),
			fmt.Sprintf("%s times the softirq ran out of its budget (time_squeeze)", number(squeezed)),
		}
		if b := softnetBusiest(all[len(all)-1].lines); b != "" {
			r.Figures = append(r.Figures, b)
		}
		if last := all[len(all)-1].lines; !softnetLine.MatchString(last[len(last)-1]) {
			r.Title += ", the last row cut off"
		}
		r.Means = "Next to no packet was dropped at this point."
		r.Not = "that a run out of budget is harm: the rest goes to ksoftirqd, which is usual on busy hosts"
		switch {
		case ratio(dropped, packets) <= 1e-5 && len(r.Figures) > 2 && squeezed >= manySqueezes:
			r.State = attach.CannotTell
			r.Means = "Next to no packet was dropped. One CPU takes nearly all of them, and the budget ran out: that CPU may be full while the others are idle."
			r.Next = []attach.Next{{Command: "mpstat -P ALL 1 5; grep . /sys/class/net/*/queues/rx-*/rps_cpus", Why: "whether that CPU is full of softirqs, and whether packets are spread"}}
		case ratio(dropped, packets) <= 1e-5:
		case r.Boot:
			r.State = attach.CannotTell
			r.Means = "Since boot packets were dropped before any socket saw them; whether they still are, two readings tell."
			r.Next = []attach.Next{{Command: "date; cat /proc/net/softnet_stat; sleep 10; date; cat /proc/net/softnet_stat", Why: "whether it happens now"}}
		default:
			r.State = attach.CannotTell
			r.Means = "Packets were dropped before any socket saw them: connections wait for them to be sent again."
			r.Signs = []attach.Sign{{Cause: "softirq", Grade: attach.Candidate, Proof: r.Figures[:1]}}
			r.Next = []attach.Next{{Command: "cat /proc/softirqs; sleep 10; cat /proc/softirqs",
				Why: "which CPU handles the packets"}}
		}
		return r
	},
}

// manySqueezes is more than the start of a host or a backup brings.
const manySqueezes = 1000

// claimSoftnet claims rows, the last of which may be cut off, or rows that were broken.
func claimSoftnet(lines []paste.Line) int {
	n := run(lines, softnetLine.MatchString)
	if n > 0 {
		if n < len(lines) && lines[n].Command == "" && len(lines[n].Text) > 17 &&
			softnetPart.MatchString(strings.TrimSpace(lines[n].Text)) {
			n++
		}
		return n
	}
	n = run(lines, softnetPart.MatchString)
	var texts []string
	for _, l := range lines[:n] {
		if t := strings.TrimSpace(l.Text); t != "" {
			texts = append(texts, t)
		}
	}
	return attach.ClaimIf(softnetRows(texts) != nil, n)
}

// softnetRows puts rows together that a narrow page broke, so that all have as many counters; nil:
// nothing was broken, or it is no such table. The counters from the fourth to the eighth are always
// 0.
func softnetRows(lines []string) (rows []string) {
	if len(lines) < 2 || softnetLine.MatchString(lines[0]) {
		return nil
	}
widths:
	for width := 9; width <= 15; width++ {
		rows = rows[:0]
		var now []string
		for _, t := range lines {
			now = append(now, strings.Fields(t)...)
			if len(now) > width {
				continue widths
			}
			if len(now) == width {
				for _, zero := range now[3:8] {
					if zero != "00000000" {
						continue widths
					}
				}
				rows = append(rows, strings.Join(now, " "))
				now = now[:0]
			}
		}
		if len(now) == 0 && len(rows) >= 2 {
			return rows
		}
	}
	return nil
}

func softnetSums(lines []string) (packets, dropped, squeezed float64) {
	for _, t := range lines {
		f := strings.Fields(t)
		for i, sum := range []*float64{&packets, &dropped, &squeezed} {
			if i < len(f) {
				v, _ := strconv.ParseUint(f[i], 16, 64)
				*sum += float64(v)
			}
		}
	}
	return packets, dropped, squeezed
}

// softnetBusiest says that one CPU took nearly all packets.
func softnetBusiest(lines []string) string {
	all, most, at := 0.0, 0.0, 0
	for i, t := range lines {
		n, _, _ := softnetSums([]string{t})
		if all += n; n > most {
			most, at = n, i
		}
	}
	if len(lines) < 2 || most < 0.8*all {
		return ""
	}
	return fmt.Sprintf("line %d, one CPU, took %s of all packets since boot", at+1, percent(most/all))
}
