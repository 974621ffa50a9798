package collect

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// listening is a TCP socket in state LISTEN.
type listening struct {
	addr  netip.AddrPort
	inode uint64
}

// mostListeners is how many listeners are looked at.
const mostListeners = 4096

// parseListeners reads /proc/PID/net/tcp or tcp6 up to the first socket that does not listen: the
// kernel lists listeners first, and a busy host has a hundred thousand other sockets.
func parseListeners(r io.Reader) (ls []listening, err error) {
	err = eachSocket(r, mostListeners, func(local, inode string, listens bool) (more bool, err error) {
		if !listens {
			return false, nil
		}
		addr, err := parseHexAddr(local)
		if err != nil {
			return false, err
		}
		n, err := strconv.ParseUint(inode, 10, 64)
		if err != nil {
			return false, fmt.Errorf("inode: %w", err)
		}
		ls = append(ls, listening{addr, n})
		return true, nil
	})
	return ls, err
}

// eachSocket calls f with the rows of such a table, at most that many, until f wants no more: the
// local address and the inode as they are written, and whether it listens.
func eachSocket(r io.Reader, most int, f func(local, inode string, listens bool) (more bool, err error)) error {
	const listen = "0A"
	lines := bufio.NewScanner(r)
	for n := 0; lines.Scan() && n < most; n++ {
		if n == 0 {
			continue // names of columns
		}
		row := strings.Fields(lines.Text())
		if len(row) < 10 {
			return fmt.Errorf("line %d: want 10 fields, got %d", n+1, len(row))
		}
		more, err := f(row[1], row[9], row[3] == listen)
		if err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
		if !more {
			return nil
		}
	}
	return lines.Err()
}

// parseHexAddr reads "0100007F:1F90": 32-bit words in the machine's order, which is little-endian
// wherever this runs.
func parseHexAddr(s string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(host)
	p, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(b) != 4 && len(b) != 16 {
		return netip.AddrPort{}, fmt.Errorf("address %.50q", s)
	}
	for i := 0; i < len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], binary.LittleEndian.Uint32(b[i:]))
	}
	addr, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(addr.Unmap(), uint16(p)), nil
}

// maxAsked is how many listeners of a target are asked for profiles. With more it is a proxy, not a
// service.
const maxAsked = 16

// loopback returns the addresses at which listeners are reached without leaving the machine: first
// those on loopback, where profiles are usually served, then those on every address.
func loopback(ls []listening) (at []netip.AddrPort) {
	for _, wild := range []bool{false, true} {
		for _, l := range ls {
			a := l.addr.Addr()
			switch {
			case wild && a == netip.IPv4Unspecified(), wild && a == netip.IPv6Unspecified():
				// A socket on [::] takes IPv4 as well, nearly always; and not every host has IPv6
				// on loopback.
				a = netip.AddrFrom4([4]byte{127, 0, 0, 1})
			case wild || !a.IsLoopback():
				continue
			}
			if p := netip.AddrPortFrom(a, l.addr.Port()); !slices.Contains(at, p) && len(at) < maxAsked {
				at = append(at, p)
			}
		}
	}
	return at
}
