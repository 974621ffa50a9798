package collect

import (
	"os"
	"strings"
	"syscall"
)

// ownCPU is the CPU time of this process so far, ns.
func ownCPU() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// release is the running kernel's, "" where it is not told.
func release() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
