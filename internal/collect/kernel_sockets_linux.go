package collect

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// socketEnds tells which of a target's TCP connections its own side made: those whose local port
// nobody in its network namespace listens at. It reads the kernel's table of sockets when it meets
// one that it does not know, seldom, and no more of it than maxSocketTable.
type socketEnds struct {
	dir   string          // /proc/PID/net
	mades map[uint64]bool // by inode
	next  int64           // time of the next reading, if there is need
	pause int64
}

const (
	maxSocketTable = 1 << 20 // bytes of each table, about 7 000 sockets, which take some ms
	firstPause     = 500e6   // ns; each is twice as long as the one before
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
		parseSocketTable(io.LimitReader(f, maxSocketTable), listened, ports)
		f.Close()
	}
	e.mades = make(map[uint64]bool, len(ports))
	for inode, port := range ports {
		e.mades[inode] = !listened[port] && port >= ownPorts
	}
}

// parseSocketTable reads the form of /proc/PID/net/tcp (proc_pid_net(5)): the ports that are
// listened at, and the local port of each other socket by its inode. It leaves out lines that it
// does not understand.
func parseSocketTable(r io.Reader, listened map[uint16]bool, ports map[uint64]uint16) {
	const listen, fields = "0A", 12 // a line that is cut has fewer
	for lines := bufio.NewScanner(r); lines.Scan(); {
		f := bytes.Fields(lines.Bytes())
		if len(f) < fields {
			continue
		}
		_, digits, _ := bytes.Cut(f[1], []byte(":"))
		port, err := strconv.ParseUint(string(digits), 16, 16)
		inode, err2 := strconv.ParseUint(string(f[9]), 10, 64)
		switch {
		case err != nil || err2 != nil:
		case string(f[3]) == listen:
			listened[uint16(port)] = true
		case inode != 0:
			ports[inode] = uint16(port)
		}
	}
}
