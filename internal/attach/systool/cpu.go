package systool

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// cpuUse is how CPUs spent their time, in percent: medians over samples.
type cpuUse struct {
	us, sy, wa, hi, si, st, id float64
	samples                    int
	cpus                       int     // how many CPUs it is of; 0: not known
	runnable                   float64 // threads that run or want to, the median; negative: not known
	blocked                    float64 // threads in D, likewise
	load                       bool    // runnable is a load average, which counts D as well
	still                      bool    // next to nothing is read from disks or written to them meanwhile
	passed                     bool    // by the load average, no thread waited through the last minute
	average                    bool    // from a line of averages, since the samples are not there
	glance                     bool    // what follows from a queue is a candidate at most
}

// Thresholds in percent of CPU time, and of threads for each CPU.
const (
	stealMatters  = 5
	stealMuch     = 10
	iowaitMatters = 10
	iowaitBlocked = 20 // beside threads that are blocked
	iowaitMuch    = 30
	idleNone      = 100 * attach.QueueIdle
	queueMatters  = attach.QueueShort
	queueMuch     = attach.QueueLong
	enoughSamples = 3
)

func (c cpuUse) String() string {
	var b strings.Builder
	for _, p := range []struct {
		name  string
		value float64
		shown bool
	}{
		{"idle", c.id, true}, {"user", c.us, true}, {"system", c.sy, true},
		{"iowait", c.wa, c.wa >= 1}, {"interrupts", c.hi + c.si, c.hi+c.si >= 5 && c.hi < softMuch},
		{"hard interrupts", c.hi, c.hi >= softMuch}, {"steal", c.st, c.st >= 1},
	} {
		if !p.shown {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %% %s", plain(p.value), p.name)
	}
	return b.String()
}

// basis says what the figures are of.
func (c cpuUse) basis() string {
	switch {
	case c.average:
		return "on average"
	case c.samples < 2:
		return "in one sample"
	}
	return "the median of " + samples(c.samples)
}

// judge adds what follows from the use of CPUs to a verdict.
func (c cpuUse) judge(v *verdict) {
	if c.samples > 1 || !v.Glance { // one screen may cover an instant, or all time since boot
		v.fact(StealShare, c.st/100)
		v.fact(IOWaitShare, c.wa/100)
		v.fact(IdleShare, c.id/100)
	}
	if c.cpus > 0 {
		v.fact(CPUs, float64(c.cpus))
	}
	if c.runnable >= 0 && !c.load && c.samples >= enoughSamples { // no rule finds a queue by fewer
		v.fact(RunQueue, c.runnable)
		if c.cpus > 0 {
			v.fact(RunQueuePerCPU, c.runnable/float64(c.cpus))
		}
	}
	c.steal(v)
	c.iowait(v)
	c.queue(v)
	c.interrupts(v)
	c.system(v)
}

// softMuch is the share of CPU time, in percent, from which soft interrupts take what others want.
const softMuch = 25

// interrupts: much of the CPU time is the work of interrupts, mostly packets.
func (c cpuUse) interrupts(v *verdict) {
	if c.hi >= softMuch {
		v.unsure = true
		v.means("hard interrupts take %s %% of the CPU time", plain(c.hi))
		v.not("whether a CPU is in an interrupt all that time, or only booked for it: some kernels book idle time so")
		v.next("cat /proc/interrupts; sleep 10; cat /proc/interrupts", "which interrupts they are, and on which CPU")
	}
	if c.si < softMuch {
		return
	}
	proof := fmt.Sprintf("soft interrupts take %s %% of the CPU time, %s",
		plain(c.si), c.basis())
	v.candidate("softirq", c.si/100, proof)
	v.means("soft interrupts take %s %% of the CPU time; which they are is not in it", plain(c.si))
	v.not("whose threads they interrupt, and for how long")
	v.next("cat /proc/softirqs; sleep 10; cat /proc/softirqs", "which soft interrupts they are")
}

func (c cpuUse) steal(v *verdict) {
	proof := fmt.Sprintf("steal %s %% of CPU time, %s", plain(c.st), c.basis())
	switch {
	case c.st < stealMatters:
		if c.samples >= enoughSamples {
			v.against("cpu-steal", proof)
		}
		return
	case c.st >= stealMuch && c.samples >= enoughSamples:
		v.found("cpu-steal", finding.Supported, c.st/100, proof)
	case c.samples >= enoughSamples:
		v.found("cpu-steal", finding.Possible, c.st/100, proof)
	default:
		v.candidate("cpu-steal", c.st/100, proof)
		v.next("vmstat 1 30", "whether steal lasts")
	}
	v.means("the hypervisor takes %s %% of the CPU time from this machine", plain(c.st))
}

func (c cpuUse) iowait(v *verdict) {
	if c.wa < iowaitMatters {
		return
	}
	if c.passed {
		v.not("that a disk was waited for: iowait of one screen is idle time of CPUs, and the load average, which counts threads in D, was next to 0")
		return
	}
	proof := []string{fmt.Sprintf("iowait %s %%, %s", plain(c.wa), c.basis())}
	v.not("iowait is idle time of CPUs: it does not say which threads wait, for a disk, NFS or io_uring, nor that the service's requests do")
	v.next("pidstat -d 1 10", "which processes wait for the disk")
	v.next("iostat -x 1 10", "which device is slow: r_await, w_await, aqu-sz")
	switch {
	case v.finds("page-fault"): // the disk is waited for inside of page faults
	case v.scarce:
		v.candidate("page-fault", c.wa/100,
			append(proof, "memory is short, so pages of programs that were given up are read from the disk again")...)
		return
	case c.still:
		v.candidate("disk-wait", c.wa/100, append(proof, "next to nothing is read or written meanwhile")...)
		v.means("CPUs are idle %s %% of the time while threads wait, and next to nothing is read or written: requests are stuck, or threads wait for something else in the kernel", plain(c.wa))
	case c.blocked >= 1 && c.samples >= enoughSamples && c.wa >= iowaitBlocked:
		proof = append(proof, fmt.Sprintf("threads blocked on I/O: %s, the median", plain(c.blocked)))
		if v.swapsOut {
			v.candidate("disk-wait", c.wa/100, proof...)
			break
		}
		v.found("disk-wait", finding.Possible, c.wa/100, proof...)
	case c.samples >= enoughSamples && c.wa >= iowaitMuch && !v.swapsOut:
		v.found("disk-wait", finding.Possible, c.wa/100, proof...)
	default:
		v.candidate("disk-wait", c.wa/100, proof...)
	}
	v.means("CPUs are idle %s %% of the time while threads wait for I/O", plain(c.wa))
}

// queue judges demand against CPUs. Whose threads they are the machine's figures do not say.
func (c cpuUse) queue(v *verdict) {
	if c.id > idleNone || c.wa > idleNone {
		return
	}
	busy := 100 - c.id - c.wa
	if v.pid > 0 {
		v.next(fmt.Sprintf("pidstat -u -w -t -p %d 1 10", v.pid),
			"%wait and nvcswch/s of its threads: whether they wait for a CPU")
	}
	if v.pid == 0 {
		v.next("pidstat -u -w -t -p PID 1 10", "%wait and nvcswch/s of the service's own threads")
	}
	share := (c.runnable - float64(c.cpus)) / max(1, c.runnable)
	proof := fmt.Sprintf("%s runnable threads on %d CPUs which are %s %% busy", plain(c.runnable), c.cpus, plain(busy))
	if c.load {
		proof = fmt.Sprintf("load average %s on %d CPUs which are %s %% busy", plain(c.runnable), c.cpus, plain(busy))
	}
	switch {
	case c.cpus == 0 && c.runnable >= 2:
		v.unsure = true
		proof = fmt.Sprintf("%s runnable threads, CPUs %s %% busy; how many CPUs there are is not in it", plain(c.runnable), plain(busy))
		if c.load {
			proof = fmt.Sprintf("load average %s, CPUs %s %% busy; how many CPUs there are is not in it", plain(c.runnable), plain(busy))
		}
		v.candidate("cpu-contention", 0, proof)
		counts := "r counts the threads that run as well"
		if c.load {
			counts = "a load average counts the threads that run and those in D as well"
		} else {
			v.candidate("runqueue-saturation", 0, proof)
		}
		if v.pid > 0 && v.Means != "" {
			v.Means += "; threads that queue may be its own"
		}
		v.means("the CPUs are %s %% busy; whether threads queue for them depends on how many CPUs there are", plain(busy))
		v.not(counts + ": 8 of them on 8 CPUs are no queue")
		v.next("nproc", "threads queue only if more of them are runnable than there are CPUs")
	case c.cpus > 0 && c.runnable >= queueMatters*float64(c.cpus) &&
		(c.glance || v.pid > 0 || c.samples < enoughSamples && !c.load):
		v.candidate("cpu-contention", share, proof)
		v.candidate("runqueue-saturation", share, proof)
		if v.pid > 0 {
			v.means("more threads want to run than there are CPUs: %s on %d; nearly all of the CPU time is of one process, so they may be its own", plain(c.runnable), c.cpus)
		}
		v.means("more threads want to run than there are CPUs: %s on %d", plain(c.runnable), c.cpus)
		v.not("whose threads wait, and whether they are the service's")
	case c.cpus > 0 && c.runnable >= queueMatters*float64(c.cpus):
		v.found("cpu-contention", finding.Possible, share, proof)
		if c.runnable >= queueMuch*float64(c.cpus) {
			v.candidate("runqueue-saturation", share, proof)
		}
		v.means("more threads want to run than there are CPUs: %s on %d", plain(c.runnable), c.cpus)
		v.not("whose threads wait, and whether they are the service's")
	default:
		v.unsure = true
		kernel := ""
		if c.sy >= 30 && c.sy > c.us {
			kernel = fmt.Sprintf(", more than half of it in the kernel (%s %% system)", plain(c.sy))
		}
		if c.samples <= 1 && v.Glance {
			v.means("the CPUs are %s %% busy in this one screen%s", plain(busy), kernel)
		}
		v.means("the CPUs are %s %% busy with computing%s; a queue for them is not shown", plain(busy), kernel)
		v.not("a busy CPU is not yet a wait for a CPU")
	}
}

// system asks for a profile where the kernel uses the CPUs.
func (c cpuUse) system(v *verdict) {
	if sy := c.sy + c.hi + c.si; sy >= 30 && sy > c.us && c.si < softMuch && c.hi < softMuch {
		v.unsure = true
		v.next("perf top -g", "which kernel functions use the CPU")
		v.means("%s %% of the CPU time is the kernel's: what it does there is not in it", plain(sy))
	}
}

func samples(n int) string { return attach.Plural(n, "sample") }
