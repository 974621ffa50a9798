package bpf

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ring is the reading side of one CPU's log. Each record lies in one piece: one that starts before
// the log's end goes on behind that end. c/record.h has the other side.
type ring struct {
	cpu  int
	data []byte
	size uint64
	head *uint64 // the programs' position
	tail *uint64 // ours
}

const (
	logHead    = 128 // of a log, before its data
	ringBusy   = 1 << 31
	ringHead   = 8    // of a record
	ringMost   = 2112 // bytes of a record and its head
	ringMargin = 4 * ringMost
	ringLeast  = 16 << 10
)

// logBytes is the whole of a CPU's log.
func logBytes(size uint32) uint32 { return logHead + size + (ringMost+7)&^7 }

// mapLogs returns the reading sides of the logs of these CPUs, and the mapping that holds them.
func mapLogs(m *ebpf.Map, cpus []int, size uint32) (rings []*ring, view []byte, err error) {
	each := (int(m.ValueSize()) + 7) &^ 7
	page := os.Getpagesize()
	whole := (each*int(m.MaxEntries()) + page - 1) &^ (page - 1)
	view, err = unix.Mmap(m.FD(), 0, whole, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map the CPUs' logs: %w", err)
	}
	for _, cpu := range cpus {
		b := view[cpu*each : (cpu+1)*each]
		rings = append(rings, &ring{
			cpu: cpu, data: b[logHead:], size: uint64(size),
			head: (*uint64)(unsafe.Pointer(&b[0])), tail: (*uint64)(unsafe.Pointer(&b[64])),
		})
	}
	return rings, view, nil
}

// filled is how many bytes wait to be read.
func (r *ring) filled() uint64 {
	return atomic.LoadUint64(r.head) - atomic.LoadUint64(r.tail)
}

// read calls f with the records that were there when it started. whole reports that it came to
// their end. Otherwise a record is still being written, for example on a virtual CPU that its host
// has taken away.
func (r *ring) read(f func(b []byte) error) (whole bool, err error) {
	pos, end := atomic.LoadUint64(r.tail), atomic.LoadUint64(r.head)
	for n := 0; pos < end; n++ {
		at := pos & (r.size - 1)
		head := atomic.LoadUint64((*uint64)(unsafe.Pointer(&r.data[at])))
		if uint32(head>>32) != uint32(pos>>3) || head&ringBusy != 0 {
			atomic.StoreUint64(r.tail, pos)
			return false, err
		}
		length := head & (ringBusy - 1)
		if length > ringMost-ringHead || length&7 != 0 {
			// The programs never write such a record. Reading on would start in the middle of one.
			atomic.StoreUint64(r.tail, end)
			return true, fmt.Errorf("read the log of CPU %d: record of %d bytes", r.cpu, length)
		}
		if e := f(r.data[at+ringHead : at+ringHead+length]); e != nil && err == nil {
			err = e
		}
		pos += ringHead + length
		if n%512 == 511 {
			atomic.StoreUint64(r.tail, pos) // makes room for the programs
		}
	}
	atomic.StoreUint64(r.tail, pos)
	return true, err
}
