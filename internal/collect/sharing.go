package collect

import (
	"fmt"
	"sync/atomic"

	"github.com/whystall/whystall/internal/sensor/proc"
)

// sharing tells a person that what recording takes is taken from the target's quota, as where whystall was started in its container. "" where there is
// no such quota.
func sharing(q proc.Quota) string {
	if q.Group == "" {
		return ""
	}
	return fmt.Sprintf("whystall runs under the target's own CPU quota (%.3g CPUs, cgroup %s): what it takes the target has less, and may be throttled for; "+
		"run it outside instead: on the host, or by kubectl debug node/NODE --profile=sysadmin", q.CPUs, q.Group)
}

// sharesQuota tells whether there is one with the target of the last recording.
var sharesQuota atomic.Bool
