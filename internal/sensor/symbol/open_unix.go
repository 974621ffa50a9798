//go:build unix

package symbol

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// A FIFO that took the place of a regular file must not block us.
const nonblock = syscall.O_NONBLOCK

// identity returns the device and inode of a file, the device as /proc/PID/maps has it.
func identity(name string) (dev, inode uint64, err error) {
	st, err := os.Stat(name)
	if err != nil {
		return 0, 0, err
	}
	return identityOf(st)
}

func identityOf(st os.FileInfo) (dev, inode uint64, err error) {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, errors.ErrUnsupported
	}
	d := uint64(sys.Dev)
	major := d>>8&0xfff | d>>32&^0xfff
	minor := d&0xff | d>>12&^0xff
	return major<<32 | minor&0xffffffff, sys.Ino, nil
}

// isMapped returns nil if the file is the mapped one. Maps shows the numbers of the file system
// below an overlay, so there the same inode on another device will do.
func isMapped(f *os.File, m mapping) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	dev, inode, err := identityOf(st)
	if err != nil {
		return err
	}
	if inode == m.inode && (dev == m.dev || dev>>32 == 0) {
		return nil // a device without a major number: overlay, btrfs
	}
	return fmt.Errorf("replaced: inode %d, mapped is inode %d", inode, m.inode)
}

// ownVDSO copies the vdso out of our own memory.
func ownVDSO() (*bytes.Reader, error) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	defer maps.Close()
	all, err := parseMaps(maps)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if m.path != "[vdso]" || m.end-m.start > 1<<20 {
			continue
		}
		mem, err := os.Open("/proc/self/mem")
		if err != nil {
			return nil, err
		}
		defer mem.Close()
		b := make([]byte, m.end-m.start)
		if _, err := mem.ReadAt(b, int64(m.start)); err != nil {
			return nil, err
		}
		return bytes.NewReader(b), nil
	}
	return nil, errors.New("no vdso is mapped")
}
