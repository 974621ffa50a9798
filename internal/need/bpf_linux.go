package need

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

var _ = kernelFeature("bpf", bpf)

func bpf() error {
	const sysAdmin, perfmon, bpf = 21, 38, 39 // capabilities
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return fmt.Errorf("the kernel does not export its types: %w", err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, after, _ := strings.Cut(string(status), "\nCapEff:")
	line, _, _ := strings.Cut(after, "\n")
	caps, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	if err != nil {
		return fmt.Errorf("read /proc/self/status: %w", err)
	}
	if caps>>sysAdmin&1 == 0 && (caps>>bpf&1 == 0 || caps>>perfmon&1 == 0) {
		return errors.New("needs CAP_BPF and CAP_PERFMON")
	}
	return nil
}
