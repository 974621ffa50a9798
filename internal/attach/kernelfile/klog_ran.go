package kernelfile

import (
	"fmt"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// irqEvents is what a kernel with lockdep counts of a stuck task: how often it switched interrupts
// on or off, and how often when softirqs last ended. Between lies code that ran.
type irqEvents struct{ now, softirqs float64 }

var (
	irqStamp    = pattern.New(`^irq event stamp: (\d{1,18})$`)
	softirqsEnd = pattern.New(`^softirqs last +enabled at \((\d{1,18})\)`)
)

// read takes the first of each: that of the task that was stuck.
func (q *irqEvents) read(text string) {
	if m := irqStamp.FindStringSubmatch(text); m != nil && q.now == 0 {
		q.now = float(m[1])
	}
	if m := softirqsEnd.FindStringSubmatch(text); m != nil && q.now > 0 && q.softirqs == 0 {
		q.softirqs = float(m[1])
	}
}

// irqsRan is how many such events only code that ran for long can have made: a CPU that runs ends
// softirqs within milliseconds, unless this code keeps it from that.
const irqsRan = 1e6

func (q irqEvents) ran() bool { return q.softirqs > 0 && q.now-q.softirqs >= irqsRan }

// ran reports whether a CPU took nearly all ticks of the time for which RCU waited. One that a
// hypervisor does not run takes none.
func (r *rcuReport) ran() bool { return r.jiffies > 0 && r.ticked >= 0.9*r.jiffies }

// ranBy says by which count a CPU that was held ran.
func (r *report) ranBy() string {
	if r.irqs.ran() {
		return fmt.Sprintf("the CPU ran meanwhile: the task switched interrupts on or off %s times since softirqs last ended",
			number(r.irqs.now-r.irqs.softirqs))
	}
	return fmt.Sprintf("the CPU ran meanwhile: it took %s ticks in %s jiffies", number(r.rcu.ticked), number(r.rcu.jiffies))
}
