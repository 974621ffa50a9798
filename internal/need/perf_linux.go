package need

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"
)

// excludeKernel is the bit that unprivileged users must set.
const excludeKernel = 1 << 5

var (
	_ = kernelFeature("perf", func() error { return perfEventOpen(0, -1, excludeKernel) })
	_ = kernelFeature("perf-all", func() error { return perfEventOpen(-1, 0, 0) })
)

// perfEventOpen tries a software event that does nothing.
func perfEventOpen(pid, cpu int, bits uint64) error {
	const software, dummy = 1, 9
	attr := struct {
		kind, size   uint32
		config       uint64
		period       uint64
		sample, read uint64
		bits         uint64
		rest         [2]uint64
	}{kind: software, size: 64, config: dummy, bits: bits}
	fd, _, errno := syscall.Syscall6(syscall.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(&attr)),
		uintptr(pid), uintptr(cpu), ^uintptr(0), 0, 0)
	if errno != 0 {
		is, _ := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
		return fmt.Errorf("perf_event_open: %w (kernel.perf_event_paranoid is %s)", errno,
			strings.TrimSpace(string(is)))
	}
	return syscall.Close(int(fd))
}
