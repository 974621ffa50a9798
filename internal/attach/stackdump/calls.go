package stackdump

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// systemCall reports whether a function is the library's way into the kernel, whatever for.
func systemCall(fn string) bool {
	return strings.HasPrefix(fn, "internal_syscall") || strings.HasPrefix(fn, "syscall_cancel") || fn == "ioctl"
}

// states counts the threads by the states that the dump gives them; "": it gives none.
func (d *dump) states() string {
	n := map[string]float64{}
	for _, t := range d.threads {
		if t.state != "" {
			n[t.state] += float64(t.n)
		}
	}
	var words []string
	for _, s := range attach.Largest(n) {
		words = append(words, fmt.Sprintf("%.0f %s", n[s], s))
	}
	return strings.Join(words, ", ")
}

// callsOf says of a few threads which call each is in: one that waits for another process, or for a
// device, is in a call too.
func (d *dump) callsOf(r *attach.Reading) {
	var words []string
	for _, t := range d.threads {
		if t.doing != running || len(t.frames) == 0 || t.cropped {
			continue
		}
		words = append(words, t.who()+": "+t.does())
		if p, _ := sleepsIn(t.frames); p == inRead || p == inWrite || systemCall(short(t.frames[0].fn)) {
			r.State = attach.CannotTell
			r.Means = "No threads queue behind one lock. Those in calls may wait there, for a device or for what others send."
		}
	}
	if n := len(words); n > 1 && n <= 3 || n == 1 && d.total() < 3 { // of more threads pools names the one
		r.Figures = append(words, r.Figures...)
	}
}
