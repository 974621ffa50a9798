package collect

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// ownListeners returns the listeners of pid alone: it may share its network namespace with other
// processes.
func ownListeners(pid int) ([]listening, error) {
	dir := procDir(pid)
	own, err := socketInodes(dir)
	if err != nil {
		return nil, err
	}
	var out []listening
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := os.Open(filepath.Join(dir, "net", name))
		if err != nil {
			continue // there is no IPv6
		}
		ls, err := parseListeners(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("read %s/net/%s: %w", dir, name, err)
		}
		for _, l := range ls {
			if own[l.inode] {
				out = append(out, l)
			}
		}
	}
	return out, nil
}

// maxFDs bounds how many of a target's files are looked at: each costs a microsecond.
const maxFDs = 1 << 16

func socketInodes(dir string) (map[uint64]bool, error) {
	f, err := os.Open(filepath.Join(dir, "fd"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(maxFDs)
	if err != nil && len(names) == 0 {
		return nil, err
	}
	own := map[uint64]bool{}
	for _, n := range names {
		link, _ := os.Readlink(filepath.Join(dir, "fd", n))
		if s, ok := strings.CutPrefix(link, "socket:["); ok {
			if inode, err := strconv.ParseUint(strings.TrimSuffix(s, "]"), 10, 64); err == nil {
				own[inode] = true
			}
		}
	}
	return own, nil
}

// dialIn returns a dialer in pid's network namespace. It is nil if that is ours, where any dialer
// will do.
func dialIn(pid int) (func(ctx context.Context, network, addr string) (net.Conn, error), error) {
	name := filepath.Join(procDir(pid), "ns", "net")
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return nil, err
	}
	if theirs, err := os.Readlink(name); err != nil || theirs == ours {
		return nil, err
	}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		type answer struct {
			c   net.Conn
			err error
		}
		done := make(chan answer, 1)
		go func() {
			// The thread that enters the other namespace ends with this goroutine, as it is never
			// unlocked: nothing of ours can run there by mistake. A socket stays where it was
			// created.
			runtime.LockOSThread()
			var a answer
			if a.err = enter(name); a.err == nil {
				// A numeric address is dialled on this thread.
				a.c, a.err = (&net.Dialer{}).DialContext(ctx, network, addr)
			}
			done <- a
		}()
		a := <-done
		return a.c, a.err
	}
	// Entering is tried once, so that "not permitted" does not look like "nobody listens".
	tried := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		tried <- enter(name)
	}()
	return dial, <-tried
}

// enter moves the calling thread into a network namespace.
func enter(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	// Package syscall does not have setns for every architecture.
	setns := map[string]uintptr{"amd64": 308, "arm64": 268}[runtime.GOARCH]
	if setns == 0 {
		return syscall.ENOSYS
	}
	if _, _, errno := syscall.RawSyscall(setns, f.Fd(), syscall.CLONE_NEWNET, 0); errno != 0 {
		return os.NewSyscallError("setns", errno)
	}
	return nil
}
