package need

import (
	"errors"
	"fmt"
	"os"
)

// cgroupV1 is where v1's cpu controller is usually mounted; tests make their groups there.
const cgroupV1 = "/sys/fs/cgroup/cpu"

var _ = kernelFeature("cgroup", cgroup)

// cgroup returns nil if a test may create cgroups of v1's cpu controller and give them a quota.
func cgroup() error {
	if _, err := os.Stat(cgroupV1 + "/cpu.cfs_quota_us"); err != nil {
		return errors.New("cgroup v1's cpu controller is not mounted at " + cgroupV1)
	}
	dir := fmt.Sprintf("%s/whystall-need-%d", cgroupV1, os.Getpid())
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.Remove(dir)
}
