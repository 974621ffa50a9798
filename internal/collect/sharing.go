package collect

import (
	"fmt"
	"sync/atomic"

	"github.com/whystall/whystall/internal/sensor/proc"
)

// sharing warns a person that recording uses up the target's own quota, as when whystall was
// started in its container. "" if there is no such quota.
func sharing(q proc.Quota) string {
	if q.Group == "" {
		return ""
	}
	return fmt.Sprintf("whystall runs under the target's own CPU quota (%.3g CPUs, cgroup %s): the target lacks the CPU time that it takes, and may be throttled for it; "+
		"run it outside instead: on the host, or with kubectl debug node/NODE --profile=sysadmin", q.CPUs, q.Group)
}

// sharesQuota reports whether we share one with the target of the last recording.
var sharesQuota atomic.Bool
