package format

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// KindStat is the host's CPU time by state, and its switches.
const KindStat Kind = "/proc/stat"

var _ = registerFile(&row{
	kind: KindStat, name: "stat",
	looks: looksStat, file: (*kernelFiles).hostStat,
	at: func(p string) bool { return p == "/proc/stat" },
	streams: []evidence.Stream{
		{Name: "/host/cpus:cpus", Doc: "Fact. CPUs online."},
		{Name: "/host/cpu/user:ns", Doc: "Counter. All CPUs together; in steps of 10 ms."},
		{Name: "/host/cpu/system:ns", Doc: "Counter. Interrupts included."},
		{Name: "/host/cpu/idle:ns", Doc: "Counter. Waiting for block devices included."},
		{Name: "/host/cpu/iowait:ns", Doc: "Counter. Part of idle."},
		{Name: "/host/cpu/irq:ns", Doc: "Counter. Hard and soft interrupts, part of system."},
		{Name: "/host/steal:ns", Doc: "Counter. Time the hypervisor ran something else, all CPUs together."},
		{Name: "/host/each/idle:ns", Doc: "Counter a CPU, its number in Text."},
		{Name: "/host/each/steal:ns", Doc: "Counter a CPU, its number in Text."},
		{Name: "/host/switches:switches", Doc: "Counter. Context switches of the host."},
		{Name: "/host/forks:threads", Doc: "Counter. Processes and threads made on the host."},
		{Name: "/host/running:threads", Doc: "Sample. Threads of the host that are on a CPU or in a run queue."},
		{Name: "/host/blocked:threads", Doc: "Sample. Threads of the host waiting for block devices."},
	},
})

func looksStat(h head) bool {
	return strings.HasPrefix(h.start, "cpu ") && strings.Contains(h.start, "\ncpu0 ")
}

// hostStat reads /proc/stat. Fields of a cpu: user, nice, system, idle, iowait, irq, softirq,
// steal, guest, guest_nice; guest is in user.
func (s *kernelFiles) hostStat(r reading) error {
	tick := 1e9 / float64(s.hz)
	cpus := 0
	for line := range strings.Lines(r.text) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		v := make([]float64, 10)
		for i := 0; i < 10 && i+1 < len(f); i++ {
			n, err := strconv.ParseFloat(f[i+1], 64)
			if err != nil || n != n || n < 0 || n > 1e18 {
				return fmt.Errorf("%.20s: want a number, got %.40q", f[0], f[i+1])
			}
			v[i] = n
		}
		switch {
		case f[0] == "cpu":
			s.add("/host/cpu/user:ns", evidence.Counter, r.time, (v[0]+v[1])*tick)
			s.add("/host/cpu/system:ns", evidence.Counter, r.time, (v[2]+v[5]+v[6])*tick)
			s.add("/host/cpu/idle:ns", evidence.Counter, r.time, (v[3]+v[4])*tick)
			s.add("/host/cpu/iowait:ns", evidence.Counter, r.time, v[4]*tick)
			s.add("/host/cpu/irq:ns", evidence.Counter, r.time, (v[5]+v[6])*tick)
			s.add("/host/steal:ns", evidence.Counter, r.time, v[7]*tick)
		case strings.HasPrefix(f[0], "cpu") && isNumber(f[0][3:]):
			cpus++
			s.eachCPU("/host/each/idle:ns", f[0][3:], r.time, (v[3]+v[4])*tick)
			s.eachCPU("/host/each/steal:ns", f[0][3:], r.time, v[7]*tick)
		case f[0] == "ctxt":
			s.add("/host/switches:switches", evidence.Counter, r.time, v[0])
		case f[0] == "processes":
			s.add("/host/forks:threads", evidence.Counter, r.time, v[0])
		case f[0] == "procs_running":
			s.add("/host/running:threads", evidence.Sample, r.time, v[0])
		case f[0] == "procs_blocked":
			s.add("/host/blocked:threads", evidence.Sample, r.time, v[0])
		}
	}
	if cpus > 0 {
		s.fact("/host/cpus:cpus", r.time, float64(cpus), "")
	}
	return nil
}

// eachCPU keeps the first and the last reading of a CPU: there may be hundreds of CPUs and of
// readings.
func (s *kernelFiles) eachCPU(stream, cpu string, t int64, v float64) {
	key := stream + cpu
	pair, ok := s.each[key]
	rec := &evidence.Record{Stream: stream, Shape: evidence.Counter, Time: t, Value: v, Text: cpu}
	if !ok {
		s.eachOrder = append(s.eachOrder, key)
		s.each[key] = [2]*evidence.Record{rec, nil}
		return
	}
	s.each[key] = [2]*evidence.Record{pair[0], rec}
}
