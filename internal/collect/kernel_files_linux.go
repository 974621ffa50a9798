package collect

import (
	"hash/maphash"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sensor/bpf"
)

// uninterruptible is the bit of a thread's state that is set while it waits for a disk, among
// others.
const uninterruptible = 2

// fileCalls has, by GOARCH, the numbers of the system calls whose first argument is the file that
// they read, write or sync.
var fileCalls = map[string]map[uint64]bool{
	"amd64": {0: true, 1: true, 17: true, 18: true, 19: true, 20: true, 40: true, 74: true,
		75: true, 76: true, 77: true, 78: true, 187: true, 217: true, 277: true, 285: true,
		295: true, 296: true, 327: true, 328: true, 306: true},
	"arm64": {46: true, 47: true, 61: true, 63: true, 64: true, 65: true, 66: true, 67: true,
		68: true, 69: true, 70: true, 71: true, 82: true, 83: true, 84: true, 213: true, 267: true,
		286: true, 287: true},
}

var ownFileCalls = fileCalls[runtime.GOARCH]

// receiveCalls has those that receive from a socket, their first argument: recvfrom, recvmsg and
// recvmmsg.
var receiveCalls = map[string]map[uint64]bool{
	"amd64": {45: true, 47: true, 299: true}, "arm64": {207: true, 212: true, 243: true},
}

var ownReceiveCalls = receiveCalls[runtime.GOARCH]

// fileWaits names the files that threads wait for, by their descriptors. A number may soon belong
// to another file, so it is looked up at once, though not each time.
type fileWaits struct {
	fds   string
	ends  socketEnds
	kinds map[uint64]fileKind
	asked int64 // the second in which looks are counted
	looks int
	last  [64]struct {
		fd, at int64
		id     uint32
	}
}

// fileNS is how long a descriptor's name is assumed to hold.
const fileNS = 100e6

// look takes a thread that leaves its CPU. If it is in the middle of a call on a file, that file is
// looked up.
func (f *fileWaits) look(s *bpfStream, e *bpf.Event) {
	if e.Arg[1] == 0 || e.Arg[2] >= 1<<31 {
		return
	}
	call := e.Arg[1] - 1
	file := ownFileCalls[call]
	switch {
	case file && e.Arg[0]&uninterruptible != 0:
		f.wait(s, e)
	case e.Arg[0] != 0 && e.Flags&bpf.Preempted == 0 && (file || ownReceiveCalls[call]):
		f.kind(s, e)
	}
}

// path is what the kernel calls a descriptor's file.
func (f *fileWaits) path(fd uint64) (string, error) {
	return os.Readlink(filepath.Join(f.fds, strconv.FormatUint(fd, 10)))
}

// wait names the file that a thread waits for, if it has a name.
func (f *fileWaits) wait(s *bpfStream, e *bpf.Event) {
	l := &f.last[e.Arg[2]%uint64(len(f.last))]
	if l.fd != int64(e.Arg[2]) || l.at == 0 || e.Time-l.at > fileNS {
		if l.fd != int64(e.Arg[2]) && l.at != 0 && e.Time-l.at < fileNS/100 {
			return // another descriptor of the same slot: at most a thousand a second of them
		}
		l.fd, l.at, l.id = int64(e.Arg[2]), e.Time, 0
		path, err := f.path(e.Arg[2])
		if err == nil && strings.HasPrefix(path, "/") { // neither a socket nor a pipe
			l.id = s.fileStack(path, e.Time)
		}
	}
	if l.id == 0 {
		return
	}
	s.batch = append(s.batch, kernel.Record{Time: e.Time, TID: e.TID, CPU: e.CPU, Kind: kernel.Disk,
		Flags: kernel.Target, User: l.id})
}

// fileKind is what a descriptor was when it was last looked at.
type fileKind struct {
	at   int64
	kind uint64
}

const (
	kindNS   = 1e9     // how long a descriptor's kind is assumed to hold
	maxKinds = 1 << 14 // descriptors that are remembered
	maxLooks = 2000    // a second: some 2 us each
)

// kind records what kind of file a thread waits for in a call that takes any file: without a stack
// nothing else distinguishes a socket from a pipe.
func (f *fileWaits) kind(s *bpfStream, e *bpf.Event) {
	fd := e.Arg[2]
	was, known := f.kinds[fd]
	if known && e.Time-was.at < kindNS || !known && len(f.kinds) >= maxKinds {
		return
	}
	if second := e.Time / 1e9; second != f.asked {
		f.asked, f.looks = second, 0
	}
	if f.looks++; f.looks > maxLooks {
		return
	}
	path, err := f.path(fd)
	if err != nil {
		return // closed meanwhile: the next wait looks again
	}
	now := fileKind{e.Time, kindOfFile(path)}
	if now.kind == kernel.FileSocket && f.ends.made(path, e.Time) {
		now.kind = kernel.FileMade
	}
	if f.kinds == nil {
		f.kinds = map[uint64]fileKind{}
	}
	f.kinds[fd] = now
	if !known || now.kind != was.kind {
		s.batch = append(s.batch, kernel.Record{Time: e.Time, TID: e.TID, CPU: e.CPU,
			Kind: kernel.File, Flags: kernel.Target, Arg: [3]uint64{fd, now.kind}})
	}
}

// kindOfFile goes by the kernel's name for a descriptor's file, see proc_pid_fd(5). It does not
// look at a file that has a path: that may be on a server that does not answer.
func kindOfFile(path string) uint64 {
	for _, p := range []struct {
		prefix string
		kind   uint64
	}{
		{"socket:", kernel.FileSocket}, {"pipe:", kernel.FilePipe},
		{"anon_inode:[eventfd", kernel.FilePipe}, {"anon_inode:[signalfd", kernel.FilePipe},
		{"anon_inode:[timerfd", kernel.FilePipe}, {"anon_inode:inotify", kernel.FilePipe},
		{"/dev/pts/", kernel.FilePipe}, {"/dev/tty", kernel.FilePipe},
	} {
		if strings.HasPrefix(path, p.prefix) {
			return p.kind
		}
	}
	return kernel.FileOther
}

// fileStack returns the number of a stack of one frame, whose module is the file.
func (s *bpfStream) fileStack(path string, at int64) uint32 {
	id, isNew := s.define(maphash.String(s.seed, path) &^ 1)
	if isNew {
		s.naming.send(unnamed{id: id, time: at, user: true, file: path})
	}
	return id
}
