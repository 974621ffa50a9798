package collect

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// socketEnds tells which of a target's TCP connections its own side made: those whose local port
// nobody in its network namespace listens at. It reads the kernel's table of sockets when it meets
// one that it does not know, seldom, and no more of it than mostSockets.
type socketEnds struct {
	dir   string          // /proc/PID/net
	mades map[uint64]bool // by inode
	next  int64           // time of the next reading, if there is need
	pause int64
}

const (
	mostSockets = 7000  // of each table: they take some ms
	firstPause  = 500e6 // ns; each is twice as long as the one before
	// ownPorts is where the ports begin that the kernel gives to connections which a program makes
	// (ip_local_port_range, ip(7)). One below may be a listener's that is closed by now.
	ownPorts = 32768
)

// made reports whether the socket that the kernel calls name is such a connection. now is in ns.
func (e *socketEnds) made(name string, now int64) bool {
	inode, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(name, "socket:["), "]"), 10, 64)
	if err != nil {
		return false
	}
	made, known := e.mades[inode]
	if !known && now >= e.next {
		e.pause = max(firstPause, 2*e.pause)
		e.next = now + e.pause
		e.read()
		made = e.mades[inode]
	}
	return made
}

func (e *socketEnds) read() {
	listened, ports := map[uint16]bool{}, map[uint64]uint16{}
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := os.Open(filepath.Join(e.dir, name))
		if err != nil {
			continue // there is no IPv6
		}
		// What comes before a line that cannot be read counts.
		_ = eachSocket(f, mostSockets, func(local, inode string, listens bool) (more bool, err error) {
			_, digits, _ := strings.Cut(local, ":")
			port, err := strconv.ParseUint(digits, 16, 16)
			if listens {
				listened[uint16(port)] = err == nil
			} else if n, e := strconv.ParseUint(inode, 10, 64); err == nil && e == nil && n != 0 {
				ports[n] = uint16(port)
			}
			return true, nil
		})
		f.Close()
	}
	e.mades = make(map[uint64]bool, len(ports))
	for inode, port := range ports {
		e.mades[inode] = !listened[port] && port >= ownPorts
	}
}
