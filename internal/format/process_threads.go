package format

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// What the recorder reads of each thread and writes as one reading.
const (
	KindThreadTimes  Kind = "times of a process's threads"
	KindThreadStates Kind = "states of a process's threads"
)

var _ = registerFile(&row{
	kind: KindThreadTimes, name: "thread-times",
	at: func(p string) bool { return strings.HasSuffix(p, "/task/*/schedstat") }, file: (*kernelFiles).threadTimes,
	streams: []evidence.Stream{
		{Name: "/process/run:ns", Doc: "Counter. Time on a CPU, over the threads that were read (schedstat)."},
		{Name: "/process/queued:ns",
			Doc: "Counter. Time runnable and not running, throttling included, over the same threads."},
		{Name: "/process/switches/voluntary:switches",
			Doc: "Counter. Over all threads if taskstats was read, otherwise over those that were read."},
		{Name: "/process/switches/involuntary:switches", Doc: "Counter. Likewise."},
	},
})

var _ = registerFile(&row{
	kind: KindThreadStates, name: "thread-states",
	at: func(p string) bool { return strings.HasSuffix(p, "/task/*/stat") }, file: (*kernelFiles).threadStates,
	streams: []evidence.Stream{
		{Name: "/process/threads/running:threads",
			Doc: "Sample. Threads in state R when they were read one by one: a glance, which counts too few."},
		{Name: "/process/threads/disk:threads", Doc: "Sample. Threads in state D, likewise."},
		{Name: "/process/threads/read:threads",
			Doc: "Sample. How many were read, if there are too many to read all: the sums over threads are of these."},
	},
})

// threadSums is what threads had run, waited and switched up to one time.
type threadSums struct {
	time    int64
	all     float64 // how many threads there were; those beyond a bound were not read
	threads map[int64][4]float64
}

// threadTimes reads lines "TID: run queued slices voluntary involuntary" under one with the number
// of threads.
func (s *kernelFiles) threadTimes(r reading) error {
	t := threadSums{time: r.time, threads: map[int64][4]float64{}}
	for line := range strings.Lines(r.text) {
		if n, ok := strings.CutPrefix(line, "threads "); ok {
			t.all, _ = amount(n)
			continue
		}
		id, rest, _ := strings.Cut(line, ":")
		tid, err := strconv.ParseInt(id, 10, 64)
		f := strings.Fields(rest)
		if err != nil || len(f) < 5 {
			return fmt.Errorf("want TID and five numbers, got %.60q", line)
		}
		var v [4]float64
		for i, k := range []int{0, 1, 3, 4} {
			if v[i], err = amount(f[k]); err != nil {
				return err
			}
		}
		t.threads[tid] = v
	}
	s.sums = append(s.sums, t)
	return nil
}

// threadStates counts the states in lines "TID (comm) S".
func (s *kernelFiles) threadStates(r reading) error {
	var read, running, disk, all float64
	for line := range strings.Lines(r.text) {
		if n, ok := strings.CutPrefix(line, "threads "); ok {
			all, _ = amount(n)
			continue
		}
		end := strings.LastIndexByte(line, ')')
		if end < 0 || end+2 >= len(line) {
			return fmt.Errorf("want TID (name) state, got %.60q", line)
		}
		read++
		switch line[end+2] {
		case 'R':
			running++
		case 'D':
			disk++
		}
	}
	if read == 0 {
		return nil
	}
	s.threads = max(s.threads, all)
	s.add("/process/threads/running:threads", evidence.Sample, r.time, running)
	s.add("/process/threads/disk:threads", evidence.Sample, r.time, disk)
	s.add("/process/threads/read:threads", evidence.Sample, r.time, read)
	return nil
}

// finishThreads sums over the threads that were read. taskstats counts the switches of all threads,
// and is better where it was read.
func (s *kernelFiles) finishThreads() {
	switches := slices.ContainsFunc(s.delays, func(r delayReading) bool { _, ok := r.fields["nvcsw"]; return ok })
	// A thread that is new since the last reading counts with all it has. But if not all threads
	// are read, it may only have been left out before.
	var sum [4]float64
	for i, t := range s.sums {
		for tid, v := range t.threads {
			var before [4]float64
			if i > 0 {
				b, ok := s.sums[i-1].threads[tid]
				if !ok && t.all > float64(len(t.threads)) {
					continue
				}
				before = b
			}
			for k := range v {
				sum[k] += max(0, v[k]-before[k])
			}
		}
		s.add("/process/run:ns", evidence.Counter, t.time, sum[0])
		s.add("/process/queued:ns", evidence.Counter, t.time, sum[1])
		if !switches {
			s.add("/process/switches/voluntary:switches", evidence.Counter, t.time, sum[2])
			s.add("/process/switches/involuntary:switches", evidence.Counter, t.time, sum[3])
		}
	}
}
