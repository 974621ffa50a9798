package proc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// Numbers of include/uapi/linux/{genetlink,taskstats}.h.
const (
	genlIDCtrl         = 0x10
	ctrlCmdGetFamily   = 3
	ctrlAttrFamilyID   = 1
	ctrlAttrFamilyName = 2
	taskstatsCmdGet    = 1
	taskstatsAttrPID   = 1 // asked for
	taskstatsAttrTGID  = 2
	taskstatsStats     = 3 // answered, within one of the next
	taskstatsAggrPID   = 4
	taskstatsAggrTGID  = 5
)

// Taskstats asks the kernel for the delay accounting of processes. It needs CAP_NET_ADMIN in the
// first user namespace.
type Taskstats struct {
	fd     int
	family uint16
	seq    uint32

	inserted int // bytes behind each delay_total
}

// OpenTaskstats opens the socket. An error says what is missing.
func OpenTaskstats() (*Taskstats, error) {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_GENERIC)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	t := &Taskstats{fd: fd}
	// An answer comes at once or never.
	wait := syscall.NsecToTimeval(int64(2 * time.Second))
	err = errors.Join(
		syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &wait),
		syscall.Bind(fd, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}),
	)
	if err == nil {
		err = t.findFamily()
	}
	if err == nil {
		err = t.findLayout()
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Close closes the socket.
func (t *Taskstats) Close() error { return syscall.Close(t.fd) }

func (t *Taskstats) findFamily() error {
	answer, err := t.ask(genlIDCtrl, ctrlCmdGetFamily, 1, ctrlAttrFamilyName, append([]byte("TASKSTATS"), 0))
	if errors.Is(err, syscall.ENOENT) {
		return errors.New("find taskstats: this kernel was built without it")
	}
	if err != nil {
		return fmt.Errorf("find taskstats: %w", err)
	}
	b := attr(answer, ctrlAttrFamilyID)
	if len(b) < 2 {
		return errors.New("find taskstats: the answer has no family number")
	}
	t.family = binary.NativeEndian.Uint16(b)
	return nil
}

// findLayout asks about our own process, whose name is known.
func (t *Taskstats) findLayout() error {
	comm, err := readFile("/proc/self/comm")
	if err != nil {
		return fmt.Errorf("find the layout of taskstats: %w", err)
	}
	b, err := t.get(taskstatsAttrPID, taskstatsAggrPID, os.Getpid())
	if err != nil {
		return err
	}
	if len(b) < commAt {
		return fmt.Errorf("read taskstats: %d bytes", len(b))
	}
	t.inserted, err = inserted(b, strings.TrimSuffix(string(comm), "\n"))
	return err
}

// Process reads the sums over a process' threads, including ended ones, as lines "name value". The
// error syscall.ESRCH means that the process has ended.
func (t *Taskstats) Process(pid int) (string, error) {
	b, err := t.get(taskstatsAttrTGID, taskstatsAggrTGID, pid)
	if err != nil {
		return "", err
	}
	return taskstatsText(b, t.inserted)
}

func (t *Taskstats) get(by, in uint16, pid int) ([]byte, error) {
	answer, err := t.ask(t.family, taskstatsCmdGet, 1, by, binary.NativeEndian.AppendUint32(nil, uint32(pid)))
	if errors.Is(err, syscall.EPERM) {
		return nil, errors.New("read delay accounting: needs CAP_NET_ADMIN of the host: run whystall as root")
	}
	if err != nil {
		return nil, fmt.Errorf("read delay accounting: %w", err)
	}
	return attr(attr(answer, in), taskstatsStats), nil
}

// ask sends one request with one attribute, and returns the attributes of the answer.
func (t *Taskstats) ask(family uint16, cmd, version byte, kind uint16, value []byte) ([]byte, error) {
	t.seq++
	ne := binary.NativeEndian
	body := []byte{cmd, version, 0, 0}
	body = ne.AppendUint16(body, uint16(4+len(value)))
	body = ne.AppendUint16(body, kind)
	body = append(body, value...)
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	msg := ne.AppendUint32(nil, uint32(16+len(body)))
	msg = ne.AppendUint16(msg, family)
	msg = ne.AppendUint16(msg, syscall.NLM_F_REQUEST)
	msg = ne.AppendUint32(msg, t.seq)
	msg = append(ne.AppendUint32(msg, 0), body...)
	if err := syscall.Sendto(t.fd, msg, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return nil, err
	}
	buf := make([]byte, 16<<10)
	for range 16 { // an answer to an earlier request that timed out is skipped
		n, _, err := syscall.Recvfrom(t.fd, buf, 0)
		if err != nil {
			return nil, err
		}
		msgs, err := syscall.ParseNetlinkMessage(buf[:n])
		if err != nil {
			return nil, err
		}
		for _, m := range msgs {
			switch {
			case m.Header.Seq != t.seq:
			case m.Header.Type == syscall.NLMSG_ERROR && len(m.Data) >= 4:
				if e := int32(ne.Uint32(m.Data)); e < 0 {
					return nil, syscall.Errno(-e)
				}
			case len(m.Data) >= 4:
				return bytes.Clone(m.Data[4:]), nil
			}
		}
	}
	return nil, errors.New("no answer")
}

// attr finds an attribute in a row of them; nil if it is not there. The upper two bits of a kind
// are flags.
func attr(b []byte, kind uint16) []byte {
	for len(b) >= 4 {
		size, k := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])&0x3fff
		if size < 4 || size > len(b) {
			return nil
		}
		if k == kind {
			return b[4:size]
		}
		b = b[min(len(b), (size+3)&^3):]
	}
	return nil
}
