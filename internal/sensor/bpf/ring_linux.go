package bpf

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ring is the reading side of one BPF ring buffer. The kernel maps its data twice, one behind the other, so that a record
// that goes over the end lies in one piece.
type ring struct {
	cpu      int
	m        *ebpf.Map
	control  []byte // our position, writable
	data     []byte // the kernel's position and the data, twice
	size     uint64
	consumer *uint64
	producer *uint64
}

const (
	ringBusy    = 1 << 31
	ringDiscard = 1 << 30
	ringHead    = 8
)

func newRing(cpu int, bytes uint32) (*ring, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "ring", Type: ebpf.RingBuf, MaxEntries: bytes})
	if err != nil {
		return nil, fmt.Errorf("make ring of CPU %d: %w", cpu, err)
	}
	r := &ring{cpu: cpu, m: m, size: uint64(bytes)}
	page := os.Getpagesize()
	if r.control, err = unix.Mmap(m.FD(), 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		r.close()
		return nil, fmt.Errorf("map ring of CPU %d: %w", cpu, err)
	}
	if r.data, err = unix.Mmap(m.FD(), int64(page), page+2*int(bytes), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		r.close()
		return nil, fmt.Errorf("map ring of CPU %d: %w", cpu, err)
	}
	r.consumer = (*uint64)(unsafe.Pointer(&r.control[0]))
	r.producer = (*uint64)(unsafe.Pointer(&r.data[0]))
	r.data = r.data[: page+2*int(bytes) : page+2*int(bytes)]
	return r, nil
}

func (r *ring) close() {
	if r.control != nil {
		unix.Munmap(r.control)
	}
	if r.data != nil {
		unix.Munmap(r.data)
	}
	r.m.Close()
}

// filled is how many bytes wait to be read.
func (r *ring) filled() uint64 {
	return atomic.LoadUint64(r.producer) - atomic.LoadUint64(r.consumer)
}

// read gives what was there when it began. whole tells that it came to that end: else a record is still being
// written, on a CPU that was taken from its guest, for one.
func (r *ring) read(f func(b []byte) error) (whole bool, err error) {
	page := len(r.data) - 2*int(r.size)
	data := r.data[page:]
	pos, end := atomic.LoadUint64(r.consumer), atomic.LoadUint64(r.producer)
	for n := 0; pos < end; n++ {
		at := pos & (r.size - 1)
		head := atomic.LoadUint32((*uint32)(unsafe.Pointer(&data[at])))
		if head&ringBusy != 0 {
			atomic.StoreUint64(r.consumer, pos)
			return false, err
		}
		length := uint64(head &^ ringDiscard)
		if ringHead+length > r.size {
			// The kernel does not write such: without an end we would read on for ever.
			atomic.StoreUint64(r.consumer, end)
			return true, fmt.Errorf("read ring of CPU %d: record of %d bytes in %d", r.cpu, length, r.size)
		}
		if head&ringDiscard == 0 {
			if e := f(data[at+ringHead : at+ringHead+length]); e != nil && err == nil {
				err = e
			}
		}
		pos += (ringHead + length + 7) &^ 7
		if n%512 == 511 {
			atomic.StoreUint64(r.consumer, pos) // room for the kernel
		}
	}
	atomic.StoreUint64(r.consumer, pos)
	return true, err
}
