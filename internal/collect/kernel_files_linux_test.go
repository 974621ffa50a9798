package collect

import (
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
