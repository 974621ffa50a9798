package collect

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// TestKindOfFile: what this kernel calls sockets, pipes and files.
func TestKindOfFile(t *testing.T) {
	kind := func(fd int) uint64 {
		path, err := os.Readlink(filepath.Join("/proc/self/fd", strconv.Itoa(fd)))
		if err != nil {
			t.Fatal(err)
		}
		return kindOfFile(path)
	}
	socks, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(socks[0])
	defer syscall.Close(socks[1])
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	f, err := os.Create(filepath.Join(t.TempDir(), "socket:[1]"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range []struct {
		what string
		fd   int
		want uint64
	}{{"a socket", socks[0], kernel.FileSocket}, {"a pipe", int(r.Fd()), kernel.FilePipe},
		{"a file", int(f.Fd()), kernel.FileOther}} {
		if got := kind(c.fd); got != c.want {
			t.Errorf("%s is of kind %d, want %d", c.what, got, c.want)
		}
	}
}

// TestSocketEnds: of the two ends of a connection one was made by its own side.
func TestSocketEnds(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialled, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close()
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	name := func(c net.Conn) (name string) {
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		raw.Control(func(fd uintptr) {
			name, err = os.Readlink(filepath.Join("/proc/self/fd", strconv.Itoa(int(fd))))
		})
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	e := socketEnds{dir: "/proc/self/net"}
	if !e.made(name(dialled), 1) || e.made(name(accepted), 1) {
		t.Errorf("made by their own sides: %v, and %s is, %s is not", e.mades, name(dialled), name(accepted))
	}
	if e.made("socket:[", 2) || e.made("socket:[1]", 2) || e.next != 1+firstPause {
		t.Errorf("a socket that is in no table: %+v", e)
	}
}
