package target

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listeners finds the sockets that listen on a TCP port, by inode, in the network namespaces of all
// processes. Another user's namespace cannot be told from ours without privilege; its sockets are
// then not seen.
func listeners(proc string, all []Process, port int) map[string]bool {
	inodes, seen := map[string]bool{}, map[string]bool{}
	look := func(dir string) {
		for _, name := range []string{"tcp", "tcp6"} {
			f, err := os.Open(filepath.Join(dir, "net", name))
			if err != nil {
				continue // there is no IPv6, or it may not be read
			}
			listening(f, port, inodes)
			f.Close()
		}
	}
	look(filepath.Join(proc, "self"))
	own, _ := os.Readlink(filepath.Join(proc, "self", "ns", "net"))
	seen[own] = true
	for i := range all {
		dir := filepath.Join(proc, strconv.Itoa(all[i].PID))
		ns, err := os.Readlink(filepath.Join(dir, "ns", "net"))
		if err != nil || seen[ns] {
			continue
		}
		seen[ns] = true
		look(dir)
	}
	return inodes
}

// listening reads the format of /proc/net/tcp: the second field is the local address, the fourth
// the state, the tenth the inode.
func listening(r io.Reader, port int, inodes map[string]bool) {
	const mostLines, listens = 1 << 20, "0A"
	s := bufio.NewScanner(r)
	for n := 0; s.Scan() && n < mostLines; n++ {
		f := strings.Fields(s.Text())
		if len(f) < 10 || f[3] != listens {
			continue
		}
		_, hex, _ := strings.Cut(f[1], ":")
		if at, err := strconv.ParseUint(hex, 16, 16); err == nil && int(at) == port {
			inodes[f[9]] = true
		}
	}
}

// holders lists the processes that have one of the sockets open. Hidden is how many processes could
// not be looked at.
func holders(proc string, all []Process, inodes map[string]bool) (l []Process, hidden int) {
	const mostFDs = 1 << 16
	for _, p := range all {
		name := filepath.Join(proc, strconv.Itoa(p.PID), "fd")
		dir, err := os.Open(name)
		if err != nil {
			hidden++
			continue
		}
		fds, _ := dir.Readdirnames(mostFDs)
		dir.Close()
		for _, fd := range fds {
			link, _ := os.Readlink(filepath.Join(name, fd))
			inode, ok := strings.CutPrefix(link, "socket:[")
			if ok && inodes[strings.TrimSuffix(inode, "]")] {
				l = append(l, p)
				break
			}
		}
	}
	return l, hidden
}
