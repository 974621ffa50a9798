package exectrace

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrNotTrace is returned, wrapped, for bytes that do not start like a Go execution trace.
var ErrNotTrace = errors.New("not a Go execution trace")

// headerLen is the length of "go 1.NN trace\0\0\0", with which every format starts.
const headerLen = 16

var versions = [...]Version{11, 19, 21, 22, 23, 25, 26}

// sniff reads the header. It fails on a version that this reader does not know: what an event of it
// means for the states is not known either.
func sniff(b []byte) (Version, error) {
	if len(b) < headerLen || string(b[:5]) != "go 1." || string(b[7:headerLen]) != " trace\x00\x00\x00" {
		if len(b) > 0 && len(b) < headerLen && bytes.HasPrefix([]byte("go 1."), b[:min(len(b), 5)]) {
			return 0, fmt.Errorf("read header: %w: it ends after %d bytes", ErrNotTrace, len(b))
		}
		return 0, fmt.Errorf("read header: %w: it starts with %q", ErrNotTrace, b[:min(len(b), headerLen)])
	}
	d1, d0 := b[5], b[6]
	if d1 < '0' || d1 > '9' || d0 < '0' || d0 > '9' {
		return 0, fmt.Errorf("read header: %w: version %q", ErrNotTrace, b[3:7])
	}
	v := Version(d1-'0')*10 + Version(d0-'0')
	for _, known := range versions {
		if v == known {
			return v, nil
		}
	}
	if v < versions[0] {
		// Go 1.5 to 1.10 wrote "go 1.5 trace" and other headers; nothing runs them any more.
		return 0, fmt.Errorf("read header: format 1.%d is older than 1.11", v)
	}
	return 0, fmt.Errorf("read header: format 1.%d is not known: known are %v", v, versions)
}

// anotherTrace finds where another trace's header starts in b, -1 if there is none. Files get
// joined like that.
func anotherTrace(b []byte) int {
	for at := 0; ; at++ {
		i := bytes.Index(b[at:], []byte("go 1."))
		if i < 0 {
			return -1
		}
		at += i
		if _, err := sniff(b[at:min(len(b), at+headerLen)]); err == nil {
			return at
		}
	}
}

// noteJoined adds the gap of another trace, which starts at byte off of the file, behind the last
// event. If off is 0, there is none.
func (t *Trace) noteJoined(off int, last Time) {
	if off > 0 {
		t.read.gap(Gap{
			Begin: last, End: last, Bytes: int64(len(t.data) - off),
			Reason: fmt.Sprintf("another trace starts at byte %d, and is not read: tail -c +%d of the file gives it", off, off+1),
		})
	}
}
