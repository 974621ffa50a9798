//go:build linux || darwin

package cli

import (
	"io"
	"os"
	"syscall"
	"unsafe"
)

// columns is the width of the terminal w; 0 where w is none or does not report it.
func columns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	var size struct{ rows, columns, x, y uint16 } // struct winsize of ioctl_tty(2)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ,
		uintptr(unsafe.Pointer(&size))); errno != 0 {
		return 0
	}
	return int(size.columns)
}
