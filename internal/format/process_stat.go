package format

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// KindPIDStat is /proc/PID/stat: CPU time, faults and sizes of a process.
const KindPIDStat Kind = "stat of a process"

var _ = registerFile(&row{
	kind: KindPIDStat, name: "process-stat",
	looks: looksPIDStat, file: (*kernelFiles).pidStat,
	at: func(p string) bool {
		return path.Base(p) == "stat" && p != "/proc/stat" && !strings.Contains(p, "/task/*/")
	},
	streams: []evidence.Stream{
		{Name: "/process/nice:nice",
			Doc: "Fact. The first thread's, from -20 to 19. A thread inherits it from the one that started it."},
		{Name: "/process/cpu/user:ns",
			Doc: "Counter. CPU time in user mode, by the kernel's count, in steps of 10 ms."},
		{Name: "/process/cpu/system:ns", Doc: "Counter. CPU time in the kernel."},
		{Name: "/process/threads:threads", Doc: "Sample. Threads that exist."},
		{Name: "/process/faults/major:faults", Doc: "Counter. Of all threads, ended ones included."},
		{Name: "/process/faults/minor:faults", Doc: "Counter."},
		{Name: "/process/vm:bytes", Doc: "Sample. Address space."},
	},
	also: []string{"/process/cpu:ns", "/process/rss:bytes"},
})

func looksPIDStat(h head) bool {
	text := h.start
	end := strings.LastIndexByte(text, ')')
	open := strings.IndexByte(text, '(')
	return open > 1 && end > open && strings.Trim(text[:open-1], "0123456789") == "" &&
		len(strings.Fields(text[end+1:])) >= 40 && !strings.Contains(text[:open], "\n")
}

// pidStat reads /proc/PID/stat. proc(5) numbers its fields; the third stands behind the command,
// which may hold anything.
func (s *kernelFiles) pidStat(r reading) error {
	end := strings.LastIndexByte(r.text, ')')
	if end < 0 {
		return fmt.Errorf("no command in parentheses")
	}
	f := strings.Fields(r.text[end+1:])
	if len(f) < 22 {
		return fmt.Errorf("want 22 fields after the command, got %d", len(f))
	}
	number := func(field int) float64 {
		v, _ := strconv.ParseFloat(f[field-3], 64) // checked below
		return v
	}
	for _, field := range []int{10, 12, 14, 15, 20, 23, 24} {
		if _, err := strconv.ParseUint(f[field-3], 10, 64); err != nil {
			return fmt.Errorf("field %d: want a number, got %.40q", field, f[field-3])
		}
	}
	tick := 1e9 / float64(s.hz)
	s.add("/process/faults/minor:faults", evidence.Counter, r.time, number(10))
	s.add("/process/faults/major:faults", evidence.Counter, r.time, number(12))
	s.add("/process/cpu:ns", evidence.Counter, r.time, (number(14)+number(15))*tick)
	s.add("/process/cpu/user:ns", evidence.Counter, r.time, number(14)*tick)
	s.add("/process/cpu/system:ns", evidence.Counter, r.time, number(15)*tick)
	if nice, err := strconv.Atoi(f[19-3]); err == nil && nice >= -20 && nice < 20 {
		s.fact("/process/nice:nice", r.time, float64(nice), "")
	}
	s.addThreads(r.time, number(20))
	s.add("/process/vm:bytes", evidence.Sample, r.time, number(23))
	if s.page > 0 {
		s.hasStat = true
		s.add("/process/rss:bytes", evidence.Sample, r.time, number(24)*float64(s.page))
	}
	return nil
}

func (s *kernelFiles) addThreads(t int64, n float64) {
	s.threads = max(s.threads, n)
	s.add("/process/threads:threads", evidence.Sample, t, n)
}
