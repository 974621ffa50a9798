//go:build unix

package exectrace

import (
	"fmt"
	"math"
	"os"
	"syscall"
)

// mapFile maps the file's first size bytes. An empty file cannot be mapped and needs none.
func mapFile(f *os.File, size int64) ([]byte, bool, error) {
	if size == 0 {
		return nil, false, nil
	}
	if size > math.MaxInt {
		return nil, false, fmt.Errorf("%d bytes do not fit the address space", size)
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, false, err
	}
	return b, true, nil
}

func unmap(b []byte) error { return syscall.Munmap(b) }
