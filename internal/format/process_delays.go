package format

import (
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// KindTaskstats is what taskstats answers for a process.
const KindTaskstats Kind = "delay accounting"

var _ = registerFile(&row{
	kind: KindTaskstats, name: "taskstats",
	at: base("taskstats"), file: (*kernelFiles).taskstats, gap: "/process/delay/blkio:ns",
	streams: []evidence.Stream{
		{Name: "/process/delay/cpu:ns",
			Doc: "Counter. Delay accounting: runnable and not running. At most threads x wall."},
		{Name: "/process/delay/blkio:ns", Doc: "Counter. Waiting for block devices. A Gap if task_delayacct is off."},
		{Name: "/process/delay/swapin:ns", Doc: "Counter."},
		{Name: "/process/delay/reclaim:ns", Doc: "Counter. In direct reclaim."},
		{Name: "/process/delay/thrashing:ns", Doc: "Counter. Reading the working set again."},
		{Name: "/process/delay/compact:ns", Doc: "Counter. In direct compaction."},
		{Name: "/process/delay/wpcopy:ns", Doc: "Counter. Copying pages on write."},
		{Name: "/process/delay/reclaim:stalls", Doc: "Counter. How many."},
		{Name: "/process/delay/compact:stalls", Doc: "Counter."},
	},
	also: []string{"/process/switches/voluntary:switches", "/process/switches/involuntary:switches"},
})

// delayReading is one reading of taskstats.
type delayReading struct {
	time   int64
	fields map[string]float64
}

func (s *kernelFiles) taskstats(r reading) error {
	d := delayReading{time: r.time, fields: map[string]float64{}}
	err := pairs(r.text, " ", func(name string, v float64) { d.fields[name] = v })
	s.delays = append(s.delays, d)
	return err
}

// delayStreams lists the counter of each delay, and the number of delays.
var delayStreams = []struct {
	field, stream string
	always        bool // counted with task_delayacct off as well
}{
	{"cpu_delay_total", "/process/delay/cpu:ns", true},
	{"blkio_delay_total", "/process/delay/blkio:ns", false}, {"swapin_delay_total", "/process/delay/swapin:ns", false},
	{"freepages_delay_total", "/process/delay/reclaim:ns", false},
	{"thrashing_delay_total", "/process/delay/thrashing:ns", false},
	{"compact_delay_total", "/process/delay/compact:ns", false},
	{"wpcopy_delay_total", "/process/delay/wpcopy:ns", false},
	{"freepages_count", "/process/delay/reclaim:stalls", false},
	{"compact_count", "/process/delay/compact:stalls", false},
}

// finishDelays limits the growth of each delay to threads x wall: a delay that had started before
// the accounting was switched on would count as hours.
func (s *kernelFiles) finishDelays() {
	for _, d := range delayStreams {
		if s.delayOff && !d.always {
			if len(s.delays) > 0 {
				s.gap(d.stream, s.delays[0].time, "not counted: sysctl kernel.task_delayacct is 0")
			}
			continue
		}
		value, last := 0.0, -1
		for i, r := range s.delays {
			v, ok := r.fields[d.field]
			if !ok {
				continue
			}
			if last < 0 {
				value = v
			} else {
				grown := max(0, v-s.delays[last].fields[d.field])
				if strings.HasSuffix(d.stream, ":ns") {
					grown = min(grown, float64(r.time-s.delays[last].time)*max(1, s.threads))
				}
				value += max(0, grown)
			}
			last = i
			s.add(d.stream, evidence.Counter, r.time, value)
		}
	}
	for _, r := range s.delays {
		if v, ok := r.fields["nvcsw"]; ok {
			s.add("/process/switches/voluntary:switches", evidence.Counter, r.time, v)
			s.add("/process/switches/involuntary:switches", evidence.Counter, r.time, r.fields["nivcsw"])
		}
	}
}
