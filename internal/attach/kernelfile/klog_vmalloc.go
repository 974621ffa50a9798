package kernelfile

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// vmallocs are failures of vmalloc, which gathers single pages: they are neither a piece of memory
// that was too large, nor by themselves a lack of pages.
type vmallocs struct {
	by   string  // whose the first was; "": not said
	size float64 // bytes of the largest
	open bool    // before Linux 4.10 a failed allocation of order 0 follows in a line of its own
	// lacked: one had its addresses, and found no more pages.
	lacked bool
}

func (v *vmallocs) add(by, size, text string) {
	v.by, v.size = cmp.Or(v.by, by), max(v.size, float(size))
	v.open = by == ""
	v.lacked = v.lacked || strings.Contains(text, ", allocated ") || strings.Contains(text, "failed to allocate")
}

func (r *report) readVmallocs(out *attach.Reading) {
	n := r.counts[vmallocFail]
	if n == 0 {
		return
	}
	figure := fmt.Sprintf("%s, the largest of %s", countOf(vmallocFail, n), mem(r.vmallocs.size))
	if n == 1 {
		figure = "1 failed vmalloc, of " + mem(r.vmallocs.size)
	}
	if r.vmallocs.by != "" {
		figure += map[bool]string{true: ", by ", false: ", the first by "}[n == 1] + printed(r.vmallocs.by)
	}
	figures := []string{figure}
	if r.sums.counts() {
		figures = append(figures, r.sums.figure())
	}
	ram := r.sums.ram * r.sums.pageBytes()
	means := "A vmalloc failed, which gathers single pages: no piece was too large for it. "
	switch {
	case ram > 0 && r.vmallocs.size > ram:
		means += fmt.Sprintf("It asked for more than the machine's RAM (%s): no memory that is freed would have served it.", mem(ram))
	case r.vmallocs.lacked:
		means += "It did not get all its pages: the host, or a limit of its cgroup, had none left, or its task was being killed."
	default:
		means += "Whether pages or addresses for it were missing, the line does not say."
	}
	say(out, attach.CannotTell, means, figures...)
}
