package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// kiCPURow is a row of the table of CPUs. Parts are of 1.
type kiCPURow struct {
	cpu           string
	idle, softirq float64
}

// cpuRow reads a row of the table of CPUs, or the one of their sum. Each column of the time that
// interrupts took says what they interrupted, so the time of softirqs is in three of them.
func (k *kiReport) cpuRow(text string) {
	fields := strings.Fields(text)
	name := fields[0]
	if _, after, ok := strings.Cut(text, ":"); ok {
		fields = strings.Fields(after)
	} else {
		fields = fields[1:]
	}
	row, known := kiCPURow{cpu: name}, map[string]float64{}
	for i, column := range k.cpuHead {
		if i+1 >= len(fields) { // the first is of all that is busy
			return
		}
		part := percentOf(fields[i+1])
		known[column] = part
		if strings.HasPrefix(column, "softirq") {
			row.softirq += part
		}
	}
	row.idle = known["idle"]
	switch {
	case name == "Total":
		k.usage = true
		k.sysPct, k.userPct, k.idle = known["sys"], known["usr"], known["idle"]
	case len(k.perCPU) < most:
		k.perCPU = append(k.perCPU, row)
		k.cpus = len(k.perCPU)
	}
}

// readCPUs names the CPU that is full and has the most softirqs, where others have room.
func (k *kiReport) readCPUs(r *attach.Reading) {
	var full *kiCPURow
	for i := range k.perCPU {
		if c := &k.perCPU[i]; c.idle < 0.05 && (full == nil || c.softirq > full.softirq) {
			full = c
		}
	}
	if full == nil || full.softirq < 0.30 {
		return
	}
	proof := fmt.Sprintf("CPU %s is full, and softirqs take %s of it", full.cpu, pct(full.softirq))
	if k.usage && k.idle >= 0.30 {
		proof += fmt.Sprintf(", while %s of all CPUs is idle", pct(k.idle))
	}
	r.Means = proof + "."
	r.Not = "Which threads wait for this CPU, and how long, is not in it."
	r.Signs = append(r.Signs, attach.Sign{Cause: "softirq", Grade: attach.Candidate,
		Share: full.softirq, Proof: []string{proof}})
	r.Next = append(r.Next, ask("cat /proc/softirqs /proc/interrupts; sleep 10; cat /proc/softirqs /proc/interrupts", 0, "which softirqs and interrupts CPU "+full.cpu+" serves"))
}
