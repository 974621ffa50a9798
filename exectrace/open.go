package exectrace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// defaultSpool is the most that New keeps of a pipe.
const defaultSpool = 16 << 30

// Open maps the trace in the named file. The file may grow or shrink meanwhile: what is there at
// Open is read, and a shrinking ends the read with Err.
func Open(name string, o Options) (*Trace, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping stays
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return nil, fmt.Errorf("open %s: is a directory", name)
	}
	if !st.Mode().IsRegular() {
		t, err := New(f, o)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", name, err)
		}
		return t, nil
	}
	t, err := openFile(f, st.Size(), o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return t, nil
}

// OpenSection maps the trace of size bytes that starts at offset in the named file: a member that
// an archive stores uncompressed. It behaves like Open.
func OpenSection(name string, offset, size int64, o Options) (*Trace, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || offset < 0 || size < 0 || offset > st.Size() || size > st.Size()-offset {
		return nil, fmt.Errorf("open %s: has no %d bytes at offset %d", name, size, offset)
	}
	t, err := openAt(f, offset, size, o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return t, nil
}

// New reads the trace from r until its end into a temporary file, and maps that. The file has no
// name any more when New returns. An error of r is returned only if nothing was read; later it is a
// Gap.
func New(r io.Reader, o Options) (*Trace, error) {
	max := o.MaxSpool
	if max <= 0 {
		max = defaultSpool
	}
	f, err := os.CreateTemp(o.TempDir, "exectrace-*")
	if err != nil {
		return nil, fmt.Errorf("spool trace: %w", err)
	}
	defer f.Close()
	defer os.Remove(f.Name())
	n, rerr := io.Copy(f, io.LimitReader(r, max))
	if n == 0 && rerr != nil {
		return nil, fmt.Errorf("spool trace: %w", rerr)
	}
	t, err := openFile(f, n, o)
	if err != nil {
		return nil, err
	}
	if rerr != nil {
		t.spooled = append(t.spooled, Gap{Reason: "the rest could not be read: " + rerr.Error()})
	} else if n == max {
		var one [1]byte
		if k, _ := io.ReadFull(r, one[:]); k > 0 {
			t.spooled = append(t.spooled, Gap{Reason: fmt.Sprintf("only the first %d bytes were kept", max)})
		}
	}
	return t, nil
}

func openFile(f *os.File, size int64, o Options) (*Trace, error) { return openAt(f, 0, size, o) }

// openAt maps what lies before offset too: a mapping starts at a page, and addresses cost nothing.
func openAt(f *os.File, offset, size int64, o Options) (*Trace, error) {
	data, mapped, err := mapFile(f, offset+size)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	var t *Trace
	if err := guard(func() (err error) { t, err = newTrace(data[offset:], o); return }); err != nil {
		if mapped {
			unmap(data)
		}
		return nil, err
	}
	if mapped {
		t.mapping = data
	}
	return t, nil
}

// Close unmaps the file. Strings and frames stay readable.
func (t *Trace) Close() error {
	if t.closed {
		return nil
	}
	t.closed = true
	data := t.mapping
	t.data, t.mapping = nil, nil
	if data != nil {
		return unmap(data)
	}
	return nil
}

// errFault is a page of the mapping that is no longer there: the file shrank, or its disk failed.
var errFault = errors.New("read trace: the file shrank or could not be read while it was open")

// guard runs f, which touches the mapping. A fault becomes errFault instead of the death of the
// process.
func guard(f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if p := recover(); p != nil {
			err = asFault(p)
		}
	}()
	return f()
}

// asFault makes an error of a fault, and of any other panic: a mistake of ours must not end the
// process that reads a trace. Tests take such an error for a failure.
func asFault(p any) error {
	if e, ok := p.(interface {
		error
		Addr() uintptr
	}); ok {
		return fmt.Errorf("%w (%v)", errFault, e)
	}
	return fmt.Errorf("read trace: internal error: %v", p)
}
