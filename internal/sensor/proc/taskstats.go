package proc

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// field is one number of struct taskstats: where it is, and since which version of the struct.
// Offsets are for the 64-bit layout, in which each 64-bit member is aligned. Members were only ever
// added at the end, so a kernel's struct is a longer or shorter version of this one.
type field struct {
	name    string
	offset  int
	version uint16
}

// fields in the order of include/uapi/linux/taskstats.h. Times of delays are ns, of CPU us.
var fields = []field{
	{"cpu_count", 16, 1}, {"cpu_delay_total", 24, 1},
	{"blkio_count", 32, 1}, {"blkio_delay_total", 40, 1},
	{"swapin_count", 48, 1}, {"swapin_delay_total", 56, 1},
	{"cpu_run_real_total", 64, 1},
	{"nvcsw", 272, 3}, {"nivcsw", 280, 3},
	{"freepages_count", 312, 7}, {"freepages_delay_total", 320, 7},
	{"thrashing_count", 328, 9}, {"thrashing_delay_total", 336, 9},
	{"compact_count", 352, 11}, {"compact_delay_total", 360, 11},
	{"wpcopy_count", 400, 13}, {"wpcopy_delay_total", 408, 13},
	{"irq_count", 416, 14}, {"irq_delay_total", 424, 14},
}

// Some kernels with versions 15 and 16 (from Linux 6.14 on) have one or two new members behind each
// delay_total, in the middle of the struct. Later kernels, and stable releases with the same
// version number, have them at the end. The place of the command's name shows which it is.
const (
	commAt   = 80
	perDelay = 3 // delay_totals before the name
)

// inserted finds how many bytes are behind each delay_total, from the struct of a process called
// comm.
func inserted(b []byte, comm string) (int, error) {
	for _, n := range []int{0, 8, 16} {
		at := commAt + perDelay*n
		if at+len(comm) < len(b) && string(b[at:at+len(comm)]) == comm && b[at+len(comm)] == 0 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("read taskstats: version %d has an unknown layout", binary.NativeEndian.Uint16(b))
}

// taskstatsText writes a struct as lines "name value", as many as its version and length have.
func taskstatsText(b []byte, inserted int) (string, error) {
	if len(b) < commAt {
		return "", fmt.Errorf("read taskstats: %d bytes", len(b))
	}
	version := binary.NativeEndian.Uint16(b)
	text := fmt.Appendf(nil, "version %d\n", version)
	shift := 0
	for _, f := range fields {
		if at := f.offset + shift; version >= f.version && at+8 <= len(b) {
			text = fmt.Appendf(text, "%s %d\n", f.name, binary.NativeEndian.Uint64(b[at:]))
		}
		if strings.HasSuffix(f.name, "_delay_total") {
			shift += inserted
		}
	}
	return string(text), nil
}
