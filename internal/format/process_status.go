package format

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// KindStatus is /proc/PID/status: memory by kind, and what the process may use.
const KindStatus Kind = "status of a process"

var _ = registerFile(&row{
	kind: KindStatus, name: "process-status",
	looks: looksStatus, at: base("status"), file: (*kernelFiles).status,
	streams: []evidence.Stream{
		{Name: "/process/cpus-allowed:cpus", Doc: "Fact. How many CPUs its affinity and cpuset permit."},
		{Name: "/process/cpus-allowed:list", Doc: "Fact. Text: which CPUs, as the kernel writes it: \"0-3,8\"."},
		{Name: "/process/rss/peak:bytes", Doc: "Sample. Highest resident memory so far."},
		{Name: "/process/rss/anon:bytes", Doc: "Sample. The anonymous part of resident memory."},
		{Name: "/process/rss/file:bytes", Doc: "Sample. The part that is mapped files."},
		{Name: "/process/rss/shmem:bytes", Doc: "Sample. The part that is shared memory."},
		{Name: "/process/swap:bytes", Doc: "Sample. Swapped out."},
		{Name: "/process/page-tables:bytes", Doc: "Sample. Page tables, not part of resident memory."},
		{Name: "/process/thp-enabled:bool", Doc: "Fact. 0: huge pages are switched off for the process by prctl."},
	},
	also: []string{"/process/rss:bytes", "/process/threads:threads"},
})

func looksStatus(h head) bool {
	return strings.HasPrefix(h.start, "Name:") && (strings.Contains(h.start, "\nTgid:") ||
		strings.Contains(h.start, "\nPid:"))
}

var statusSamples = map[string]string{
	"VmHWM": "/process/rss/peak:bytes", "RssAnon": "/process/rss/anon:bytes",
	"RssFile": "/process/rss/file:bytes", "RssShmem": "/process/rss/shmem:bytes",
	"VmSwap": "/process/swap:bytes", "VmPTE": "/process/page-tables:bytes",
}

func (s *kernelFiles) status(r reading) error {
	for line := range strings.Lines(r.text) {
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		stream := statusSamples[name]
		var err error
		var v float64
		switch {
		case !ok:
		case stream != "":
			if v, err = amount(value); err == nil {
				s.add(stream, evidence.Sample, r.time, v)
			}
		case name == "VmRSS":
			if v, err = amount(value); err == nil {
				s.statusRSS = append(s.statusRSS, evidence.Record{Stream: "/process/rss:bytes",
					Shape: evidence.Sample, Time: r.time, Value: v})
			}
		case name == "Threads":
			if v, err = amount(value); err == nil && !s.hasStat {
				s.addThreads(r.time, v)
			}
		case name == "THP_enabled":
			if v, err = amount(value); err == nil {
				s.fact("/process/thp-enabled:bool", r.time, v, "")
			}
		case name == "Cpus_allowed_list":
			var n int
			if n, err = countList(value); err == nil {
				s.fact("/process/cpus-allowed:cpus", r.time, float64(n), "")
				s.fact("/process/cpus-allowed:list", r.time, 0, value)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
