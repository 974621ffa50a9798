package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/format"
	"github.com/whystall/whystall/internal/format/archive"
)

// Bounds of what is read as a whole. A trace is not: it is mapped.
const (
	maxItem  = 64 << 20  // one profile, page of metrics, log
	maxItems = 512 << 20 // all of them
	maxTrace = 16 << 30  // of a packed trace or a pipe, unpacked into a temporary file
)

// input is one file, known by its content.
type input struct {
	name  string
	kind  format.Kind
	trace *exectrace.Trace // nil: it has none
	items []format.Item    // to be gathered with those of other files
	kern  *kernel.Reader   // the kernel's records; nil: it has none
	c     *evidence.Case   // nil: it is no case
	notes []string         // members that could not be read, and why

	parts    []*attach.Part // of attached text
	unknown  []attach.Unknown
	remarks  []string // what was not looked at in a long text
	known    bool     // it is text of which some part is known
	members  int      // files of an archive or a folder
	lines    int      // of all parts
	beyond   int      // parts of an archive that are not held
	first    string   // the member that has the first of them
	binaries int      // of those, that are binary and of no known kind
	binary   string   // the first of them
	restore  func()   // gives Go's runtime its memory back; nil: it was not taken
}

// openInput opens a file, a case or its folder; "-" is standard input. left is how many bytes of
// items may still be read.
func openInput(name string, stdin io.Reader, left *int64) (*input, error) {
	in := &input{name: name}
	defer func() {
		if in.restore != nil {
			in.restore()
		}
	}()
	if name == "-" {
		in.name = "standard input"
		return in, in.stream(stdin, left)
	}
	st, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, evidence.FileCause(err))
	}
	if st.IsDir() {
		if _, err := os.Lstat(filepath.Join(name, "manifest.json")); err == nil {
			return in, in.openCase(name, left)
		}
		return in, in.folder(name, left)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, evidence.FileCause(err))
	}
	defer f.Close()
	if !st.Mode().IsRegular() {
		return in, in.stream(f, left)
	}
	head := make([]byte, format.HeadSize)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("read %s: %w", name, evidence.FileCause(err))
	}
	switch in.kind = format.Identify(head[:n]); in.kind {
	case format.KindTrace:
		in.trace, err = exectrace.Open(name, exectrace.Options{})
		return in, err
	case format.KindZip:
		if archive.ZipHas(f, st.Size(), "manifest.json") {
			return in, in.openCase(name, left)
		}
		return in, in.zip(name, f, st.Size(), left)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, evidence.FileCause(err))
	}
	return in, in.stream(f, left)
}

// stream reads what can be read only once: a trace, packed or not, or an item.
func (in *input) stream(r io.Reader, left *int64) error {
	head := make([]byte, format.HeadSize)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return fmt.Errorf("read %s: %w", in.name, evidence.FileCause(err))
	}
	head = head[:n]
	r = io.MultiReader(strings.NewReader(string(head)), r)
	in.kind = format.Identify(head)
	if in.kind == format.KindGzip {
		inner, z := format.PeekGzip(head, r)
		if in.kind = inner; inner == format.KindTrace {
			r = z
		}
	}
	switch in.kind {
	case format.KindEmpty:
		return fmt.Errorf("read %s: it is empty", in.name)
	case format.KindHTML:
		return fmt.Errorf("read %s: it is a web page: fetch the file itself, with curl -o or whystall record", in.name)
	case format.KindTrace:
		in.trace, err = exectrace.New(r, exectrace.Options{MaxSpool: maxTrace})
		return err
	}
	if archive.Known(head) && in.kind != format.KindPprof {
		return in.packed(r, left)
	}
	return in.text(in.name, r, left)
}

// item reads an item as a whole.
func (in *input) item(name string, r io.Reader, at int64, left *int64) error {
	limit := min(maxItem, *left)
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, evidence.FileCause(err))
	}
	if int64(len(b)) > limit {
		return tooLong(name, *left)
	}
	*left -= int64(len(b))
	in.items = append(in.items, format.Item{Name: name, Data: b, Time: at})
	return nil
}

// openCase opens a case: its trace where it lies, its kernel records for several passes, its other
// members as items. The case stays open: the caller closes in.c.
func (in *input) openCase(name string, left *int64) error {
	c, err := evidence.Open(name)
	if err != nil {
		return err
	}
	in.c = c
	in.kind = kindCase
	for _, member := range c.Names() {
		where := name + ":" + member
		switch member {
		case evidence.TraceMember:
			err = in.caseTrace(c)
		case kernel.Member:
			in.kern, err = kernel.NewReader(func() (io.ReadCloser, error) { return c.OpenMember(kernel.Member) })
		default:
			err = in.member(c, member, where, left)
		}
		if err != nil {
			in.notes = append(in.notes, err.Error())
		}
	}
	return nil
}

const kindCase format.Kind = "a case"

func (in *input) member(c *evidence.Case, member, where string, left *int64) error {
	r, err := c.OpenMember(member)
	if err != nil {
		return err
	}
	defer r.Close()
	var at int64
	if req, ok := c.Manifest.RequestFor(member); ok {
		if at = req.First.MonoNS; at == 0 {
			at = req.Sent.MonoNS
		}
	}
	return in.item(where, r, at, left)
}

func (in *input) caseTrace(c *evidence.Case) (err error) {
	if file, offset, size, ok := c.Locate(evidence.TraceMember); ok {
		in.trace, err = exectrace.OpenSection(file, offset, size, exectrace.Options{})
		return err
	}
	// Somebody packed it again: record stores the trace uncompressed.
	r, err := c.OpenMember(evidence.TraceMember)
	if err != nil {
		return err
	}
	defer r.Close()
	in.trace, err = exectrace.New(r, exectrace.Options{MaxSpool: maxTrace})
	return err
}

func tooLong(name string, left int64) error {
	return fmt.Errorf("read %s: more than %d MiB and no execution trace: cut out the part that matters", name, min(maxItem, left)>>20)
}
