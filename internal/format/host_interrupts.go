package format

import (
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// KindInterrupts is how often each interrupt came to each CPU.
const KindInterrupts Kind = "/proc/interrupts"

var _ = registerFile(&row{
	kind: KindInterrupts, name: "interrupts",
	looks: starts("CPU0"), at: base("interrupts"), file: (*kernelFiles).interrupts,
	streams: []evidence.Stream{
		{Name: "/host/interrupts/tlb:interrupts", Doc: "Counter. TLB shootdowns received, all CPUs together (x86)."},
		{Name: "/host/interrupts/call-function:interrupts",
			Doc: "Counter. Function calls on other CPUs; on arm64 IPI1."},
		{Name: "/host/interrupts/reschedule:interrupts", Doc: "Counter. Rescheduling interrupts."},
		{Name: "/host/interrupts/timer:interrupts", Doc: "Counter. Local timer."},
	},
})

// interruptNames are x86's; arm64 counts IPI0 as rescheduling and IPI1 as function calls.
var interruptNames = map[string]string{"TLB": "tlb", "CAL": "call-function", "RES": "reschedule",
	"LOC": "timer", "IPI0": "reschedule", "IPI1": "call-function"}

func (s *kernelFiles) interrupts(r reading) error {
	return s.perCPU(r, interruptNames, "/host/interrupts/", ":interrupts", true)
}

// perCPU adds up counters that have a column for each CPU, one kind a line. names gives the middle
// of a kind's stream, between prefix and unit; other kinds are left out. With described a
// description follows the counts. Otherwise what is no count is an error.
func (s *kernelFiles) perCPU(r reading, names map[string]string, prefix, unit string, described bool) error {
	for line := range strings.Lines(r.text) {
		name, rest, ok := strings.Cut(line, ":")
		stream := names[strings.TrimSpace(name)]
		if !ok || stream == "" {
			continue
		}
		sum := 0.0
		for _, f := range strings.Fields(rest) {
			v, err := strconv.ParseUint(f, 10, 64)
			if err != nil && described {
				break
			}
			if err != nil {
				return err
			}
			sum += float64(v)
		}
		s.add(prefix+stream+unit, evidence.Counter, r.time, sum)
	}
	return nil
}
