package perfevent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
)

// ring is the reading end of a ring buffer that the kernel writes, one a CPU. The kernel moves head
// after writing bytes, we move tail after reading them. sync/atomic orders both as the kernel's
// smp_load_acquire and smp_store_release do.
type ring struct {
	head, tail *uint64 // in the control page
	data       []byte  // a power of two of bytes
	copied     []byte  // of a record that wraps around
}

var errRing = errors.New("ring buffer is damaged")

// read calls f with each record's bytes, which are valid until f returns. What is written meanwhile
// is left for the next call, so that this one ends.
func (r *ring) read(f func([]byte)) error {
	head := atomic.LoadUint64(r.head)
	tail := atomic.LoadUint64(r.tail)
	size := uint64(len(r.data))
	// On an error all is skipped: reading on in the middle of a record would give nonsense.
	defer func() { atomic.StoreUint64(r.tail, tail) }()
	if head-tail > size {
		err := fmt.Errorf("%w: head is %d beyond tail, it has %d bytes", errRing, head-tail, size)
		tail = head
		return err
	}
	for tail != head {
		left := head - tail
		at := tail & (size - 1)
		// Records are multiples of 8 bytes, so a header never wraps.
		n := uint64(0)
		if left >= headSize && size-at >= headSize {
			n = uint64(binary.LittleEndian.Uint16(r.data[at+6:]))
		}
		if n < headSize || n > left || n%8 != 0 {
			err := fmt.Errorf("%w: record of %d bytes, %d are left", errRing, n, left)
			tail = head
			return err
		}
		if at+n <= size {
			f(r.data[at : at+n])
		} else {
			r.copied = append(append(r.copied[:0], r.data[at:]...), r.data[:at+n-size]...)
			f(r.copied)
		}
		tail += n
		// Make room for the kernel before all is read: it may be writing as fast.
		if tail-atomic.LoadUint64(r.tail) > size/4 {
			atomic.StoreUint64(r.tail, tail)
		}
	}
	return nil
}
