package collect

import (
	"syscall"
	"testing"

	"github.com/whystall/whystall/internal/need"
)

// mountSmall makes dir a file system of 2 MiB.
func mountSmall(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("whystall-test", dir, "tmpfs", 0, "size=2m"); err != nil {
		need.Missing(t, "mount", err.Error())
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
}
