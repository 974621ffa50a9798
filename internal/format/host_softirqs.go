package format

import (
	"github.com/whystall/whystall/internal/evidence"
)

// KindSoftirqs is how often each CPU ran each kind of softirq. Its head is that of
// /proc/interrupts, so that it is known by its path alone.
const KindSoftirqs Kind = "/proc/softirqs"

var _ = registerFile(&row{
	kind: KindSoftirqs, name: "softirqs",
	at:   func(p string) bool { return p == "/proc/softirqs" },
	file: (*kernelFiles).softirqs,
	streams: []evidence.Stream{
		{Name: "/host/softirqs/net-rx:softirqs",
			Doc: "Counter. Runs of the softirq for packets received, all CPUs together; each handles many."},
		{Name: "/host/softirqs/net-tx:softirqs", Doc: "Counter. For packets sent."},
		{Name: "/host/softirqs/timer:softirqs", Doc: "Counter. For timers."},
		{Name: "/host/softirqs/block:softirqs", Doc: "Counter. For block devices' requests that ended."},
		{Name: "/host/softirqs/tasklet:softirqs", Doc: "Counter. For tasklets of drivers."},
		{Name: "/host/softirqs/rcu:softirqs", Doc: "Counter. For memory that RCU lets go."},
	},
})

var softirqNames = map[string]string{"NET_RX": "net-rx", "NET_TX": "net-tx", "TIMER": "timer",
	"BLOCK": "block", "TASKLET": "tasklet", "RCU": "rcu"}

func (s *kernelFiles) softirqs(r reading) error {
	return s.perCPU(r, softirqNames, "/host/softirqs/", ":softirqs", false)
}
